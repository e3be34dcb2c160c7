//! Integers in the byte order of the machine that wrote a capture.

use core::array;

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The 16-bit integer at `offset`, if the bytes reach that far.
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let bytes = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    /// The 32-bit integer at `offset`, if the bytes reach that far.
    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let bytes = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Four 32-bit integers.
    #[inline]
    pub(crate) fn words(self, bytes: &[u8; 16]) -> [u32; 4] {
        let words: [u32; 4] = array::from_fn(|at| {
            u32::from_le_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
        });
        match self {
            ByteOrder::Little => words,
            ByteOrder::Big => words.map(u32::swap_bytes),
        }
    }

    /// The 64-bit integer at `offset`, if the bytes reach that far.
    #[inline]
    pub(crate) fn u64(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let bytes = *bytes.get(offset..)?.first_chunk()?;
        Some(match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }
}
