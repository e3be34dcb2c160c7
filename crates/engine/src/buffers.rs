//! The packet buffers of a box's ports, while they are in no ring.

use alloc::vec::Vec;
use boundary::{BufferLeases, Descriptor, PoolLayout};
use core::ops::Range;
use packet::Packet;

/// No packet could be made for so many bytes that came.
pub(crate) struct NoPacket(pub(crate) usize);

/// The buffers that all ports of a box share: in use by packets, or spare.
///
/// A ring has a buffer in every slot. A box that keeps one of a packet that came leaves another in its place; these
/// come from packets that are gone, and from free slots of the rings by which it sends, ahead of the packets that go
/// there.
pub(crate) struct Buffers {
    leases: BufferLeases,
    spares: Vec<u16>,
}

impl Buffers {
    /// Buffers of which none is spare.
    pub(crate) fn new(leases: BufferLeases) -> Buffers {
        Buffers { leases, spares: Vec::new() }
    }

    /// Makes buffers of freed packets spare until there are `wanted` of them.
    pub(crate) fn reclaim(&mut self, wanted: usize, packets: &packet::Pool) {
        while self.spares.len() < wanted
            && let Some(bytes) = packets.returned()
        {
            self.spares.extend(self.leases.end_lease(bytes));
        }
    }

    /// Says that a packet will be looked at soon.
    #[inline]
    pub(crate) fn prefetch(&self, packet: Descriptor) {
        self.leases.prefetch(packet);
    }

    /// Says that a buffer will be filled soon with so many bytes.
    #[inline]
    pub(crate) fn prefetch_fill(&self, spare: Descriptor, length: usize) {
        self.leases.prefetch_fill(spare.buffer, length);
    }

    /// Buffers that nothing lies in.
    pub(crate) fn spares(&self) -> usize {
        self.spares.len()
    }

    /// A buffer that nothing lies in.
    #[inline]
    pub(crate) fn spare(&mut self) -> Option<u16> {
        self.spares.pop()
    }

    /// Keeps a buffer that nothing lies in.
    #[inline]
    pub(crate) fn keep(&mut self, spare: Option<Descriptor>) {
        self.spares.extend(spare.map(|spare| spare.buffer));
    }

    /// A packet where it lies, whose buffer was taken out of its ring. Nothing when the descriptor is impossible.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        packet: Descriptor,
        packets: &packet::Pool,
    ) -> Option<Result<Packet, NoPacket>> {
        let (bytes, range) = self.leases.lease(packet)?;
        let length = range.len();
        Some(packets.lend(bytes, range).map_err(|bytes| {
            self.spares.extend(self.leases.end_lease(bytes));
            NoPacket(length)
        }))
    }

    /// A copy of a packet whose buffer stays in its ring. Nothing when the descriptor is impossible.
    #[inline]
    pub(crate) fn copy(
        &self,
        packet: Descriptor,
        packets: &packet::Pool,
    ) -> Option<Result<Packet, NoPacket>> {
        let length = self.leases.length(packet)?;
        let Some(mut copy) = packets.allocate(length) else { return Some(Err(NoPacket(length))) };
        self.leases.copy(packet, copy.data_mut()).then_some(Ok(copy))
    }

    /// What names a packet in a buffer that was given up.
    #[inline]
    pub(crate) fn name(&mut self, bytes: &'static mut [u8], range: Range<usize>) -> Option<Descriptor> {
        let buffer = self.leases.end_lease(bytes)?;
        Some(Descriptor { buffer, offset: range.start as u16, length: range.len() as u16, flags: 0 })
    }

    /// What names a copy of `bytes` in a spare buffer. Nothing when they are too many for one, or the buffer is none.
    #[inline]
    pub(crate) fn fill(&mut self, buffer: u16, bytes: &[u8]) -> Option<Descriptor> {
        let (offset, length) =
            (PoolLayout::packet_offset(buffer, bytes.len()), u16::try_from(bytes.len()).ok()?);
        let descriptor = Descriptor { buffer, offset, length, flags: 0 };
        let (lent, range) = self.leases.lease(descriptor)?;
        if let Some(place) = lent.get_mut(range) {
            place.copy_from_slice(bytes);
        }
        self.leases.end_lease(lent).map(|_| descriptor)
    }
}
