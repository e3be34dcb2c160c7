//! Leases: packet buffers that a box has taken out of its rings and uses as its own memory.

use crate::boot::PortInfo;
use crate::limits::BUFFER_SIZE;
use crate::memory::{Mapped, SharedMemory};
use crate::ring::{Descriptor, PoolLayout};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Bits per word.
const BITS: u32 = 64;

/// The region that a box shares with its host, owned by the program of the box.
///
/// It can't be copied, and [`split`](Self::split) consumes it: so there is one [`BufferLeases`] for each region, and no
/// [`Mapped`] that comes out of it reaches the packet buffers.
#[derive(Debug)]
pub struct BoxRegion(Mapped);

impl BoxRegion {
    /// Takes over a region.
    ///
    /// # Safety
    ///
    /// - The region is mapped, readable and writable, until this program ends: leased buffers are `'static`. A hole
    ///   between the rings and a shared pool may be unmapped, as no port of a boot info lies there.
    /// - There is no other `BoxRegion` over any byte of it, and the program of the box accesses its packet buffers only
    ///   through what this one is split into.
    /// - A peer in the same process accesses a buffer only while a ring between the two holds it. A peer elsewhere (the
    ///   host of a virtual machine or of a process, other boxes of the owner of a shared pool) that breaks this rule
    ///   changes the values of the bytes and nothing else: every byte is a valid `u8`, and no decision relies on
    ///   reading a byte twice.
    pub const unsafe fn new(region: Mapped) -> Self {
        Self(region)
    }

    /// The region for a program that leases no buffers and only copies bytes.
    pub const fn into_mapped(self) -> Mapped {
        self.0
    }

    /// Splits the region into its pages and rings, and the buffers that all ports of a boot info share. Returns `None`
    /// if the buffers are not inside the region, or if the ports name different ones.
    pub fn split(self, ports: &[PortInfo]) -> Option<(Mapped, BufferLeases)> {
        let buffers_of = |port: &PortInfo| (port.buffers as usize, port.buffers_size as usize);
        let (start, size) = ports.first().map_or((self.0.size(), 0), buffers_of);
        if ports.iter().any(|port| buffers_of(port) != (start, size)) {
            return None;
        }
        Some((self.0.part(0, start)?, BufferLeases::new(self.0.part(start, size)?)))
    }
}

/// The buffers of a box's ports, leased one by one while they are in no ring. Packets are processed in place and are
/// sent by their descriptors.
///
/// A buffer is leased at most once at a time, whatever descriptors the peer writes. The contents of a leased buffer are
/// only as trustworthy as all others that map the pool: the host and, if the pool is shared, other boxes of the same
/// owner.
#[derive(Debug)]
pub struct BufferLeases {
    /// Reached by nothing else in this program: see [`BoxRegion::new`].
    buffers: Mapped,
    pool: PoolLayout,
    /// One bit per buffer, set while it is leased.
    leased: Vec<u64>,
}

impl BufferLeases {
    fn new(buffers: Mapped) -> Self {
        let pool = PoolLayout::in_bytes(buffers.size());
        Self { buffers, pool, leased: vec![0; pool.buffers().div_ceil(BITS) as usize] }
    }

    /// Prefetches the first bytes of a packet for reading. Where the descriptor is invalid, nothing comes of it.
    #[inline(always)]
    pub fn prefetch(&self, packet: Descriptor) {
        self.buffers.prefetch_read(packet.buffer as usize * BUFFER_SIZE + usize::from(packet.offset));
    }

    /// Prefetches a buffer that `length` bytes will be written to.
    #[inline(always)]
    pub fn prefetch_fill(&self, buffer: u32, length: usize) {
        if let Ok(base) = self.pool.buffer(buffer) {
            let offset = usize::from(PoolLayout::packet_offset(buffer, length));
            self.buffers.prefetch_writes(base + offset, length.min(BUFFER_SIZE));
        }
    }

