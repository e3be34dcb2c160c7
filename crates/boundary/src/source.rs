//! Packets that are still in the memory of the box that sent them.

use crate::memory::{Mapped, SharedMemory};
use crate::owners::{BufferOwners, PoolMember};
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::ops::Range;

/// The memory that contains a port's packets, as the source of copies. It keeps the memory mapped.
#[derive(Clone)]
pub struct SourceRegion {
    memory: Mapped,
    /// The box's membership in a shared pool.
    member: Option<(Arc<BufferOwners>, PoolMember)>,
    _owner: Arc<dyn Any + Send + Sync>,
}

impl SourceRegion {
    pub(crate) fn new(
        memory: Mapped,
        member: Option<(Arc<BufferOwners>, PoolMember)>,
        owner: impl Any + Send + Sync,
    ) -> Self {
        Self { memory, member, _owner: Arc::new(owner) }
    }

    /// The box's membership, if `holders` records the owners of this memory's buffers.
    pub(crate) fn holder(&self, holders: &Arc<BufferOwners>) -> Option<PoolMember> {
        self.member.as_ref().filter(|(own, _)| Arc::ptr_eq(own, holders)).map(|(_, holder)| *holder)
    }

    /// Copies bytes from `start` on. Fills `into` with zeros if the range is out of bounds.
    #[inline(always)]
    pub fn read(&self, start: usize, into: &mut [u8]) {
        self.memory.read(start, into);
    }

    /// A range of the memory, to be copied to another port.
    #[inline(always)]
    pub fn tail(&self, range: Range<usize>) -> PayloadTail<'_> {
        PayloadTail { memory: &self.memory, start: range.start, length: range.len() }
    }
}

impl fmt::Debug for SourceRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceRegion").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// The tail of a packet that is still in its source region. The box that sent it may write to it at any time.
#[derive(Clone, Copy, Debug)]
pub struct PayloadTail<'a> {
    memory: &'a Mapped,
    start: usize,
    length: usize,
}

impl PayloadTail<'_> {
    /// Its length in bytes.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Its offset in its memory.
    #[inline(always)]
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Prefetches the tail for a copy.
    #[inline]
    pub fn prefetch(&self) {
        self.memory.prefetch_reads(self.start, self.length);
    }

    /// Copies it to other memory. Does nothing if a range is out of bounds.
    #[inline(always)]
    pub(crate) fn copy_to(&self, to: &Mapped, offset: usize) {
        self.memory.copy_to(self.start, to, offset, self.length);
    }
}
