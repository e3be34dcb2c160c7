//! What is wrong or odd about a configuration.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::MAX_FINDINGS;
use alloc::string::String;
use alloc::vec::Vec;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Gravity {
    /// The configuration can't run.
    Error = 0,
    /// It can, but hardly as its author means it.
    Warning = 1,
    /// Worth knowing.
    Note = 2,
}

/// One thing that is wrong or odd about a configuration. A box wrote it: texts are shown escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How grave it is.
    pub gravity: Gravity,
    /// The line in the text, from 1; 0 when it is about none.
    pub line: u32,
    /// The column in characters, from 1; 0 when it is about none.
    pub column: u32,
    /// What it is, in one or several lines.
    pub message: String,
    /// What may help; mostly empty.
    pub hint: String,
}

impl Finding {
    /// The bytes that [`Reply::Done`](crate::Reply::Done) and [`Reply::Unfit`](crate::Reply::Unfit) carry; findings over
    /// the limit are left out.
    pub fn encode(findings: &[Self]) -> Vec<u8> {
        let findings = findings.get(..MAX_FINDINGS).unwrap_or(findings);
        let mut fields = Encoder::default();
        fields.u32(findings.len() as u32);
        for finding in findings {
            fields.u32(finding.gravity as u32).u32(finding.line).u32(finding.column);
            fields.bytes(finding.message.as_bytes()).bytes(finding.hint.as_bytes());
        }
        fields.0
    }

    /// The findings in a reply's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut fields = Decoder(bytes);
        let mut findings = Vec::new();
        for _ in 0..fields.count(MAX_FINDINGS)? {
            findings.push(Self {
                gravity: match fields.u32()? {
                    0 => Gravity::Error,
                    1 => Gravity::Warning,
                    2 => Gravity::Note,
                    other => return Err(DecodeError::Value(other.into())),
                },
                line: fields.u32()?,
                column: fields.u32()?,
                message: fields.text()?.into(),
                hint: fields.text()?.into(),
            });
        }
        fields.end()?;
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_survive_the_trip_up_to_the_limit() {
        let finding = |line| Finding {
            gravity: [Gravity::Error, Gravity::Warning, Gravity::Note][line % 3],
            line: line as u32,
            column: 7,
            message: "unknown element class".into(),
            hint: String::new(),
        };
        for count in [0, 1, MAX_FINDINGS, MAX_FINDINGS + 1] {
            let all: Vec<Finding> = (0..count).map(finding).collect();
            let expected = &all[..count.min(MAX_FINDINGS)];
            assert_eq!(Finding::decode(&Finding::encode(&all)).as_deref(), Ok(expected));
        }
    }
}
