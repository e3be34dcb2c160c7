//! The side of a ring that puts packets in.

use super::cursor::{CorruptIndex, HEADER, RingError, Slots, Writer};
use super::descriptor::Descriptor;
use crate::memory::SharedMemory;
use core::sync::atomic::Ordering::Relaxed;

/// Puts descriptors into a ring.
///
/// Ask [`free`](Self::free) once a batch, [`push`](Self::push) each packet, [`publish`](Self::publish)
/// once.
#[derive(Debug)]
pub struct Producer<M> {
    memory: M,
    mask: u32,
    writer: Writer,
    /// Slots from the next one on whose buffers were taken out ahead of time.
    borrowed: u32,
}

impl<M: SharedMemory> Producer<M> {
    /// The producer of a new ring (zeroed header), which lies at the start of `memory`.
    pub fn new(memory: M, slots: Slots) -> Result<Self, RingError> {
        Self::at(memory, slots, 0)
    }

    /// The producer of a ring that was empty when both indices stood at `position`.
    pub fn at(memory: M, slots: Slots, position: u32) -> Result<Self, RingError> {
        slots.fit(&memory)?;
        Ok(Self {
            memory,
            mask: slots.count() - 1,
            writer: Writer::new(slots.count(), position),
            borrowed: 0,
        })
    }

    /// Fills all slots of a new ring with the buffers that the ring starts with: `first` and those
    /// after it.
    pub fn fill(&mut self, first: u16) {
        self.fill_with((0..=self.mask).map(|slot| first.wrapping_add(slot as u16)));
    }

    /// As [`fill`](Self::fill), with these buffers: one for each slot.
    pub fn fill_with(&mut self, buffers: impl Iterator<Item = u16>) {
        for (slot, buffer) in (0..=self.mask).zip(buffers) {
            self.memory.store_u64(
                place(slot),
                Descriptor { buffer, ..Descriptor::default() }.to_bits(),
                Relaxed,
            );
        }
    }

    /// Slots that the ring has.
    pub fn slots(&self) -> u32 {
        self.mask + 1
    }

    /// Slots that can be pushed. Looks at the consumer's index only when fewer than `wanted` are known.
    #[inline(always)]
    pub fn free(&mut self, wanted: u32) -> Result<u32, CorruptIndex> {
        self.writer.free(&self.memory, wanted)
    }

    /// What the next slot holds: the buffer to write the next packet into, unless another is brought along.
    ///
    /// The consumer chose it, so its value is to be checked against the pool. Nothing when no slot is
    /// known free, or while buffers are [borrowed](Self::borrow).
    #[inline(always)]
    pub fn spare(&self) -> Option<Descriptor> {
        let word = || self.memory.load_u64(place(self.writer.head() & self.mask), Relaxed);
        (self.writer.has_room() && self.borrowed == 0).then(|| Descriptor::from_bits(word()))
    }

    /// Takes the buffer out of the next slot that still has one, before the slot is filled: for a producer that keeps
    /// buffers and brings others along. Each [`push`](Self::push) then fills a slot with a buffer that the
    /// producer has. As for [`spare`](Self::spare), the value is to be checked. Nothing when no slot with a
    /// buffer is known free.
    #[inline(always)]
    pub fn borrow(&mut self) -> Option<Descriptor> {
        if self.borrowed >= self.writer.room() {
            return None;
        }
        let slot = self.writer.head().wrapping_add(self.borrowed) & self.mask;
        self.borrowed += 1;
        Some(Descriptor::from_bits(self.memory.load_u64(place(slot), Relaxed)))
    }

    /// Free slots whose buffers were taken out.
    pub const fn borrowed(&self) -> u32 {
        self.borrowed
    }

    /// What the slot holds that will be filled after `distance` others: a hint where memory will be needed
    /// soon, and nothing to act upon, as the slot is loaded again when it is filled.
    #[inline(always)]
    pub fn peek_ahead(&self, distance: u32) -> Option<Descriptor> {
        let slot = self.writer.head().wrapping_add(distance) & self.mask;
        (self.writer.room() > distance)
            .then(|| Descriptor::from_bits(self.memory.load_u64(place(slot), Relaxed)))
    }

    /// Puts a descriptor into the next slot, not visible before [`publish`](Self::publish). False: no
    /// slot is known free.
    #[inline(always)]
    pub fn push(&mut self, descriptor: Descriptor) -> bool {
        let room = self.writer.has_room();
        if room {
            self.memory.store_u64(place(self.writer.head() & self.mask), descriptor.to_bits(), Relaxed);
            self.writer.advance(1);
            self.borrowed = self.borrowed.saturating_sub(1);
        }
        room
    }

    /// Makes what was pushed visible. True: the consumer sleeps, and the caller is to wake it.
    #[inline(always)]
    pub fn publish(&mut self) -> bool {
        self.writer.publish(&self.memory)
    }

    /// Announces that the caller sleeps until a slot is free that has its buffer. False: one is already, don't
    /// sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, CorruptIndex> {
        self.prepare_sleep_for(1)
    }

    /// As [`prepare_sleep`](Self::prepare_sleep), for so many slots.
    pub fn prepare_sleep_for(&mut self, slots: u32) -> Result<bool, CorruptIndex> {
        self.writer.prepare_sleep(&self.memory, self.borrowed.saturating_add(slots))
    }

    /// Takes the announcement back, after waking for another reason.
    pub fn end_sleep(&self) {
        self.writer.end_sleep(&self.memory);
    }

    /// Descriptors ever pushed, modulo 2^32.
    pub const fn position(&self) -> u32 {
        self.writer.head()
    }
}

#[inline(always)]
pub(super) const fn place(slot: u32) -> usize {
    HEADER + slot as usize * 8
}
