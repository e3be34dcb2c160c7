//! The producer of a ring: puts packets in.

use super::cursor::{CorruptIndex, HEADER, RingError, Slots, Writer};
use super::descriptor::Descriptor;
use crate::memory::{Mapped, MappedRing, SharedMemory};
use core::sync::atomic::Ordering::Relaxed;

/// Puts descriptors into a ring.
///
/// Call [`free`](Self::free) once per batch, [`push`](Self::push) for each packet, and [`publish`](Self::publish) once.
#[derive(Debug)]
pub struct Producer<M> {
    memory: M,
    mask: u32,
    writer: Writer,
    /// The number of slots, starting with the next one, whose buffers were borrowed.
    borrowed: u32,
}

impl<M: SharedMemory> Producer<M> {
    /// The producer of a new ring (zeroed header) at the start of `memory`.
    pub fn new(memory: M, slots: Slots) -> Result<Self, RingError> {
        Self::at(memory, slots, 0)
    }

    /// The producer of a ring that was empty with both indices at `position`.
    pub fn at(memory: M, slots: Slots, position: u32) -> Result<Self, RingError> {
        slots.fit(&memory)?;
        Ok(Self {
            memory,
            mask: slots.count() - 1,
            writer: Writer::new(slots.count(), position),
            borrowed: 0,
        })
    }

    /// Fills all slots of a new ring with its initial buffers: `first` and those after it.
    pub fn fill(&mut self, first: u32) {
        self.fill_with((0..=self.mask).map(|slot| first.wrapping_add(slot)));
    }

    /// Like [`fill`](Self::fill), with these buffers: one for each slot.
    pub fn fill_with(&mut self, buffers: impl Iterator<Item = u32>) {
        for (slot, buffer) in (0..=self.mask).zip(buffers) {
            self.memory.store_u64(
                slot_offset(slot),
                Descriptor { buffer, ..Descriptor::default() }.to_bits(),
                Relaxed,
            );
        }
    }

    /// The ring's number of slots.
    pub fn slots(&self) -> u32 {
        self.mask + 1
    }

    /// The number of slots that can be pushed. Loads the consumer's index only if fewer than `wanted` are known to be
    /// free.
    #[inline(always)]
    pub fn free(&mut self, wanted: u32) -> Result<u32, CorruptIndex> {
        self.writer.free(&self.memory, wanted)
    }

    /// The buffer in the next slot, into which the next packet can be written.
    ///
    /// The consumer chose it, so it must be checked against the pool. Returns `None` if no slot is known to be free, or
    /// while buffers are [borrowed](Self::borrow).
    #[inline(always)]
    pub fn spare(&self) -> Option<Descriptor> {
        let word = || self.memory.load_u64(slot_offset(self.writer.head() & self.mask), Relaxed);
        (self.writer.has_room() && self.borrowed == 0).then(|| Descriptor::from_bits(word()))
    }

    /// Takes the buffer out of the next free slot that still has one, before the slot is filled: for a producer that
    /// keeps buffers and supplies others. Each [`push`](Self::push) must then supply a buffer that the producer owns.
    /// As with [`spare`](Self::spare), the value must be checked. Returns `None` if no slot with a buffer is known to
    /// be free.
    #[inline(always)]
    pub fn borrow(&mut self) -> Option<Descriptor> {
        if self.borrowed >= self.writer.room() {
            return None;
        }
        let slot = self.writer.head().wrapping_add(self.borrowed) & self.mask;
        self.borrowed += 1;
        Some(Descriptor::from_bits(self.memory.load_u64(slot_offset(slot), Relaxed)))
    }

    /// The number of free slots whose buffers were borrowed.
    pub const fn borrowed(&self) -> u32 {
        self.borrowed
    }

    /// The buffer in the slot `distance` after the next one. It is only a hint for prefetching and must not be acted
    /// upon, because the slot is loaded again when it is filled.
    #[inline(always)]
    pub fn peek_ahead(&self, distance: u32) -> Option<Descriptor> {
        let slot = self.writer.head().wrapping_add(distance) & self.mask;
        (self.writer.room() > distance)
            .then(|| Descriptor::from_bits(self.memory.load_u64(slot_offset(slot), Relaxed)))
    }

