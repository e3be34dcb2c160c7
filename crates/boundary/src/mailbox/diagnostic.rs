//! Diagnostics of a configuration.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::MAX_DIAGNOSTICS;
use alloc::string::String;
use alloc::vec::Vec;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Severity {
    /// The configuration cannot run.
    Error = 0,
    /// The configuration can run, but probably not as intended.
    Warning = 1,
    /// Additional information.
    Note = 2,
}

/// A diagnostic of a configuration. A box wrote it: texts must be escaped before display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The line in the text, from 1; 0 if there is no location.
    pub line: u32,
    /// The column in characters, from 1; 0 if there is no location.
    pub column: u32,
    /// The message, of one or more lines.
    pub message: String,
    /// A suggestion; often empty.
    pub hint: String,
}

impl Diagnostic {
    /// Encodes diagnostics for [`Reply::Done`](crate::Reply::Done) and [`Reply::Rejected`](crate::Reply::Rejected).
    /// Diagnostics beyond the limit are dropped.
    pub fn encode(diagnostics: &[Self]) -> Vec<u8> {
        let diagnostics = diagnostics.get(..MAX_DIAGNOSTICS).unwrap_or(diagnostics);
        let mut fields = Encoder::default();
        fields.u32(diagnostics.len() as u32);
        for diagnostic in diagnostics {
            fields.u32(diagnostic.severity as u32).u32(diagnostic.line).u32(diagnostic.column);
            fields.bytes(diagnostic.message.as_bytes()).bytes(diagnostic.hint.as_bytes());
        }
        fields.0
    }

    /// Decodes the diagnostics in a reply.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut fields = Decoder(bytes);
        let mut diagnostics = Vec::new();
        for _ in 0..fields.count(MAX_DIAGNOSTICS)? {
            diagnostics.push(Self {
                severity: match fields.u32()? {
                    0 => Severity::Error,
                    1 => Severity::Warning,
                    2 => Severity::Note,
                    other => return Err(DecodeError::Value(other.into())),
                },
                line: fields.u32()?,
                column: fields.u32()?,
                message: fields.text()?.into(),
                hint: fields.text()?.into(),
            });
        }
        fields.end()?;
        Ok(diagnostics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_survive_the_trip_up_to_the_limit() {
        let diagnostic = |line| Diagnostic {
            severity: [Severity::Error, Severity::Warning, Severity::Note][line % 3],
            line: line as u32,
            column: 7,
            message: "unknown element class".into(),
            hint: String::new(),
        };
        for count in [0, 1, MAX_DIAGNOSTICS, MAX_DIAGNOSTICS + 1] {
            let all: Vec<Diagnostic> = (0..count).map(diagnostic).collect();
            let expected = &all[..count.min(MAX_DIAGNOSTICS)];
            assert_eq!(Diagnostic::decode(&Diagnostic::encode(&all)).as_deref(), Ok(expected));
        }
    }
}
