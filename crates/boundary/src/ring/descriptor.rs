//! What a ring's slot holds, and the pool of buffers that it points into.

use crate::limits::{BUFFER_SIZE, MAX_BUFFERS};
use core::fmt;
use core::ops::Range;

/// One packet in a pool: which buffer, where in it, how long. A slot is one 64-bit word, so it is loaded
/// in one piece.
///
/// Every slot holds a buffer at all times: a consumer that keeps a buffer leaves another in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Number of the buffer in its pool.
    pub buffer: u16,
    /// Bytes from the buffer's start to the packet's first byte.
    pub offset: u16,
    /// Bytes of the packet.
    pub length: u16,
    /// Reserved for offloads; zero in this version, and carried along unread.
    pub flags: u16,
}

impl Descriptor {
    /// The descriptor in a slot's word.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            buffer: bits as u16,
            offset: (bits >> 16) as u16,
            length: (bits >> 32) as u16,
            flags: (bits >> 48) as u16,
        }
    }

    /// The word that a slot holds.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.buffer as u64
            | (self.offset as u64) << 16
            | (self.length as u64) << 32
            | (self.flags as u64) << 48
    }
}

/// A descriptor that doesn't lie in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorError {
    /// The pool has no such buffer.
    Buffer(u16),
    /// The packet leaves its buffer.
    Extent {
        /// First byte.
        offset: u16,
        /// Bytes.
        length: u16,
    },
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(buffer) => write!(f, "buffer {buffer} is not in the pool"),
            Self::Extent { offset, length } => {
                write!(f, "{length} bytes from {offset} leave the buffer of {BUFFER_SIZE} bytes")
            }
        }
    }
}

impl core::error::Error for DescriptorError {}

/// The shape of a pool: buffers of [`BUFFER_SIZE`] bytes, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLayout {
    buffers: u32,
}

/// Bytes of a cache line, and the least room that is left before a packet, for headers to be put in front.
const CACHE_LINE: u16 = 64;

/// Lines among which packets' beginnings are spread.
const LINES: u16 = 8;

impl PoolLayout {
    /// The pool that a region of so many bytes holds: its whole buffers, at most [`MAX_BUFFERS`].
    pub const fn in_bytes(bytes: usize) -> Self {
        let buffers = bytes / BUFFER_SIZE;
        Self { buffers: if buffers < MAX_BUFFERS as usize { buffers as u32 } else { MAX_BUFFERS } }
    }

    /// Number of buffers.
    pub const fn buffers(self) -> u32 {
        self.buffers
    }

    /// Where in the pool's region a buffer begins, if the pool has it.
    #[inline(always)]
    pub const fn buffer(self, buffer: u16) -> Result<usize, DescriptorError> {
        match (buffer as u32) < self.buffers {
            true => Ok(buffer as usize * BUFFER_SIZE),
            false => Err(DescriptorError::Buffer(buffer)),
        }
    }

    /// Where in a buffer a packet of so many bytes best begins: with room before it, and in other lines of the
    /// buffer than its neighbours'. Buffers lie a power of two apart, so packets that all began at the same
    /// place would drive each other's headers out of the caches.
    #[inline(always)]
    pub const fn packet_offset(buffer: u16, length: usize) -> u16 {
        let spread = CACHE_LINE + (buffer >> 1) % LINES * CACHE_LINE;
        match length {
            length if length + spread as usize <= BUFFER_SIZE => spread,
            length if length + CACHE_LINE as usize <= BUFFER_SIZE => CACHE_LINE,
            _ => 0,
        }
    }

    /// The bytes of the pool's region that a descriptor names, if all of them are in its buffer.
    #[inline(always)]
    pub fn range(self, descriptor: Descriptor) -> Result<Range<usize>, DescriptorError> {
        let base = self.buffer(descriptor.buffer)?;
        let (offset, length) = (usize::from(descriptor.offset), usize::from(descriptor.length));
        match offset + length <= BUFFER_SIZE {
            true => Ok(base + offset..base + offset + length),
            false => Err(DescriptorError::Extent { offset: descriptor.offset, length: descriptor.length }),
        }
    }
}