    /// Leases the buffer that holds a packet. Returns the buffer, and the range of the packet in it, or `None` if the
    /// packet does not lie in a buffer of the pool, or if the buffer is already leased.
    #[inline(always)]
    pub fn lease(&mut self, packet: Descriptor) -> Option<(&'static mut [u8], Range<usize>)> {
        let range = self.pool.range(packet).ok()?;
        let base = range.start - usize::from(packet.offset);
        let memory = self.buffers.pointer(base, BUFFER_SIZE)?;
        let (word, bit) =
            (self.leased.get_mut((packet.buffer / BITS) as usize)?, 1 << (packet.buffer % BITS));
        if *word & bit != 0 {
            return None;
        }
        *word |= bit;
        // SAFETY: the buffer is mapped until the program ends, and nothing in this program reaches it but these leases:
        // the creator of the `BoxRegion` guarantees both. Its bit was clear, so no other reference to it exists; none
        // is made, and `copy` does not read it, before the lease ends.
        let bytes = unsafe { core::slice::from_raw_parts_mut(memory.as_ptr(), BUFFER_SIZE) };
        Some((bytes, range.start - base..range.end - base))
    }

    /// The number of buffers.
    pub fn buffers(&self) -> u32 {
        self.pool.buffers()
    }

    /// The buffer that holds the first of these bytes, if it is one of the pool.
    #[inline]
    pub fn buffer_of(&self, bytes: &[u8]) -> Option<u32> {
        let first = self.buffers.pointer(0, BUFFER_SIZE)?.as_ptr() as usize;
        let offset = (bytes.as_ptr() as usize).checked_sub(first)?;
        u32::try_from(offset / BUFFER_SIZE).ok().filter(|number| *number < self.pool.buffers())
    }

    /// Ends the lease of a buffer and returns its number, or `None` if it is not a leased buffer of this pool.
    #[inline(always)]
    pub fn end_lease(&mut self, bytes: &'static mut [u8]) -> Option<u32> {
        let first = self.buffers.pointer(0, BUFFER_SIZE)?.as_ptr() as usize;
        let offset = (bytes.as_ptr() as usize).checked_sub(first)?;
        let whole = bytes.len() == BUFFER_SIZE && offset.is_multiple_of(BUFFER_SIZE);
        let number = u32::try_from(offset / BUFFER_SIZE).ok().filter(|_| whole)?;
        let (word, bit) = (self.leased.get_mut((number / BITS) as usize)?, 1 << (number % BITS));
        let was_leased = *word & bit != 0;
        *word &= !bit;
        was_leased.then_some(number)
    }

    /// The packet's length in bytes, if it can be copied. Returns `None` if the packet does not lie in a buffer of the
    /// pool, or if the buffer is leased.
    #[inline]
    pub fn length(&self, packet: Descriptor) -> Option<usize> {
        let range = self.pool.range(packet).ok()?;
        let word = self.leased.get((packet.buffer / BITS) as usize)?;
        (word & 1 << (packet.buffer % BITS) == 0).then_some(range.len())
    }

