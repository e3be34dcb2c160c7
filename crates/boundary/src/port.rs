//! The host's end of a box's port. Packets are copied, so that the box cannot change them after they were checked.

use crate::layout::PortLayout;
use crate::limits::BUFFER_SIZE;
use crate::memory::{CACHE_LINE, Mapped, SharedMemory};
use crate::owners::{BufferOwners, PoolMember};
use crate::ring::{Consumer, CorruptIndex, Descriptor, DescriptorError, PoolLayout, Producer, RingError};
use crate::source::{PayloadTail, SourceRegion};
use crate::tags::BufferTags;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

mod direct;

pub use direct::{DirectBatch, DirectPacket};

/// Prefetch distance in packets: processing this many packets, at some 8 ns each, takes about as long as a read from memory.
const PREFETCH_DISTANCE: u32 = 20;

/// Prefetch distance for packets longer than a cache line, which are prefetched whole: a processor can wait for only a
/// limited number of lines at once.
pub const NEAR_PREFETCH: u32 = 2;

/// A protocol violation by a box at its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortFault {
    /// An index is invalid: the port can no longer be used.
    Corrupt(CorruptIndex),
    /// A descriptor is not inside its pool. If it is a packet from the box, that packet is lost. If it is a free slot
    /// to the box, the slot can neither be filled nor skipped.
    Descriptor(DescriptorError),
}

impl From<CorruptIndex> for PortFault {
    fn from(corrupt: CorruptIndex) -> Self {
        Self::Corrupt(corrupt)
    }
}

impl From<DescriptorError> for PortFault {
    fn from(error: DescriptorError) -> Self {
        Self::Descriptor(error)
    }
}

impl fmt::Display for PortFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(corrupt) => corrupt.fmt(f),
            Self::Descriptor(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PortFault {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Corrupt(corrupt) => corrupt.source(),
            Self::Descriptor(error) => error.source(),
        }
    }
}

/// The host's end of a port.
#[derive(Debug)]
pub struct HostPort<Owner> {
    to_box: Producer<Mapped>,
    from_box: Consumer<Mapped>,
    buffers: Mapped,
    pool: PoolLayout,
    /// The box's membership in a shared pool.
    member: Option<(Arc<BufferOwners>, PoolMember)>,
    /// What is noted of the buffers while the box has them; `None` if nothing is.
    tags: Option<Arc<BufferTags>>,
    /// Keeps alive the memory that contains the rings.
    owner: Owner,
}

impl<Owner> HostPort<Owner> {
    /// The host's end of a new port in a zeroed region. Fills its rings with their initial buffers. `owner`, which
    /// keeps the region alive, is held as long as the port.
    pub fn new(region: &Mapped, layout: &PortLayout, owner: Owner) -> Result<Self, RingError> {
        let mut port = Self::at(region, layout, [0; 2], owner)?;
        port.to_box.fill(layout.first);
        // The box is the producer of the transmit ring, but the host fills it with its initial buffers.
        let transmit = part(region, layout.transmit, layout.slots.bytes())?;
        Producer::new(transmit, layout.slots)?.fill(layout.first + layout.slots.count());
        Ok(port)
    }

    /// The host's end of a port whose rings (receive, transmit) were empty at these positions.
    pub fn at(
        region: &Mapped,
        layout: &PortLayout,
        positions: [u32; 2],
        owner: Owner,
    ) -> Result<Self, RingError> {
        let ring = |offset| part(region, offset, layout.slots.bytes());
        Ok(Self {
            to_box: Producer::at(ring(layout.receive)?, layout.slots, positions[0])?,
            from_box: Consumer::at(ring(layout.transmit)?, layout.slots, positions[1])?,
            buffers: part(region, layout.buffers, layout.buffers_size)?,
            pool: PoolLayout::in_bytes(layout.buffers_size),
            member: None,
            tags: None,
            owner,
        })
    }

