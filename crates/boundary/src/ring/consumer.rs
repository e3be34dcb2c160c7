//! The consumer of a ring: takes packets out.

use super::cursor::{CorruptIndex, HEADER, Reader, RingError, Slots};
use super::descriptor::Descriptor;
use super::producer::slot_offset;
use crate::memory::{Mapped, SharedMemory};
use core::sync::atomic::Ordering::Relaxed;

/// Takes descriptors out of a ring.
///
/// Call [`available`](Self::available) once per batch, [`pop`](Self::pop) for each packet, and
/// [`release`](Self::release) once.
#[derive(Debug)]
pub struct Consumer<M> {
    memory: M,
    mask: u32,
    reader: Reader,
}

impl<M: SharedMemory> Consumer<M> {
    /// The consumer of a new ring (zeroed header) at the start of `memory`.
    pub fn new(memory: M, slots: Slots) -> Result<Self, RingError> {
        Self::at(memory, slots, 0)
    }

    /// The consumer of a ring that was empty with both indices at `position`.
    pub fn at(memory: M, slots: Slots, position: u32) -> Result<Self, RingError> {
        slots.fit(&memory)?;
        Ok(Self { memory, mask: slots.count() - 1, reader: Reader::new(slots.count(), position) })
    }

    /// The number of descriptors that can be popped. Loads the producer's index only if fewer than `wanted` are known.
    #[inline(always)]
    pub fn available(&mut self, wanted: u32) -> Result<u32, CorruptIndex> {
        self.reader.available(&self.memory, wanted)
    }

    /// Takes the next descriptor and leaves its buffer in the slot. The caller must have finished with it before
    /// [`release`](Self::release).
    ///
    /// The producer chose every field, so the descriptor must be checked against the pool. Returns `None` if no
    /// descriptor is known to be available.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Descriptor> {
        let descriptor = self.peek()?;
        self.reader.advance(1);
        Some(descriptor)
    }

    /// Takes the next descriptor with its buffer, and leaves the buffer `spare` in the slot for the producer.
    #[inline(always)]
    pub fn exchange(&mut self, spare: u32) -> Option<Descriptor> {
        let descriptor = self.peek()?;
        let left = Descriptor { buffer: spare, ..Descriptor::default() };
        self.memory.store_u64(slot_offset(self.reader.tail() & self.mask), left.to_bits(), Relaxed);
        self.reader.advance(1);
        Some(descriptor)
    }

    /// Takes the next descriptor, and leaves the result of `judge` in its slot: the same buffer, or a replacement.
    /// Returns `None` if no descriptor is known to be available.
    #[inline(always)]
    pub fn exchange_if(&mut self, judge: impl FnOnce(Descriptor) -> Option<u32>) -> Option<Descriptor> {
        let descriptor = self.peek()?;
        if let Some(spare) = judge(descriptor) {
            let left = Descriptor { buffer: spare, ..Descriptor::default() };
            self.memory.store_u64(slot_offset(self.reader.tail() & self.mask), left.to_bits(), Relaxed);
        }
        self.reader.advance(1);
        Some(descriptor)
    }

    /// The descriptor `distance` slots after the next one. It is only a hint for prefetching and must not be acted
    /// upon, because the slot is loaded again when it is taken.
    #[inline(always)]
    pub fn peek_ahead(&self, distance: u32) -> Option<Descriptor> {
        let slot = self.reader.tail().wrapping_add(distance) & self.mask;
        (self.reader.known() > distance)
            .then(|| Descriptor::from_bits(self.memory.load_u64(slot_offset(slot), Relaxed)))
    }

    /// Replaces the buffer in a slot whose descriptor was taken at this [`position`](Self::position). Must be called
    /// before [`release`](Self::release).
    #[inline(always)]
    pub fn replace_buffer(&self, position: u32, spare: u32) {
        let left = Descriptor { buffer: spare, ..Descriptor::default() };
        self.memory.store_u64(slot_offset(position & self.mask), left.to_bits(), Relaxed);
    }

    /// Lets the producer reuse the slots that were taken. Returns true if the producer sleeps and the caller must wake
    /// it.
    #[inline(always)]
    pub fn release(&mut self) -> bool {
        self.reader.release(&self.memory)
    }

    /// Prepares for sleep until a packet arrives. Returns false if there is one already; the caller must then not
    /// sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, CorruptIndex> {
        self.reader.prepare_sleep(&self.memory)
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep) after waking for another reason.
    pub fn end_sleep(&self) {
        self.reader.end_sleep(&self.memory);
    }

    /// The total number of descriptors taken, modulo 2^32.
    pub const fn position(&self) -> u32 {
        self.reader.tail()
    }

    #[inline(always)]
    fn peek(&self) -> Option<Descriptor> {
        let word = || self.memory.load_u64(slot_offset(self.reader.tail() & self.mask), Relaxed);
        (self.reader.known() > 0).then(|| Descriptor::from_bits(word()))
    }
}

