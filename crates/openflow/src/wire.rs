//! The encoding of numbers in messages: big endian, padded to multiples of eight bytes.

use crate::ErrorCode;

/// Reads fields from the front.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// The error if a field ends after the last byte.
    short: ErrorCode,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], short: ErrorCode) -> Self {
        Self { bytes, short }
    }

    /// Number of bytes left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All bytes left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ErrorCode> {
        let (first, rest) = self.bytes.split_at_checked(count).ok_or(self.short)?;
        self.bytes = rest;
        Ok(first)
    }

    /// A reader of the next bytes, with another error.
    pub(crate) fn part(&mut self, count: usize, short: ErrorCode) -> Result<Self, ErrorCode> {
        Ok(Self { bytes: self.bytes(count)?, short })
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<(), ErrorCode> {
        self.bytes(count).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ErrorCode> {
        let (first, rest) = self.bytes.split_first_chunk::<N>().ok_or(self.short)?;
        self.bytes = rest;
        Ok(*first)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ErrorCode> {
        self.array::<1>().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ErrorCode> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ErrorCode> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ErrorCode> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn mac(&mut self) -> Result<packet::MacAddr, ErrorCode> {
        self.array().map(packet::MacAddr)
    }

    /// A number of at most 16 bytes.
    pub(crate) fn number(&mut self, bytes: usize) -> Result<u128, ErrorCode> {
        Ok(self.bytes(bytes)?.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// A text that ends with a zero byte, in a field of fixed size. Bytes that are not printable ASCII become `?`.
    pub(crate) fn text(&mut self, size: usize) -> Result<String, ErrorCode> {
        let field = self.bytes(size)?.split_last().map_or(&[][..], |(_, text)| text);
        Ok(field.iter().take_while(|byte| **byte != 0).map(|byte| printable(*byte)).collect())
    }

    /// Checks that no bytes are left.
    pub(crate) fn end(self) -> Result<(), ErrorCode> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.short) }
    }
}

fn printable(byte: u8) -> char {
    if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '?' }
}

/// Appends fields.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    /// Number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn pad(&mut self, count: usize) -> &mut Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// A number in at most 16 bytes.
    pub(crate) fn number(&mut self, value: u128, bytes: usize) -> &mut Self {
        let all = value.to_be_bytes();
        self.bytes(all.get(all.len().saturating_sub(bytes)..).unwrap_or_default())
    }

    /// A text in a field of fixed size, which ends with a zero byte.
    pub(crate) fn text(&mut self, text: &str, size: usize) -> &mut Self {
        let start = self.len();
        for character in text.chars().take(size.saturating_sub(1)) {
            self.u8(u8::try_from(character).map_or(b'?', |byte| printable(byte) as u8));
        }
        self.pad((start + size).saturating_sub(self.len()))
    }

    /// Appends zeros until the length since `start` is a multiple of eight.
    pub(crate) fn align(&mut self, start: usize) -> &mut Self {
        self.pad((self.len() - start).next_multiple_of(8) - (self.len() - start))
    }

    /// Writes the length since `start` at an offset. Longer parts are refused by the limit of a message.
    pub(crate) fn set_length(&mut self, at: usize, start: usize) {
        let length = u16::try_from(self.len() - start).unwrap_or(u16::MAX);
        if let Some(place) = self.0.get_mut(at..at + 2) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// A number, or `None` for any (`OFPP_ANY`, `OFPG_ANY`, `OFPQ_ALL`, `OFPM_ALL`).
pub(crate) fn optional(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

/// A number, or that for any.
pub(crate) fn or_any(number: Option<u32>) -> u32 {
    number.unwrap_or(u32::MAX)
}
