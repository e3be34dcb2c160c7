//! A ring that is shared with the kernel: one side produces entries, the other one consumes them.
//!
//! Both indices run freely in 32 bits. This side keeps its own one in private memory, and checks that of the kernel: a distance
//! above the size of the ring is an error. An entry has one word (the offset of a buffer) or two (offset, length and options).

use super::error::XdpError;
use super::mapping::Mapping;
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries of each ring: a power of two.
pub(super) const SIZE: u32 = 2048;

/// Flag of a ring: the kernel waits for a system call.
const NEED_WAKEUP: u32 = libc::XDP_RING_NEED_WAKEUP;

/// Where the parts of a ring are in its mapping, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
}

impl Layout {
    /// Bytes of a mapping of the ring, with this number of words for each entry.
    pub(super) fn bytes(self, words: usize) -> usize {
        self.entries.saturating_add(SIZE as usize * words * 8)
    }
}

/// A ring with entries of this number of words, and how far this side is in it.
#[derive(Debug)]
pub(super) struct Ring<const WORDS: usize> {
    mapping: Mapping,
    layout: Layout,
    /// The index of the entry that this side produces or consumes next.
    position: u32,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// A ring that is new. Fails if a part is not inside the mapping.
    pub(super) fn new(mapping: Mapping, layout: Layout) -> Result<Self, XdpError> {
        let has_indices = [layout.producer, layout.consumer, layout.flags]
            .into_iter()
            .all(|offset| mapping.word32(offset).is_some());
        let has_entries = mapping.word64(layout.entries).is_some()
            && mapping.word64(layout.bytes(WORDS).saturating_sub(8)).is_some();
        match has_indices && has_entries {
            true => Ok(Self { mapping, layout, position: 0 }),
            false => Err(XdpError::Descriptors),
        }
    }

    fn index(&self, offset: usize) -> Option<&AtomicU32> {
        self.mapping.word32(offset)
    }

    /// The index of the kernel, after everything that it did before.
    #[inline(always)]
    fn acquired(&self, offset: usize) -> u32 {
        self.index(offset).map_or(self.position, |index| index.load(Ordering::Acquire))
    }

    fn publish(&self, offset: usize) {
        if let Some(index) = self.index(offset) {
            index.store(self.position, Ordering::Release);
        }
    }

    /// The offset of a word of the entry at a position, which is always inside the ring.
    #[inline(always)]
    fn place(&self, position: u32, word: usize) -> usize {
        self.layout.entries + ((position % SIZE) as usize * WORDS + word) * 8
    }

    /// Whether the kernel waits for a system call before it goes on with this ring.
    #[inline(always)]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.index(self.layout.flags).is_some_and(|flags| flags.load(Ordering::Relaxed) & NEED_WAKEUP != 0)
    }

    /// As the consumer: the entries that wait.
    #[inline(always)]
    pub(super) fn waiting(&self) -> Result<u32, XdpError> {
        checked(self.acquired(self.layout.producer).wrapping_sub(self.position))
    }

    /// As the consumer: the next entry, which must be one of those that wait.
    #[inline(always)]
    pub(super) fn take(&mut self) -> [u64; WORDS] {
        let position = self.position;
        self.position = position.wrapping_add(1);
        std::array::from_fn(|word| {
            self.mapping.word64(self.place(position, word)).map_or(0, |place| place.load(Ordering::Relaxed))
        })
    }

    /// As the consumer: gives the places of all taken entries back.
    #[inline(always)]
    pub(super) fn release(&self) {
        self.publish(self.layout.consumer);
    }

    /// As the producer: the entries that the kernel has not consumed.
    #[inline(always)]
    pub(super) fn pending(&self) -> Result<u32, XdpError> {
        checked(self.position.wrapping_sub(self.acquired(self.layout.consumer)))
    }

    /// As the producer: the room for entries.
    #[inline(always)]
    pub(super) fn room(&self) -> Result<u32, XdpError> {
        self.pending().map(|pending| SIZE - pending)
    }

    /// As the producer: adds an entry, for which there must be room.
    #[inline(always)]
    pub(super) fn add(&mut self, entry: [u64; WORDS]) {
        for (word, value) in entry.into_iter().enumerate() {
            if let Some(place) = self.mapping.word64(self.place(self.position, word)) {
                place.store(value, Ordering::Relaxed);
            }
        }
        self.position = self.position.wrapping_add(1);
    }

    /// As the producer: shows the kernel all added entries.
    #[inline(always)]
    pub(super) fn submit(&self) {
        self.publish(self.layout.producer);
    }

    /// As the producer: takes the last entry back, which the kernel must not have consumed, and not be about to. Call
    /// [`submit`](Self::submit) afterwards.
    pub(super) fn withdraw(&mut self) -> [u64; WORDS] {
        self.position = self.position.wrapping_sub(1);
        let entry = self.take();
        self.position = self.position.wrapping_sub(1);
        entry
    }
}

