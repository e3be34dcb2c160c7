//! What the host notes of each packet buffer while a box has it.

use alloc::boxed::Box;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// A word for each buffer of a pool, in memory of the host that no box can reach.
///
/// When the host gives a box a packet, it notes the packet's identity under the buffer; when the box returns the buffer, the
/// host reads it there. So no box can claim an identity that it was not given, and no byte about it crosses the boundary.
/// A packet that comes back in another buffer has lost its identity.
///
/// Several threads of the host may use the tags: each has a ring pair of its own at the ports of a box, and the members of a pool
/// have the same tags. The rings order their accesses to a buffer, which is in one ring at a time. A box that gives one buffer back
/// at two ring pairs at once may have its identity taken twice. It gains a second packet of a flow that it was given anyway, at the
/// same place of the chain, and both are counted.
#[derive(Debug)]
pub struct BufferTags(Box<[AtomicU64]>);

impl BufferTags {
    /// Tags for this number of buffers, all zero: none.
    pub fn new(buffers: u32) -> Self {
        Self((0..buffers).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes the tag of a buffer.
    #[inline(always)]
    pub fn set(&self, buffer: u32, tag: u64) {
        if let Some(word) = self.0.get(buffer as usize) {
            word.store(tag, Relaxed);
        }
    }

    /// The tag of a buffer.
    #[inline(always)]
    pub(crate) fn get(&self, buffer: u32) -> u64 {
        self.0.get(buffer as usize).map_or(0, |word| word.load(Relaxed))
    }

    /// Takes the tag of a buffer: a later packet in it has none.
    #[inline(always)]
    pub fn take(&self, buffer: u32) -> u64 {
        let Some(word) = self.0.get(buffer as usize) else { return 0 };
        let tag = word.load(Relaxed);
        word.store(0, Relaxed);
        tag
    }
}