impl Consumer<Mapped> {
    /// Prefetches the next `count` slots, to take their descriptors and to leave other buffers in them.
    #[inline(always)]
    pub fn prefetch_slots(&self, count: u32) {
        self.memory.prefetch_ring(HEADER, self.mask, self.reader.tail(), count);
    }

    /// Passes the next `count` descriptors, at most as many as are known to be available, to `look`, until it returns false. They
    /// are not taken. The producer may change the slots before they are: these copies are to be checked and used, and
    /// [`exchange_each`](Self::exchange_each) then takes the slots, whatever is in them.
    #[inline(always)]
    pub fn look_each(&self, count: u32, mut look: impl FnMut(Descriptor) -> bool) {
        let Some(slots) = self.memory.ring(HEADER, self.mask) else { return };
        let (first, count) = (self.reader.tail(), count.min(self.reader.known()));
        for number in 0..count {
            if !look(Descriptor::from_bits(slots.load(first.wrapping_add(number)))) {
                break;
            }
        }
    }

    /// Takes the next slots, whatever is in them, and leaves these buffers there: at most as many as descriptors are known to be
    /// available.
    #[inline(always)]
    pub fn exchange_each(&mut self, buffers: impl Iterator<Item = u32>) {
        let Some(slots) = self.memory.ring(HEADER, self.mask) else { return };
        let (first, mut count) = (self.reader.tail(), 0);
        for buffer in buffers.take(self.reader.known() as usize) {
            slots.store(first.wrapping_add(count), Descriptor { buffer, ..Descriptor::default() }.to_bits());
            count += 1;
        }
        self.reader.advance(count);
    }

    /// Takes `count` descriptors, at most as many as are known to be available. Passes each to `take`, which returns the buffer that
    /// stays in the slot for the producer, or `None` for the same one. What else it gets is the descriptor that is `ahead` slots
    /// after this one, if it is among those to take: a hint, as of [`peek_ahead`](Self::peek_ahead).
    ///
    /// As with [`pop`](Self::pop), the producer chose every field.
    #[inline(always)]
    pub fn take_each(
        &mut self,
        count: u32,
        ahead: u32,
        mut take: impl FnMut(Descriptor, Option<Descriptor>) -> Option<u32>,
    ) {
        let Some(slots) = self.memory.ring(HEADER, self.mask) else { return };
        let (first, count) = (self.reader.tail(), count.min(self.reader.known()));
        for number in 0..count {
            let at = first.wrapping_add(number);
            let coming = (ahead < count - number).then(|| slots.load(at.wrapping_add(ahead)));
            let descriptor = Descriptor::from_bits(slots.load(at));
            if let Some(buffer) = take(descriptor, coming.map(Descriptor::from_bits)) {
                slots.store(at, Descriptor { buffer, ..Descriptor::default() }.to_bits());
            }
        }
        self.reader.advance(count);
    }
}
