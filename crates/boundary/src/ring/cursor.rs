//! The two indices of a single-producer single-consumer ring, and its sleep flags.
//!
//! Packet rings count slots with them, mailbox channels count bytes. The header is four cache lines, so that in normal
//! operation no line is written by both sides:
//!
//! | offset | word | written by |
//! |---|---|---|
//! | 0 | head: units ever written | writer |
//! | 64 | tail: units ever taken | reader |
//! | 128 | 1 while the reader sleeps | reader; cleared by the writer when it must ring the doorbell |
//! | 192 | 1 while the writer sleeps | writer; cleared by the reader when it must ring the doorbell |
//!
//! Indices are not reduced to the capacity and wrap at 2^32. Each side keeps its own index, and the last value of the
//! peer's, in private memory: a side writes the shared copy of its own index but never reads it.
//!
//! No wake-up is lost: a side that goes to sleep sets its flag, executes a fence, and checks once more; a side that
//! publishes stores its index, executes a fence, and checks the flag. At least one of the two sees the other's store
//! (`tests/loom.rs`).

use crate::limits::{MAX_SLOTS, MIN_SLOTS};
use crate::memory::SharedMemory;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const HEAD: usize = 0;
const TAIL: usize = 64;
const READER_SLEEPS: usize = 128;
const WRITER_SLEEPS: usize = 192;

/// Size of the header that precedes a ring's first unit.
pub(crate) const HEADER: usize = 256;

/// The peer stored an index that no correct peer can store. The ring can no longer be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptIndex {
    /// The value in shared memory.
    pub found: u32,
    /// The smallest valid index.
    pub least: u32,
    /// How far a valid index may exceed `least`.
    pub span: u32,
}

impl fmt::Display for CorruptIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ring index {} is not within {} of {}", self.found, self.span, self.least)
    }
}

impl core::error::Error for CorruptIndex {}

/// Why a region cannot hold a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// The number of slots is not a power of two from 64 to 2048.
    Slots(u32),
    /// The region is smaller than the ring.
    Region {
        /// Bytes that the ring needs.
        needed: usize,
        /// Bytes that the region has.
        found: usize,
    },
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots(slots) => {
                write!(
                    f,
                    "a ring of {slots} slots: it must be a power of two from {MIN_SLOTS} to {MAX_SLOTS}"
                )
            }
            Self::Region { needed, found } => {
                write!(f, "the ring needs {needed} bytes, its region has {found}")
            }
        }
    }
}

impl core::error::Error for RingError {}

/// The number of slots of a ring: a power of two from 64 to 2048.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slots(u32);

impl Slots {
    /// Checks a number of slots.
    pub const fn new(slots: u32) -> Result<Self, RingError> {
        if slots.is_power_of_two() && slots >= MIN_SLOTS && slots <= MAX_SLOTS {
            Ok(Self(slots))
        } else {
            Err(RingError::Slots(slots))
        }
    }

    /// The number of slots.
    pub const fn count(self) -> u32 {
        self.0
    }

    /// Bytes of a ring with this number of slots, including its header.
    pub const fn bytes(self) -> usize {
        HEADER + self.0 as usize * 8
    }

    /// Checks that a ring with this number of slots fits.
    pub(crate) fn fit(self, memory: &impl SharedMemory) -> Result<(), RingError> {
        match memory.size() >= self.bytes() {
            true => Ok(()),
            false => Err(RingError::Region { needed: self.bytes(), found: memory.size() }),
        }
    }
}

/// The indices in a ring's shared words: units ever written, units ever taken. Either side may have written any value:
/// they say where a ring continues, but the peer remains untrusted.
pub fn indices(memory: &impl SharedMemory) -> (u32, u32) {
    (memory.load_u32(HEAD, Acquire), memory.load_u32(TAIL, Acquire))
}

/// The writing side's indices.
#[derive(Debug)]
pub(crate) struct Writer {
    capacity: u32,
    /// The next unit to write. It exceeds `published` by the units that are not yet visible.
    head: u32,
    published: u32,
    /// The last known value of the reader's index.
    tail: u32,
}

impl Writer {
    /// Indices of a ring of `capacity` units (a power of two) in which `position` units were ever written and taken.
    pub(crate) const fn new(capacity: u32, position: u32) -> Self {
        Self { capacity, head: position, published: position, tail: position }
    }

    pub(crate) const fn head(&self) -> u32 {
        self.head
    }

    /// Whether a unit is known to be free.
    #[inline(always)]
    pub(crate) const fn has_room(&self) -> bool {
        self.head.wrapping_sub(self.tail) < self.capacity
    }

    /// The number of units that are known to be free.
    #[inline(always)]
    pub(crate) const fn room(&self) -> u32 {
        self.capacity.wrapping_sub(self.head.wrapping_sub(self.tail))
    }