    /// The host's end of a new port in a zeroed region, with the buffers of a shared pool in `buffers`. The rings start
    /// with `own`, the buffers assigned to the box, beginning with the receive ring.
    pub fn pooled(
        region: &Mapped,
        layout: &PortLayout,
        buffers: Mapped,
        (holders, holder): (Arc<BufferOwners>, PoolMember),
        own: &[u32],
        owner: Owner,
    ) -> Result<Self, RingError> {
        let (slots, ring) = (layout.slots, |offset| part(region, offset, layout.slots.bytes()));
        let first = layout.first as usize;
        let mut own = own.iter().copied().skip(first).take(2 * slots.count() as usize);
        let mut to_box = Producer::new(ring(layout.receive)?, slots)?;
        to_box.fill_with(own.by_ref());
        Producer::new(ring(layout.transmit)?, slots)?.fill_with(own);
        let from_box = Consumer::new(ring(layout.transmit)?, slots)?;
        let pool = PoolLayout::in_bytes(buffers.size());
        Ok(Self { to_box, from_box, buffers, pool, member: Some((holders, holder)), tags: None, owner })
    }

    /// The number of buffers that the rings refer to.
    pub fn buffer_count(&self) -> u32 {
        self.pool.buffers()
    }

    /// The number of slots of each ring.
    pub fn slots(&self) -> u32 {
        self.to_box.slots()
    }

    /// Notes a tag for each packet from now on. All ports of a box are given the same `tags`, because a packet can leave
    /// through another port than the one through which it came. Boxes that share a pool share its tags.
    pub fn note_tags(&mut self, tags: &Arc<BufferTags>) {
        let shared = self.member.as_ref().map(|(holders, _)| holders.tags());
        self.tags = Some(shared.unwrap_or(tags).clone());
    }

