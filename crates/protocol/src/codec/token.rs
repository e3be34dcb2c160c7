//! Reads MessagePack value by value.

use super::error::DecodeError;
use rmp::Marker;
use serde::de::Unexpected;

/// A value, or the start of a list or map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token<'a> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// The number of values that follow.
    List(u32),
    /// The number of pairs that follow.
    Map(u32),
}

impl Token<'_> {
    /// The value, for the message of an error.
    pub(super) fn unexpected(&self) -> Unexpected<'_> {
        match *self {
            Self::Nil => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(value),
            Self::Unsigned(value) => Unexpected::Unsigned(value),
            Self::Signed(value) => Unexpected::Signed(value),
            Self::Float(value) => Unexpected::Float(value),
            Self::Text(text) => Unexpected::Str(text),
            Self::Bytes(bytes) => Unexpected::Bytes(bytes),
            Self::List(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
        }
    }
}

/// The bytes that have not been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'a>(pub(super) &'a [u8]);

impl<'a> Tokens<'a> {
    /// The kind of the next value, which stays unread.
    pub(super) fn peek(&self) -> Result<Marker, DecodeError> {
        self.0.first().map(|&byte| Marker::from_u8(byte)).ok_or(DecodeError::Short)
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, DecodeError> {
        let [kind] = self.array()?;
        Ok(match Marker::from_u8(kind) {
            Marker::Null => Token::Nil,
            Marker::False => Token::Bool(false),
            Marker::True => Token::Bool(true),
            Marker::FixPos(value) => Token::Unsigned(value.into()),
            Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => Token::Unsigned(self.unsigned(kind & 3)?),
            Marker::FixNeg(value) => Token::Signed(value.into()),
            Marker::I8 => Token::Signed(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Token::Signed(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Token::Signed(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Token::Signed(i64::from_be_bytes(self.array()?)),
            Marker::F32 => Token::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Token::Float(f64::from_be_bytes(self.array()?)),
            Marker::FixStr(length) => Token::Text(self.text(length.into())?),
            Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                let length = self.length(kind - Marker::Str8.to_u8())?;
                Token::Text(self.text(length)?)
            }
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
                let length = self.length(kind - Marker::Bin8.to_u8())?;
                Token::Bytes(self.bytes(length)?)
            }
            Marker::FixArray(items) => Token::List(items.into()),
            Marker::Array16 | Marker::Array32 => Token::List(self.length(1 + (kind & 1))?),
            Marker::FixMap(pairs) => Token::Map(pairs.into()),
            Marker::Map16 | Marker::Map32 => Token::Map(self.length(1 + (kind & 1))?),
            _ => return Err(DecodeError::Kind(kind)),
        })
    }

    /// Skips a value with all that is in it.
    pub(super) fn skip(&mut self) -> Result<(), DecodeError> {
        let mut values = 1u64;
        while values > 0 {
            values -= 1;
            match self.next()? {
                Token::List(items) => values = values.saturating_add(items.into()),
                Token::Map(pairs) => values = values.saturating_add(2 * u64::from(pairs)),
                _ => {}
            }
        }
        Ok(())
    }

    fn bytes(&mut self, length: u32) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(length).map_err(|_| DecodeError::Short)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// An integer of `1 << log2_size` bytes.
    fn unsigned(&mut self, log2_size: u8) -> Result<u64, DecodeError> {
        Ok(match log2_size {
            0 => u8::from_be_bytes(self.array()?).into(),
            1 => u16::from_be_bytes(self.array()?).into(),
            2 => u32::from_be_bytes(self.array()?).into(),
            _ => u64::from_be_bytes(self.array()?),
        })
    }

    /// A length of `1 << log2_size` bytes, at most four.
    fn length(&mut self, log2_size: u8) -> Result<u32, DecodeError> {
        self.unsigned(log2_size).map(|length| u32::try_from(length).unwrap_or(u32::MAX))
    }

    fn text(&mut self, length: u32) -> Result<&'a str, DecodeError> {
        str::from_utf8(self.bytes(length)?).map_err(|_| DecodeError::Text)
    }
}
