//! Buffers that a box has taken out of its rings, as memory of its own.

use crate::limits::BUFFER_SIZE;
use crate::memory::{Mapped, SharedMemory};
use crate::ring::{Descriptor, PoolLayout};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Bits of a word.
const BITS: u16 = 64;

/// The buffers of a box's ports, lent out one by one while they are in no ring: packets are worked on where they
/// lie, and are sent on by their descriptors.
///
/// A buffer is out once at a time, whatever the peer names. What a lent buffer holds is as trustworthy as whoever
/// else maps the pool: the host, and where a pool is shared the other boxes of the same owner.
#[derive(Debug)]
pub struct BufferLeases {
    buffers: Mapped,
    pool: PoolLayout,
    /// A bit for each buffer that is out.
    out: Vec<u64>,
}

impl BufferLeases {
    /// All buffers of a pool, none of them lent.
    pub fn new(buffers: Mapped) -> Self {
        let pool = PoolLayout::in_bytes(buffers.size());
        Self { buffers, pool, out: vec![0; pool.buffers().div_ceil(BITS.into()) as usize] }
    }

    /// Says that a packet's first bytes will be read soon.
    #[inline(always)]
    pub fn prefetch(&self, packet: Descriptor) {
        if let Ok(range) = self.pool.range(packet) {
            self.buffers.prefetch_read(range.start);
        }
    }

    /// Says that so many bytes will be written to a buffer soon.
    #[inline(always)]
    pub fn prefetch_fill(&self, buffer: u16, length: usize) {
        if let Ok(base) = self.pool.buffer(buffer) {
            let place = usize::from(PoolLayout::packet_offset(buffer, length));
            self.buffers.prefetch_writes(base + place, length.min(BUFFER_SIZE));
        }
    }

    /// The buffer that a packet lies in, and the packet's place in it. Nothing: the packet leaves its buffer, or
    /// the buffer is out already.
    #[inline(always)]
    pub fn lend(&mut self, packet: Descriptor) -> Option<(&'static mut [u8], Range<usize>)> {
        let range = self.pool.range(packet).ok()?;
        let base = range.start - usize::from(packet.offset);
        let memory = self.buffers.pointer(base, BUFFER_SIZE)?;
        let (word, bit) = (self.out.get_mut(usize::from(packet.buffer / BITS))?, 1 << (packet.buffer % BITS));
        if *word & bit != 0 {
            return None;
        }
        *word |= bit;
        // SAFETY: the buffer is mapped as long as any part of the area is used, by the contract of `Mapped::new`. Its
        // bit was clear: no other reference to it exists, and none is made before it comes back. A peer that
        // writes to it breaks the protocol, and only what the bytes say in this box.
        let bytes = unsafe { core::slice::from_raw_parts_mut(memory.as_ptr(), BUFFER_SIZE) };
        Some((bytes, range.start - base..range.end - base))
    }

    /// Takes a buffer back; its number. Nothing: it is not a buffer of this pool that is out.
    #[inline(always)]
    pub fn take_back(&mut self, bytes: &'static mut [u8]) -> Option<u16> {
        let first = self.buffers.pointer(0, BUFFER_SIZE)?.as_ptr() as usize;
        let offset = (bytes.as_ptr() as usize).checked_sub(first)?;
        let whole = bytes.len() == BUFFER_SIZE && offset.is_multiple_of(BUFFER_SIZE);
        let number = u16::try_from(offset / BUFFER_SIZE).ok().filter(|_| whole)?;
        let (word, bit) = (self.out.get_mut(usize::from(number / BITS))?, 1 << (number % BITS));
        let was_out = *word & bit != 0;
        *word &= !bit;
        was_out.then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::hostile::Random;
    use core::ptr::NonNull;

    /// BufferLeases of a pool of so many buffers that lives as long as the test's process.
    fn leases(buffers: usize) -> BufferLeases {
        let words = Vec::leak(vec![0u64; buffers * BUFFER_SIZE / 8]);
        // SAFETY: the memory is never given back, and reached through the leases only.
        BufferLeases::new(unsafe { Mapped::new(NonNull::from(&mut words[0]).cast(), buffers * BUFFER_SIZE) })
    }

    fn packet(buffer: u16, offset: u16, length: u16) -> Descriptor {
        Descriptor { buffer, offset, length, flags: 0 }
    }

    #[test]
    fn a_buffer_is_out_once() {
        let mut leases = leases(70);
        let (bytes, range) = leases.lend(packet(69, 64, 100)).unwrap();
        assert_eq!((bytes.len(), range), (BUFFER_SIZE, 64..164));
        bytes.fill(7);
        assert!(leases.lend(packet(69, 0, 1)).is_none());
        let (other, _) = leases.lend(packet(5, 0, 0)).unwrap();
        assert_eq!(leases.take_back(bytes), Some(69));
        assert_eq!(leases.take_back(other), Some(5));
        let (bytes, range) = leases.lend(packet(69, 2000, 48)).unwrap();
        assert!(bytes[range].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn what_is_no_loan_is_not_taken_back() {
        let (mut leases, mut others) = (leases(4), self::leases(4));
        for impossible in
            [packet(4, 0, 1), packet(u16::MAX, 0, 1), packet(0, 2000, 49), packet(0, u16::MAX, 9)]
        {
            assert!(leases.lend(impossible).is_none());
        }
        let (foreign, _) = others.lend(packet(1, 0, 1)).unwrap();
        assert_eq!(leases.take_back(foreign), None);
        assert_eq!(leases.take_back(Vec::leak(vec![0; BUFFER_SIZE])), None);
        let (bytes, _) = leases.lend(packet(1, 0, 1)).unwrap();
        let (part, _) = bytes.split_at_mut(64);
        assert_eq!(leases.take_back(part), None);
    }

    /// Whatever a peer names, no two leases overlap.
    #[test]
    fn hostile_names_never_overlap() {
        let (mut leases, mut random, mut out) = (leases(100), Random::new(5), Vec::new());
        for _ in 0..20_000 {
            let named = Descriptor::from_bits(random.next() & 0x0000_07ff_07ff_007f);
            if let Some((bytes, range)) = leases.lend(named) {
                assert!(
                    range.end <= bytes.len()
                        && !out.iter().any(|other: &&mut [u8]| other.as_ptr() == bytes.as_ptr())
                );
                out.push(bytes);
            }
            if random.next() % 3 == 0 && !out.is_empty() {
                let bytes = out.swap_remove(random.next() as usize % out.len());
                assert!(leases.take_back(bytes).is_some());
            }
        }
    }
}
