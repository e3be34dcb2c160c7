//! What writes to handlers change.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::MAX_PREPARED_WRITES;
use alloc::string::String;
use alloc::vec::Vec;

/// What a write changed, as the box itself says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum WriteEffect {
    /// Counters or the state, or it acted once: nothing that the configuration says.
    #[default]
    Action = 0,
    /// A value of the configuration. A later write to the same handler replaces it.
    Setting = 1,
    /// An entry of the configuration. Writes add up, so their order counts.
    Edit = 2,
}

/// The reply to a [write](crate::Request::Write).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// What it changed.
    pub effect: WriteEffect,
    /// Whether the element's handler `config` now shows what was written.
    pub in_config: bool,
}

impl Written {
    /// The reply's bytes.
    pub fn encode(self) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.u32(self.effect as u32).u32(self.in_config.into());
        fields.0
    }

    /// Decodes a reply.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Decoder(bytes);
        let effect = match fields.u32()? {
            0 => WriteEffect::Action,
            1 => WriteEffect::Setting,
            2 => WriteEffect::Edit,
            other => return Err(DecodeError::Value(other.into())),
        };
        let in_config = match fields.u32()? {
            0 => false,
            1 => true,
            other => return Err(DecodeError::Value(other.into())),
        };
        fields.end()?;
        Ok(Self { effect, in_config })
    }
}

/// A [prepared write](crate::Request::Prepare) that failed. A box wrote it: the reason must be escaped before display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedWrite {
    /// Its number among the prepared ones, from 0.
    pub number: u32,
    /// Why it failed.
    pub reason: String,
}

impl RefusedWrite {
    /// Encodes the reply to [`Request::Prepared`](crate::Request::Prepared).
    pub fn encode(refused: &[Self]) -> Vec<u8> {
        let refused = refused.get(..MAX_PREPARED_WRITES).unwrap_or(refused);
        let mut fields = Encoder::default();
        fields.u32(refused.len() as u32);
        for Self { number, reason } in refused {
            fields.u32(*number).bytes(reason.as_bytes());
        }
        fields.0
    }

    /// Decodes the reply to [`Request::Prepared`](crate::Request::Prepared).
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut fields = Decoder(bytes);
        let mut refused = Vec::new();
        for _ in 0..fields.count(MAX_PREPARED_WRITES)? {
            refused.push(Self { number: fields.u32()?, reason: fields.text()?.into() });
        }
        fields.end()?;
        Ok(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_survive_the_trip() {
        for effect in [WriteEffect::Action, WriteEffect::Setting, WriteEffect::Edit] {
            for in_config in [false, true] {
                let written = Written { effect, in_config };
                assert_eq!(Written::decode(&written.encode()), Ok(written));
            }
        }
        assert_eq!(Written::decode(&[3, 0, 0, 0, 0, 0, 0, 0]), Err(DecodeError::Value(3)));
        assert_eq!(Written::decode(&[]), Err(DecodeError::Short));
        let refused = [RefusedWrite { number: 7, reason: "no element x".into() }];
        assert_eq!(RefusedWrite::decode(&RefusedWrite::encode(&refused)).as_deref(), Ok(&refused[..]));
        assert_eq!(RefusedWrite::decode(&[255; 4]), Err(DecodeError::Count(u32::MAX as usize)));
    }
}
