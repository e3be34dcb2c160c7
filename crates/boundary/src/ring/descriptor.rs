//! The contents of a ring's slot, and the pool of buffers that it refers to.

use crate::limits::{BUFFER_SIZE, MAX_BUFFERS};
use core::fmt;
use core::ops::Range;

const BUFFER_MASK: u64 = (1 << 20) - 1;
const OFFSET_SHIFT: u32 = 20;
const OFFSET_MASK: u64 = (1 << 12) - 1;
const LENGTH_SHIFT: u32 = 32;
const LENGTH_MASK: u64 = (1 << 17) - 1;
const META_SHIFT: u32 = 49;

const _: () = assert!(MAX_BUFFERS as u64 - 1 <= BUFFER_MASK && BUFFER_SIZE as u64 <= OFFSET_MASK);

/// One packet in a pool: its buffer, its offset in the buffer, and its length. A slot is one 64-bit word, so it is
/// loaded atomically: 20 bits of the buffer's number, 12 of the offset, 17 of the length, and 15 of metadata.
///
/// Every slot holds a buffer at all times: a consumer that keeps a buffer leaves another in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The buffer's number in its pool.
    pub buffer: u32,
    /// Offset of the packet in the buffer, in bytes.
    pub offset: u16,
    /// Length of the packet in bytes.
    pub length: u32,
    /// From a box: its [`Answer`](crate::Answer) for the packet. To a box: zero.
    pub meta: u16,
}

impl Descriptor {
    /// The descriptor in a slot's word.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            buffer: (bits & BUFFER_MASK) as u32,
            offset: (bits >> OFFSET_SHIFT & OFFSET_MASK) as u16,
            length: (bits >> LENGTH_SHIFT & LENGTH_MASK) as u32,
            meta: (bits >> META_SHIFT) as u16,
        }
    }

    /// The slot's word for this descriptor.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.buffer as u64 & BUFFER_MASK
            | (self.offset as u64 & OFFSET_MASK) << OFFSET_SHIFT
            | (self.length as u64 & LENGTH_MASK) << LENGTH_SHIFT
            | (self.meta as u64) << META_SHIFT
    }
}

/// A descriptor that is not inside its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorError {
    /// The pool has no such buffer.
    Buffer(u32),
    /// The packet is not inside its buffer.
    Extent {
        /// The packet's offset.
        offset: u16,
        /// The packet's length.
        length: u32,
    },
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(buffer) => write!(f, "buffer {buffer} is not in the pool"),
            Self::Extent { offset, length } => {
                write!(f, "{length} bytes at offset {offset} exceed the buffer of {BUFFER_SIZE} bytes")
            }
        }
    }
}

impl core::error::Error for DescriptorError {}

/// The layout of a pool: contiguous buffers of [`BUFFER_SIZE`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLayout {
    buffers: u32,
}

/// Size of a cache line in bytes. Also the minimum headroom of a packet, where headers can be prepended.
const CACHE_LINE: u16 = 64;

/// The number of lines over which the starts of packets are spread.
const LINES: u16 = 8;

impl PoolLayout {
    /// The pool in a region of `bytes` bytes: its whole buffers, at most [`MAX_BUFFERS`].
    pub const fn in_bytes(bytes: usize) -> Self {
        let buffers = bytes / BUFFER_SIZE;
        Self { buffers: if buffers < MAX_BUFFERS as usize { buffers as u32 } else { MAX_BUFFERS } }
    }

    /// The number of buffers.
    pub const fn buffers(self) -> u32 {
        self.buffers
    }

    /// The offset of a buffer in the pool, if it exists.
    #[inline(always)]
    pub const fn buffer(self, buffer: u32) -> Result<usize, DescriptorError> {
        match buffer < self.buffers {
            true => Ok(buffer as usize * BUFFER_SIZE),
            false => Err(DescriptorError::Buffer(buffer)),
        }
    }

    /// The best offset for a packet of `length` bytes in this buffer: it leaves headroom, and differs from that of the
    /// neighbouring buffers. Buffers are a power of two apart, so packets at equal offsets would evict each other's
    /// headers from the caches.
    #[inline(always)]
    pub const fn packet_offset(buffer: u32, length: usize) -> u16 {
        let spread = CACHE_LINE + (buffer as u16 >> 1) % LINES * CACHE_LINE;
        match length {
            length if length + spread as usize <= BUFFER_SIZE => spread,
            length if length + CACHE_LINE as usize <= BUFFER_SIZE => CACHE_LINE,
            _ => 0,
        }
    }

    /// The bytes of the pool that a descriptor refers to, if all of them are in its buffer.
    #[inline(always)]
    pub fn range(self, descriptor: Descriptor) -> Result<Range<usize>, DescriptorError> {
        let base = self.buffer(descriptor.buffer)?;
        let (offset, length) = (usize::from(descriptor.offset), descriptor.length as usize);
        match offset + length <= BUFFER_SIZE {
            true => Ok(base + offset..base + offset + length),
            false => Err(DescriptorError::Extent { offset: descriptor.offset, length: descriptor.length }),
        }
    }
}
