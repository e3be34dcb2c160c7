//! The packet buffers of a box's ports, while they are in no ring.

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
pub(crate) struct Buffers {
    leases: BufferLeases,
    spares: Vec<u32>,
}

impl Buffers {
    /// Buffers without spare ones.
    pub(crate) fn new(leases: BufferLeases) -> Buffers {
        Buffers { leases, spares: Vec::new() }
    }

    /// Makes buffers of freed packets spare until there are `wanted` of them.
    pub(crate) fn reclaim(&mut self, wanted: usize, packets: &packet::Pool) {
        while self.spares.len() < wanted
            && let Some(bytes) = packets.take_returned()
        {
            self.spares.extend(self.leases.end_lease(bytes));
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
        let length = range.len();
        Some(packets.lend(bytes, range).map_err(|bytes| {
            self.spares.extend(self.leases.end_lease(bytes));
            PoolExhausted(length)
        }))
    }

    /// A copy of a packet whose buffer stays in its ring. Returns `None` if the descriptor is invalid.
    #[inline]
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