    /// Copies a packet to `into`, which must have the length that [`length`](Self::length) returns; the buffer stays in
    /// its ring. Returns false, with nothing copied, if the packet cannot be copied or has another length.
    #[inline]
    pub fn copy(&self, packet: Descriptor, into: &mut [u8]) -> bool {
        let fits = self.length(packet) == Some(into.len());
        if let (true, Ok(range)) = (fits, self.pool.range(packet)) {
            self.buffers.read(range.start, into);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Slots;
    use core::ptr::NonNull;
    use random::Random;

    /// A region of `bytes` bytes that lives as long as the test's process.
    fn region(bytes: usize) -> BoxRegion {
        let words = Vec::leak(vec![0u64; bytes.div_ceil(8)]);
        // SAFETY: the memory is never freed, and is reached only through the region.
        unsafe { BoxRegion::new(Mapped::new(NonNull::from(&mut *words).cast(), bytes)) }
    }

    fn port(start: usize, buffers: usize) -> PortInfo {
        PortInfo {
            slots: Slots::new(64).unwrap(),
            receive: 0,
            transmit: 0,
            buffers: start as u32,
            buffers_size: (buffers * BUFFER_SIZE) as u32,
            mac: 0,
            mtu: 1500,
        }
    }

    fn leases(buffers: usize) -> BufferLeases {
        region(buffers * BUFFER_SIZE).split(&[port(0, buffers)]).unwrap().1
    }

    fn packet(buffer: u32, offset: u16, length: u32) -> Descriptor {
        Descriptor { buffer, offset, length, meta: 0 }
    }

    #[test]
    fn a_buffer_is_leased_once() {
        let mut leases = leases(70);
        let (bytes, range) = leases.lease(packet(69, 64, 100)).unwrap();
        assert_eq!((bytes.len(), range), (BUFFER_SIZE, 64..164));
        assert_eq!((leases.buffer_of(bytes), leases.buffer_of(&[0])), (Some(69), None));
        bytes.fill(7);
        assert!(leases.lease(packet(69, 0, 1)).is_none());
        let (other, _) = leases.lease(packet(5, 0, 0)).unwrap();
        assert_eq!(leases.end_lease(bytes), Some(69));
        assert_eq!(leases.end_lease(other), Some(5));
        let (bytes, range) = leases.lease(packet(69, 2000, 48)).unwrap();
        assert!(bytes[range].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn only_a_leased_buffer_can_be_returned() {
        let (mut leases, mut others) = (leases(4), self::leases(4));
        for impossible in
            [packet(4, 0, 1), packet(u32::MAX, 0, 1), packet(0, 2000, 49), packet(0, u16::MAX, 9)]
        {
            assert!(leases.lease(impossible).is_none() && leases.length(impossible).is_none());
        }
        let (foreign, _) = others.lease(packet(1, 0, 1)).unwrap();
        assert_eq!(leases.end_lease(foreign), None);
        assert_eq!(leases.end_lease(Vec::leak(vec![0; BUFFER_SIZE])), None);
        let (bytes, _) = leases.lease(packet(1, 0, 1)).unwrap();
        let (part, _) = bytes.split_at_mut(64);
        assert_eq!(leases.end_lease(part), None);
    }

    #[test]
    fn a_leased_buffer_is_not_copied() {
        let mut leases = leases(4);
        let (bytes, _) = leases.lease(packet(1, 0, 3)).unwrap();
        bytes[..3].copy_from_slice(&[1, 2, 3]);
        let mut copy = [0; 3];
        assert!(!leases.copy(packet(1, 0, 3), &mut copy) && leases.length(packet(1, 0, 3)).is_none());
        leases.end_lease(bytes);
        assert!(leases.copy(packet(1, 0, 3), &mut copy) && !leases.copy(packet(1, 0, 4), &mut copy));
        assert_eq!(copy, [1, 2, 3]);
    }

    #[test]
    fn pages_and_rings_do_not_reach_the_buffers() {
        let (pages, leases) = region(8192).split(&[port(4096, 2), port(4096, 2)]).unwrap();
        assert_eq!((pages.size(), leases.pool.buffers()), (4096, 2));
        for ports in [&[port(4096, 2), port(2048, 2)][..], &[port(8192, 1)], &[port(9000, 0)]] {
            assert!(region(8192).split(ports).is_none());
        }
        let (pages, mut leases) = region(8192).split(&[]).unwrap();
        assert_eq!((pages.size(), leases.lease(packet(0, 0, 0)).is_none()), (8192, true));
    }

    /// Whatever descriptors a peer writes, no two leases overlap.
    #[test]
    fn hostile_descriptors_never_make_leases_overlap() {
        let (mut leases, mut random, mut out) = (leases(100), Random::new(5), Vec::new());
        for _ in 0..20_000 {
            let named = Descriptor::from_bits(random.next() & 0x0000_07ff_7ff0_007f);
            if let Some((bytes, range)) = leases.lease(named) {
                assert!(
                    range.end <= bytes.len()
                        && !out.iter().any(|other: &&mut [u8]| other.as_ptr() == bytes.as_ptr())
                );
                out.push(bytes);
            }
            if random.next() % 3 == 0 && !out.is_empty() {
                let bytes = out.swap_remove(random.next() as usize % out.len());
                assert!(leases.end_lease(bytes).is_some());
            }
        }
    }
}