    /// The number of packets that can be sent to the box now.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> Result<u32, PortFault> {
        Ok(self.to_box.free(wanted)?)
    }

    /// Copies a packet to the ring to the box; it becomes visible with [`publish`](Self::publish). Returns false if the
    /// ring is full according to the last [`room`](Self::room), or if the packet is longer than a buffer.
    #[inline]
    pub fn send(&mut self, packet: &[u8]) -> Result<bool, PortFault> {
        self.send_parts(packet, None, 0)
    }

    /// Like [`send`](Self::send), for a packet of which only the head was copied out of its source. `tag` is noted while
    /// the box has the packet.
    #[inline(always)]
    pub fn send_parts(
        &mut self,
        head: &[u8],
        rest: Option<PayloadTail>,
        tag: u64,
    ) -> Result<bool, PortFault> {
        let length = head.len() + rest.map_or(0, |rest| rest.length());
        let hint = |spare: Descriptor, length| {
            let start = self.pool.buffer(spare.buffer).ok()?;
            Some(start + usize::from(PoolLayout::packet_offset(spare.buffer, length)))
        };
        if let Some(start) =
            self.to_box.peek_ahead(PREFETCH_DISTANCE).and_then(|spare| hint(spare, CACHE_LINE))
        {
            self.buffers.prefetch_write(start);
        }
        if length > CACHE_LINE
            && let Some(start) = self.to_box.peek_ahead(NEAR_PREFETCH).and_then(|spare| hint(spare, length))
        {
            // The next packets are probably as long.
            self.buffers.prefetch_writes(start, length.min(BUFFER_SIZE));
        }
        let Some(spare) = self.to_box.spare().filter(|_| length <= BUFFER_SIZE) else {
            return Ok(false);
        };
        let offset = PoolLayout::packet_offset(spare.buffer, length);
        let start = self.pool.buffer(spare.buffer)? + usize::from(offset);
        match head.first_chunk::<CACHE_LINE>() {
            // A constant length compiles to a few instructions instead of a call.
            Some(line) if head.len() == CACHE_LINE => self.buffers.write(start, line),
            _ => self.buffers.write(start, head),
        }
        if let Some(rest) = rest {
            rest.copy_to(&self.buffers, start + head.len());
        }
        if let Some(tags) = &self.tags {
            tags.set(spare.buffer, tag);
        }
        Ok(self.to_box.push(Descriptor { buffer: spare.buffer, offset, length: length as u32, meta: 0 }))
    }

    /// Makes sent packets visible to the box. Returns true if it sleeps and its doorbell must be rung.
    #[inline]
    pub fn publish(&mut self) -> bool {
        self.to_box.publish()
    }

    /// The number of packets that the box has sent.
    #[inline]
    pub fn available(&mut self, wanted: u32) -> Result<u32, PortFault> {
        Ok(self.from_box.available(wanted)?)
    }

    /// Prefetches the slots of the next `count` packets that the box has sent.
    #[inline]
    pub fn prefetch_sent(&self, count: u32) {
        self.from_box.prefetch_slots(count);
    }

    /// Prefetches the slots for the next `count` packets to the box.
    #[inline]
    pub fn prefetch_room(&self, count: u32) {
        self.to_box.prefetch_slots(count);
    }

    /// Copies the next packet that the box has sent and returns its bytes, or `None` if there is none according to the
    /// last [`available`](Self::available).
    #[inline]
    pub fn receive<'a>(&mut self, into: &'a mut [u8; BUFFER_SIZE]) -> Result<Option<&'a [u8]>, PortFault> {
        let Some(descriptor) = self.from_box.pop() else { return Ok(None) };
        let range = self.pool.range(descriptor)?;
        let (packet, _) = into.split_at_mut(range.len());
        self.buffers.read(range.start, packet);
        Ok(Some(packet))
    }

    /// Takes the next packet that the box has sent, in place in [`source_region`](Self::source_region). The caller must
    /// copy it before [`release`](Self::release). Returns `None` as in [`receive`](Self::receive).
    ///
    /// The box may still write to it, so bytes must be copied before they are checked and used.
    #[inline(always)]
    pub fn take(&mut self) -> Result<Option<TakenPacket>, PortFault> {
        // A packet that a function passes on is mostly not read.
        if let Some(next) = self.from_box.peek_ahead(PREFETCH_DISTANCE)
            && (self.tags.is_none() || next.meta != 0)
            && let Ok(start) = self.pool.buffer(next.buffer)
        {
            self.buffers.prefetch_read(start + usize::from(next.offset) % BUFFER_SIZE);
        }
        let slot = self.from_box.position();
        let Some(descriptor) = self.from_box.pop() else { return Ok(None) };
        let range = self.pool.range(descriptor)?;
        Ok(Some(TakenPacket { range, slot, tag: self.take_tag(descriptor.buffer), meta: descriptor.meta }))
    }

    /// Takes what was noted of a packet that came back. A box can name buffers of others in a shared pool: it gets nothing
    /// for them.
    #[inline(always)]
    fn take_tag(&self, buffer: u32) -> u64 {
        match (&self.tags, &self.member) {
            (None, _) => 0,
            (Some(_), Some((holders, holder))) if !holders.owns(*holder, buffer) => 0,
            (Some(tags), _) => tags.take(buffer),
        }
    }

    /// Gives the box another buffer for one that moved with its packet to another box
    /// ([`take_ownership`](Self::take_ownership)). Must be called before [`release`](Self::release).
    #[inline]
    pub fn replace_buffer(&mut self, slot: u32, spare: u32) {
        self.from_box.replace_buffer(slot, spare);
    }

    /// The box of this source, if both boxes share a pool: its packets can be [taken over](Self::take_ownership).
    pub fn pool_peer(&self, origin: &SourceRegion) -> Option<PoolMember> {
        origin.holder(&self.member.as_ref()?.0)
    }

    /// Takes over a packet with its buffer from a [pool peer](Self::pool_peer). `head` bytes of the packet precede the
    /// tail. Returns the buffer that the other box gets in exchange. Returns `None` if a buffer does not belong to its
    /// box, or if the ring is full; the packet must then be [sent](Self::send_parts). `tag` is as in `send_parts`.
    #[inline]
    pub fn take_ownership(
        &mut self,
        from: PoolMember,
        head: usize,
        rest: PayloadTail,
        tag: u64,
    ) -> Option<u32> {
        let (holders, to) = self.member.as_ref()?;
        let spare = self.to_box.spare()?.buffer;
        let start = rest.start().checked_sub(head)?;
        let packet = Descriptor {
            buffer: u32::try_from(start / BUFFER_SIZE).ok()?,
            offset: (start % BUFFER_SIZE) as u16,
            length: u32::try_from(head + rest.length()).ok()?,
            meta: 0,
        };
        let sound = holders.exchange(from, packet, *to, spare);
        if let Some(tags) = self.tags.as_ref().filter(|_| sound) {
            tags.set(packet.buffer, tag);
        }
        (sound && self.to_box.push(packet)).then_some(spare)
    }

    /// The memory that contains the port's packets.
    pub fn source_region(&self) -> SourceRegion
    where
        Owner: Clone + Send + Sync + 'static,
    {
        SourceRegion::new(self.buffers, self.member.clone(), self.owner.clone())
    }

    /// Returns the slots of received packets. Returns true if the box sleeps and its doorbell must be rung.
    #[inline]
    pub fn release(&mut self) -> bool {
        self.from_box.release()
    }

    /// Moves up to `most` packets directly from this port's box to another's, and publishes them, without inspecting
    /// their contents. If the boxes share a pool, a packet moves with its buffer, in exchange for another; otherwise it
    /// is copied. Packets that are not inside their pool, or in a buffer that their box does not own, are dropped.
    /// Packets that do not fit into the other ring stay.
    pub fn pass<Other>(
        &mut self,
        other: &mut HostPort<Other>,
        most: u32,
    ) -> Result<ForwardReport, PortFault> {
        if let (Some((holders, from)), Some((others, to))) = (&self.member, &other.member)
            && Arc::ptr_eq(holders, others)
        {
            let pair = (holders.clone(), *from, *to);
            return self.hand_over(other, most, pair);
        }
        self.copy_over(other, most)
    }

    /// [`pass`](Self::pass) between boxes that share a pool.
    fn hand_over<Other>(
        &mut self,
        other: &mut HostPort<Other>,
        most: u32,
        (holders, from, to): (Arc<BufferOwners>, PoolMember, PoolMember),
    ) -> Result<ForwardReport, PortFault> {
        let there = self.from_box.available(most)?.min(most);
        let count = other.to_box.free(there)?.min(there);
        let mut passed = ForwardReport::default();
        for _ in 0..count {
            let Some(spare) = other.to_box.spare() else { break };
            let mut sound = false;
            let packet = self.from_box.exchange_if(|packet| {
                sound = holders.exchange(from, packet, to, spare.buffer);
                sound.then_some(spare.buffer)
            });
            match packet {
                Some(packet) if sound => {
                    other.to_box.push(Descriptor { meta: 0, ..packet });
                    passed.packets += 1;
                    passed.bytes += u64::from(packet.length);
                }
                Some(_) => passed.faulty += 1,
                None => break,
            }
        }
        passed.wake_receiver = other.to_box.publish();
        passed.wake_sender = self.from_box.release();
        Ok(passed)
    }

    /// [`pass`](Self::pass) between boxes without a shared pool.
    fn copy_over<Other>(
        &mut self,
        other: &mut HostPort<Other>,
        most: u32,
    ) -> Result<ForwardReport, PortFault> {
        let there = self.from_box.available(most)?.min(most);
        let count = other.to_box.free(there)?.min(there);
        let mut passed = ForwardReport::default();
        for _ in 0..count {
            self.prefetch_copy(other, PREFETCH_DISTANCE, 1);
            self.prefetch_copy(other, NEAR_PREFETCH, BUFFER_SIZE);
            let (Some(packet), Some(spare)) = (self.from_box.pop(), other.to_box.spare()) else { break };
            match (self.pool.range(packet), other.pool.buffer(spare.buffer)) {
                (Ok(from), Ok(to)) => {
                    let (length, offset) =
                        (packet.length, PoolLayout::packet_offset(spare.buffer, from.len()));
                    self.buffers.copy_to(from.start, &other.buffers, to + usize::from(offset), from.len());
                    other.to_box.push(Descriptor { buffer: spare.buffer, offset, length, meta: 0 });
                    passed.packets += 1;
                    passed.bytes += u64::from(length);
                }
                _ => passed.faulty += 1,
            }
        }
        passed.wake_receiver = other.to_box.publish();
        passed.wake_sender = self.from_box.release();
        Ok(passed)
    }

    /// Prefetches the memory of the packet that is `distance` packets ahead on its way to another box, up to `most`
    /// bytes.
    #[inline(always)]
    fn prefetch_copy<Other>(&self, other: &HostPort<Other>, distance: u32, most: usize) {
        let packet = self.from_box.peek_ahead(distance).and_then(|packet| self.pool.range(packet).ok());
        let spare = other.to_box.peek_ahead(distance).map(|spare| spare.buffer);
        if let (Some(packet), Some((spare, start))) =
            (packet, spare.and_then(|spare| Some((spare, other.pool.buffer(spare).ok()?))))
        {
            let offset = usize::from(PoolLayout::packet_offset(spare, packet.len()));
            self.buffers.prefetch_reads(packet.start, packet.len().min(most));
            other.buffers.prefetch_writes(start + offset, packet.len().min(most));
        }
    }

    /// The numbers of packets in the rings: to the box, and from it. A ring that the box has corrupted counts as empty.
    pub fn waiting(&mut self) -> [u32; 2] {
        let slots = self.to_box.slots();
        let to_box = self.to_box.free(slots).map_or(0, |free| slots.saturating_sub(free));
        [to_box, self.from_box.available(slots).unwrap_or(0).min(slots)]
    }

    /// Prepares for sleep until the box sends. Returns false if it has already sent; the host must then not sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, PortFault> {
        Ok(self.from_box.prepare_sleep()?)
    }

    /// Prepares for sleep until the box has room for a packet. Returns false if it already has room; the host must then
    /// not sleep.
    pub fn prepare_room_sleep(&mut self) -> Result<bool, PortFault> {
        Ok(self.to_box.prepare_sleep()?)
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep) and [`prepare_room_sleep`](Self::prepare_room_sleep).
    pub fn end_sleep(&self) {
        self.from_box.end_sleep();
        self.to_box.end_sleep();
    }
}

/// A packet taken by [`HostPort::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenPacket {
    /// Its range in the source region.
    pub range: Range<usize>,
    /// Its slot, for [`HostPort::replace_buffer`].
    pub slot: u32,
    /// What was noted when the box got the buffer; 0 if nothing was.
    pub tag: u64,
    /// The metadata of its descriptor.
    pub meta: u16,
}

/// The result of [`HostPort::pass`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardReport {
    /// Packets moved.
    pub packets: u32,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets dropped because one of the boxes wrote an invalid descriptor.
    pub faulty: u32,
    /// The receiving box sleeps; its doorbell must be rung.
    pub wake_receiver: bool,
    /// The sending box sleeps for lack of room; its doorbell must be rung.
    pub wake_sender: bool,
}

fn part(region: &Mapped, offset: usize, size: usize) -> Result<Mapped, RingError> {
    let missing = RingError::Region { needed: offset.saturating_add(size), found: region.size() };
    region.part(offset, size).ok_or(missing)
}

#[cfg(test)]
mod tests;
