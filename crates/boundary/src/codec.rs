//! The encoding of numbers and byte strings in pages and messages.
//!
//! Fields are little endian without padding; a byte string is its length (32 bits) and its bytes. Reading never panics,
//! and every length is checked against the remaining bytes before anything is read.

use alloc::vec::Vec;
use core::fmt;

/// Why bytes from the other side cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A field begins or ends after the last byte.
    Short,
    /// Bytes are left over after the last field.
    Trailing(usize),
    /// A string is not UTF-8.
    Text,
    /// A number is invalid in its field.
    Value(u64),
    /// A list is longer than its limit.
    Count(usize),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "it ends in the middle of a field"),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes follow the last field"),
            Self::Text => write!(f, "a text is not UTF-8"),
            Self::Value(value) => write!(f, "the value {value} is invalid"),
            Self::Count(count) => write!(f, "a list of {count} entries is too long"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Appends fields.
#[derive(Default)]
pub(crate) struct Encoder(pub(crate) Vec<u8>);

impl Encoder {
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a byte string. A string longer than 32 bits can express is truncated; the message limits reject it long
    /// before.
    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.u32(length);
        self.0.extend_from_slice(&value[..length as usize]);
        self
    }
}

/// Reads fields from the front.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a>(pub(crate) &'a [u8]);

impl<'a> Decoder<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u32()? as usize;
        let (first, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, DecodeError> {
        core::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Text)
    }

    /// Reads the number of the entries that follow, at most `limit`.
    pub(crate) fn count(&mut self, limit: usize) -> Result<usize, DecodeError> {
        let count = self.u32()? as usize;
        if count <= limit { Ok(count) } else { Err(DecodeError::Count(count)) }
    }

    /// Checks that no bytes are left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.0.len())) }
    }
}
