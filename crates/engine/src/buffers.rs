//! The packet buffers of a box's ports, while they are in no ring.

use alloc::vec;
use alloc::vec::Vec;
use boundary::{BufferLeases, Descriptor, PoolLayout};
use core::ops::Range;
use packet::Packet;

/// No packet could be allocated for a received packet of this many bytes.
pub(crate) struct PoolExhausted(pub(crate) usize);

/// The buffers that all ports of a box share: in use by packets, or spare.
///
/// A ring has a buffer in every slot. A box that keeps the buffer of a received packet leaves a spare one in its place.
/// Spare buffers come from freed packets, and from free slots of the transmit rings, from which they are borrowed
/// before packets fill these slots.
///
/// If the ports have several ring pairs, the buffers of each pair stay in the rings of that pair: each thread of the host
/// has a pool of its own.
pub(crate) struct Buffers {
    leases: BufferLeases,
    /// Spare buffers of the pair that is served.
    spares: Vec<u32>,
    /// Spare buffers of the other pairs.
    others: Vec<Vec<u32>>,
    /// The pair that is served.
    pair: u8,
    /// The pair from whose ring each buffer was taken last; empty if there is one pair only.
    origins: Vec<u8>,
}

impl Buffers {
    /// Buffers without spare ones, for ports with this number of ring pairs.
    pub(crate) fn new(leases: BufferLeases, pairs: usize) -> Buffers {
        let origins = if pairs > 1 { vec![0; leases.buffers() as usize] } else { Vec::new() };
        let others = if pairs > 1 { vec![Vec::new(); pairs] } else { Vec::new() };
        Buffers { leases, spares: Vec::new(), others, pair: 0, origins }
    }

    /// Serves a pair from now on: spare buffers are its own.
    #[inline]
    pub(crate) fn serve(&mut self, pair: u8) {
        if pair != self.pair {
            for other in [self.pair, pair] {
                if let Some(spares) = self.others.get_mut(usize::from(other)) {
                    core::mem::swap(spares, &mut self.spares);
                }
            }
            self.pair = pair;
        }
    }

    /// The pair through which a packet came, or the one that is served for a packet that came through none.
    #[inline]
    pub(crate) fn pair_of(&self, packet: &Packet) -> u8 {
        let buffer = self.leases.buffer_of(packet.data());
        let origin = buffer.and_then(|buffer| self.origins.get(buffer as usize));
        origin.copied().unwrap_or(self.pair)
    }

    /// Adds the buffer of a freed packet to the spare ones of its pair.
    #[inline]
    fn keep(&mut self, buffer: Option<u32>) {
        let Some(buffer) = buffer else { return };
        match self.origins.get(buffer as usize) {
            Some(pair) if *pair != self.pair => {
                self.others.get_mut(usize::from(*pair)).into_iter().for_each(|spares| spares.push(buffer));
            }
            _ => self.spares.push(buffer),
        }
    }

    /// Makes buffers of freed packets spare until there are `wanted` of them.
    pub(crate) fn reclaim(&mut self, wanted: usize, packets: &packet::Pool) {
        while self.spares.len() < wanted
            && let Some(bytes) = packets.take_returned()
        {
            let buffer = self.leases.end_lease(bytes);
            self.keep(buffer);
        }
    }

    /// Prefetches a packet for reading.
    #[inline]
    pub(crate) fn prefetch(&self, packet: Descriptor) {
        self.leases.prefetch(packet);
    }

    /// Prefetches a buffer that `length` bytes will be written to.
    #[inline]
    pub(crate) fn prefetch_fill(&self, spare: Descriptor, length: usize) {
        self.leases.prefetch_fill(spare.buffer, length);
    }

    /// The number of spare buffers.
    pub(crate) fn spare_count(&self) -> usize {
        self.spares.len()
    }

    /// Takes a spare buffer.
    #[inline]
    pub(crate) fn take_spare(&mut self) -> Option<u32> {
        self.spares.pop()
    }

    /// Adds a spare buffer.
    #[inline]
    pub(crate) fn add_spare(&mut self, spare: Option<Descriptor>) {
        self.spares.extend(spare.map(|spare| spare.buffer));
    }

    /// A packet in place, after its buffer was taken out of its ring. Returns `None` if the descriptor is invalid.
    #[inline]
    pub(crate) fn packet_in_place(
        &mut self,
        packet: Descriptor,
        packets: &packet::Pool,
    ) -> Option<Result<Packet, PoolExhausted>> {
        let (bytes, range) = self.leases.lease(packet)?;
        if let Some(origin) = self.origins.get_mut(packet.buffer as usize) {
            *origin = self.pair;
        }
        let length = range.len();
        Some(packets.lend(bytes, range).map_err(|bytes| {
            self.spares.extend(self.leases.end_lease(bytes));
            PoolExhausted(length)
        }))
    }

    /// A copy of a packet whose buffer stays in its ring. Returns `None` if the descriptor is invalid. This is rare, as spare buffers
    /// are mostly there.
    #[cold]
    #[inline(never)]
    pub(crate) fn packet_copy(
        &self,
        packet: Descriptor,
        packets: &packet::Pool,
    ) -> Option<Result<Packet, PoolExhausted>> {
        let length = self.leases.length(packet)?;
        let Some(mut copy) = packets.allocate(length) else { return Some(Err(PoolExhausted(length))) };
        self.leases.copy(packet, copy.data_mut()).then_some(Ok(copy))
    }

    /// The descriptor of a packet in a buffer that its packet has released.
    #[inline]
    pub(crate) fn release(&mut self, bytes: &'static mut [u8], range: Range<usize>) -> Option<Descriptor> {
        let buffer = self.leases.end_lease(bytes)?;
        Some(Descriptor { buffer, offset: range.start as u16, length: range.len() as u32, meta: 0 })
    }

    /// Copies `bytes` to a spare buffer and returns the descriptor. Returns `None` if they do not fit into a buffer, or
    /// if the buffer is invalid.
    #[inline]
    pub(crate) fn copy_in(&mut self, buffer: u32, bytes: &[u8]) -> Option<Descriptor> {
        let (offset, length) =
            (PoolLayout::packet_offset(buffer, bytes.len()), u32::try_from(bytes.len()).ok()?);
        let descriptor = Descriptor { buffer, offset, length, meta: 0 };
        let (lent, range) = self.leases.lease(descriptor)?;
        if let Some(part) = lent.get_mut(range) {
            part.copy_from_slice(bytes);
        }
        self.leases.end_lease(lent).map(|_| descriptor)
    }
}