    /// The number of units that can be written. Loads the reader's index only if fewer than `wanted` are known to be
    /// free.
    #[inline(always)]
    pub(crate) fn free(&mut self, memory: &impl SharedMemory, wanted: u32) -> Result<u32, CorruptIndex> {
        if self.capacity.wrapping_sub(self.head.wrapping_sub(self.tail)) < wanted {
            let found = memory.load_u32(TAIL, Acquire);
            let span = self.published.wrapping_sub(self.tail);
            if found.wrapping_sub(self.tail) > span {
                return Err(CorruptIndex { found, least: self.tail, span });
            }
            self.tail = found;
        }
        Ok(self.capacity.wrapping_sub(self.head.wrapping_sub(self.tail)))
    }

    /// Advances by `units`, at most as many as `free` has returned.
    #[inline(always)]
    pub(crate) const fn advance(&mut self, units: u32) {
        self.head = self.head.wrapping_add(units);
    }

    /// Makes written units visible. Returns true if the reader slept and the caller must ring its doorbell.
    #[inline(always)]
    pub(crate) fn publish(&mut self, memory: &impl SharedMemory) -> bool {
        if self.published == self.head {
            return false;
        }
        self.published = self.head;
        memory.store_u32(HEAD, self.head, Release);
        take_flag(memory, READER_SLEEPS)
    }

    /// Prepares for sleep until `wanted` units are free. Returns false if they are already free; the caller must then
    /// not sleep.
    pub(crate) fn prepare_sleep(
        &mut self,
        memory: &impl SharedMemory,
        wanted: u32,
    ) -> Result<bool, CorruptIndex> {
        memory.store_u32(WRITER_SLEEPS, 1, Relaxed);
        memory.fence();
        let wanted = wanted.min(self.capacity);
        let room = self.free(memory, wanted)? >= wanted;
        if room {
            self.end_sleep(memory);
        }
        Ok(!room)
    }

    /// Undoes `prepare_sleep`.
    pub(crate) fn end_sleep(&self, memory: &impl SharedMemory) {
        memory.store_u32(WRITER_SLEEPS, 0, Relaxed);
    }
}

/// The reading side's indices.
#[derive(Debug)]
pub(crate) struct Reader {
    capacity: u32,
    /// The next unit to take. It exceeds `released` by the units that the writer may not reuse yet.
    tail: u32,
    released: u32,
    /// The last known value of the writer's index.
    head: u32,
}

impl Reader {
    /// Like [`Writer::new`].
    pub(crate) const fn new(capacity: u32, position: u32) -> Self {
        Self { capacity, tail: position, released: position, head: position }
    }

    pub(crate) const fn tail(&self) -> u32 {
        self.tail
    }

    /// The number of units that are known to be available.
    #[inline(always)]
    pub(crate) const fn known(&self) -> u32 {
        self.head.wrapping_sub(self.tail)
    }

    /// The number of units that can be taken. Loads the writer's index only if fewer than `wanted` are known to be
    /// available.
    #[inline(always)]
    pub(crate) fn available(&mut self, memory: &impl SharedMemory, wanted: u32) -> Result<u32, CorruptIndex> {
        if self.known() < wanted {
            let found = memory.load_u32(HEAD, Acquire);
            let span = self.capacity.wrapping_sub(self.head.wrapping_sub(self.released));
            if found.wrapping_sub(self.head) > span {
                return Err(CorruptIndex { found, least: self.head, span });
            }
            self.head = found;
        }
        Ok(self.known())
    }

    /// Advances by `units`, at most as many as `available` has returned.
    #[inline(always)]
    pub(crate) const fn advance(&mut self, units: u32) {
        self.tail = self.tail.wrapping_add(units);
    }

    /// Lets the writer reuse the units that were taken. Returns true if the writer slept and the caller must ring its
    /// doorbell.
    #[inline(always)]
    pub(crate) fn release(&mut self, memory: &impl SharedMemory) -> bool {
        if self.released == self.tail {
            return false;
        }
        self.released = self.tail;
        memory.store_u32(TAIL, self.tail, Release);
        take_flag(memory, WRITER_SLEEPS)
    }

    /// Prepares for sleep until a unit is available. Returns false if one already is; the caller must then not sleep.
    pub(crate) fn prepare_sleep(&mut self, memory: &impl SharedMemory) -> Result<bool, CorruptIndex> {
        memory.store_u32(READER_SLEEPS, 1, Relaxed);
        memory.fence();
        let work = self.available(memory, 1)? > 0;
        if work {
            self.end_sleep(memory);
        }
        Ok(!work)
    }

    /// Undoes `prepare_sleep`.
    pub(crate) fn end_sleep(&self, memory: &impl SharedMemory) {
        memory.store_u32(READER_SLEEPS, 0, Relaxed);
    }
}

/// Whether the peer sleeps. Clears its flag, so that one sleep is answered by one doorbell.
///
/// The store may clear a flag that the peer has set again meanwhile: the pending doorbell then answers that sleep too.
#[inline(always)]
fn take_flag(memory: &impl SharedMemory, flag: usize) -> bool {
    memory.fence();
    let sleeps = memory.load_u32(flag, Relaxed) != 0;
    if sleeps {
        memory.store_u32(flag, 0, Relaxed);
    }
    sleeps
}