/// A number of entries, if the ring has as many.
#[inline(always)]
fn checked(entries: u32) -> Result<u32, XdpError> {
    if entries > SIZE { Err(XdpError::Index) } else { Ok(entries) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };

    fn ring<const WORDS: usize>(start: u32) -> Ring<WORDS> {
        let mapping = Mapping::new(None, 0, LAYOUT.bytes(WORDS)).unwrap();
        let mut ring = Ring::new(mapping, LAYOUT).unwrap();
        ring.position = start;
        for offset in [LAYOUT.producer, LAYOUT.consumer] {
            ring.index(offset).unwrap().store(start, Ordering::Relaxed);
        }
        ring
    }

    /// Moves the kernel's index.
    fn kernel<const WORDS: usize>(ring: &Ring<WORDS>, offset: usize, by: u32) {
        let index = ring.index(offset).unwrap();
        index.store(index.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }

    #[test]
    fn entries_are_produced_until_the_ring_is_full() {
        for start in [0, 5, u32::MAX - 3] {
            let mut ring = ring::<2>(start);
            for number in 0..SIZE {
                assert_eq!(ring.room().unwrap(), SIZE - number);
                ring.add([number.into(), 60]);
            }
            assert_eq!((ring.room().unwrap(), ring.pending().unwrap()), (0, SIZE));
            let producer = || ring.index(LAYOUT.producer).unwrap().load(Ordering::Relaxed);
            assert_eq!(producer(), start);
            ring.submit();
            assert_eq!(producer(), start.wrapping_add(SIZE));
            kernel(&ring, LAYOUT.consumer, 3);
            assert_eq!((ring.room().unwrap(), ring.pending().unwrap()), (3, SIZE - 3));
            assert_eq!(ring.withdraw(), [u64::from(SIZE - 1), 60]);
            assert_eq!(ring.withdraw(), [u64::from(SIZE - 2), 60]);
            assert_eq!(ring.room().unwrap(), 5);
        }
    }

    #[test]
    fn entries_are_consumed_in_order() {
        for start in [0, u32::MAX - 1] {
            let mut ring = ring::<1>(start);
            assert_eq!(ring.waiting().unwrap(), 0);
            for number in 0..4u32 {
                let place = ring.place(start.wrapping_add(number), 0);
                ring.mapping.word64(place).unwrap().store(u64::from(number) * 2048, Ordering::Relaxed);
            }
            kernel(&ring, LAYOUT.producer, 4);
            assert_eq!(ring.waiting().unwrap(), 4);
            assert_eq!([ring.take(), ring.take(), ring.take()], [[0], [2048], [4096]]);
            assert_eq!(ring.waiting().unwrap(), 1);
            ring.release();
            let consumer = ring.index(LAYOUT.consumer).unwrap().load(Ordering::Relaxed);
            assert_eq!(consumer, start.wrapping_add(3));
        }
    }

    #[test]
    fn impossible_indices_are_errors() {
        let ring = ring::<1>(7);
        kernel(&ring, LAYOUT.producer, SIZE + 1);
        assert!(matches!(ring.waiting(), Err(XdpError::Index)));
        kernel(&ring, LAYOUT.consumer, 1);
        assert!(matches!(ring.room(), Err(XdpError::Index)));
        assert!(matches!(ring.pending(), Err(XdpError::Index)));
    }

    #[test]
    fn the_kernel_asks_for_a_call() {
        let ring = ring::<1>(0);
        assert!(!ring.needs_wakeup());
        ring.index(LAYOUT.flags).unwrap().store(NEED_WAKEUP, Ordering::Relaxed);
        assert!(ring.needs_wakeup());
    }

    #[test]
    fn rings_outside_of_their_memory_are_refused() {
        let is_ring =
            |layout| Ring::<2>::new(Mapping::new(None, 0, LAYOUT.bytes(2)).unwrap(), layout).is_ok();
        assert!(is_ring(LAYOUT));
        for wrong in [
            Layout { entries: LAYOUT.entries + 4096, ..LAYOUT },
            Layout { entries: usize::MAX, ..LAYOUT },
            Layout { entries: 196, ..LAYOUT },
            Layout { producer: 1 << 20, ..LAYOUT },
            Layout { consumer: usize::MAX, ..LAYOUT },
            Layout { flags: 2, ..LAYOUT },
        ] {
            assert!(!is_ring(wrong), "{wrong:?}");
        }
    }
}