    /// Puts a descriptor into the next slot; it becomes visible with [`publish`](Self::publish). Returns false if no
    /// slot is known to be free.
    #[inline(always)]
    pub fn push(&mut self, descriptor: Descriptor) -> bool {
        let room = self.writer.has_room();
        if room {
            self.memory.store_u64(slot_offset(self.writer.head() & self.mask), descriptor.to_bits(), Relaxed);
            self.writer.advance(1);
            self.borrowed = self.borrowed.saturating_sub(1);
        }
        room
    }

    /// Makes pushed descriptors visible. Returns true if the consumer sleeps and the caller must wake it.
    #[inline(always)]
    pub fn publish(&mut self) -> bool {
        self.writer.publish(&self.memory)
    }

    /// Prepares for sleep until a slot with its buffer is free. Returns false if there is one already; the caller must
    /// then not sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, CorruptIndex> {
        self.prepare_sleep_for(1)
    }

    /// Like [`prepare_sleep`](Self::prepare_sleep), for `slots` slots.
    pub fn prepare_sleep_for(&mut self, slots: u32) -> Result<bool, CorruptIndex> {
        self.writer.prepare_sleep(&self.memory, self.borrowed.saturating_add(slots))
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep) after waking for another reason.
    pub fn end_sleep(&self) {
        self.writer.end_sleep(&self.memory);
    }

    /// The total number of descriptors pushed, modulo 2^32.
    pub const fn position(&self) -> u32 {
        self.writer.head()
    }
}

impl Producer<Mapped> {
    /// Prefetches the next `count` slots, to take their buffers and to put descriptors into them.
    #[inline(always)]
    pub fn prefetch_slots(&self, count: u32) {
        self.memory.prefetch_ring(HEADER, self.mask, self.writer.head(), count);
    }

    /// Calls `fill` with the next free slots, to put many descriptors into them.
    #[inline(always)]
    pub fn fill_slots<R>(&mut self, fill: impl FnOnce(&mut FreeSlots) -> R) -> Option<R> {
        let ring = self.memory.ring(HEADER, self.mask)?;
        let mut slots =
            FreeSlots { ring, next: self.writer.head(), left: self.writer.room(), borrowed: self.borrowed };
        let result = fill(&mut slots);
        self.writer.advance(slots.next.wrapping_sub(self.writer.head()));
        self.borrowed = slots.borrowed;
        Some(result)
    }
}

/// The free slots of a ring, as far as they are known: see [`Producer::fill_slots`].
#[derive(Debug)]
pub struct FreeSlots {
    ring: MappedRing,
    next: u32,
    left: u32,
    /// How many of them have lent their buffers.
    borrowed: u32,
}

impl FreeSlots {
    /// The buffer in the next slot, as of [`Producer::spare`].
    #[inline(always)]
    pub fn spare(&self) -> Option<Descriptor> {
        (self.left > 0 && self.borrowed == 0).then(|| Descriptor::from_bits(self.ring.load(self.next)))
    }

    /// Puts a descriptor, of a buffer that the producer owns, into the next slot. Returns the buffer that was in it, unless it was
    /// [borrowed](Producer::borrow). As with [`spare`](Producer::spare), it must be checked. Does nothing if there is no slot.
    #[inline(always)]
    pub fn put(&mut self, descriptor: Descriptor) -> Option<Descriptor> {
        if self.left == 0 {
            return None;
        }
        let before = self.spare();
        self.ring.store(self.next, descriptor.to_bits());
        self.borrowed = self.borrowed.saturating_sub(1);
        self.next = self.next.wrapping_add(1);
        self.left -= 1;
        before
    }
}

#[inline(always)]
pub(super) const fn slot_offset(slot: u32) -> usize {
    HEADER + slot as usize * 8
}
