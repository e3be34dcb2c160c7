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

/// Prefetch distance in packets: processing this many packets takes about as long as a cache miss.
const PREFETCH_DISTANCE: u32 = 8;

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
mod tests {
    use super::*;
    use crate::answer::Answer;
    use crate::layout::RegionLayout;
    use crate::memory::hostile::edge;
    use crate::ring::Slots;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::ptr::NonNull;
    use core::sync::atomic::Ordering::Relaxed;
    use random::Random;

    /// Runs `body` with a new region that has one port of 64 slots.
    fn with_region(body: impl FnOnce(Mapped, PortLayout)) {
        let layout = RegionLayout::new(&[Slots::new(64).unwrap()]).unwrap();
        let mut words = vec![0u64; layout.size / 8];
        // SAFETY: the vector outlives `body` and is not touched meanwhile.
        let region = unsafe { Mapped::new(NonNull::new(words.as_mut_ptr().cast()).unwrap(), layout.size) };
        body(region, layout.ports[0]);
    }

    /// The box's side of the same port.
    fn box_side(region: &Mapped, layout: &PortLayout) -> (Consumer<Mapped>, Producer<Mapped>) {
        let ring = |offset| region.part(offset, layout.slots.bytes()).unwrap();
        let receive = Consumer::new(ring(layout.receive), layout.slots).unwrap();
        (receive, Producer::new(ring(layout.transmit), layout.slots).unwrap())
    }

    #[test]
    fn packets_pass_from_box_to_box() {
        with_region(|left_region, layout| {
            with_region(|right_region, _| {
                let mut left = HostPort::new(&left_region, &layout, ()).unwrap();
                let mut right = HostPort::new(&right_region, &layout, ()).unwrap();
                let (_, mut sends) = box_side(&left_region, &layout);
                let (mut receives, _) = box_side(&right_region, &layout);
                for number in 0..64u16 {
                    let spare = sends.spare().unwrap();
                    let at = left.pool.buffer(spare.buffer).unwrap();
                    left.buffers.write(at + 2, &number.to_le_bytes());
                    assert!(sends.push(Descriptor { offset: 2, length: 60, ..spare }));
                }
                sends.publish();
                assert_eq!(receives.prepare_sleep(), Ok(true));
                let passed = left.pass(&mut right, 1000).unwrap();
                assert_eq!((passed.packets, passed.bytes, passed.wake_receiver), (64, 64 * 60, true));
                assert_eq!(receives.available(64), Ok(64));
                for number in 0..64u16 {
                    let range = right.pool.range(receives.pop().unwrap()).unwrap();
                    let mut bytes = [0; 2];
                    right.buffers.read(range.start, &mut bytes);
                    assert_eq!((u16::from_le_bytes(bytes), range.len()), (number, 60));
                }
            });
        });
    }

    /// Random words in rings and descriptors result in an error, a packet or nothing. No byte outside the region is
    /// written.
    #[test]
    fn a_box_that_scribbles_is_harmless() {
        const GUARD: u64 = 0x5eed_5eed_5eed_5eed;
        /// Words on each side of the region.
        const GUARDS: usize = 512;
        /// Bytes at a ring's start that hold its indices.
        const INDICES: usize = crate::ring::HEADER;
        let layout = RegionLayout::new(&[Slots::new(64).unwrap()]).unwrap();
        let (size, words) = (layout.size, layout.size / 8);
        let layout = layout.ports[0];
        let mut memory = vec![GUARD; GUARDS + words + GUARDS];
        memory[GUARDS..GUARDS + words].fill(0);
        let base = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: the vector outlives the region and is not touched before its last use.
        let region = unsafe { Mapped::new(base.add(GUARDS).cast(), size) };
        let mut random = Random::new(3);
        let mut buffer = [0; BUFFER_SIZE];
        let (mut sent, mut received, mut refused) = (0, 0, 0);
        for _ in 0..300 {
            let mut port = HostPort::new(&region, &layout, ()).unwrap();
            for _ in 0..40 {
                // Every other word goes to the indices of a ring, where it does most harm.
                let (start, size) = match random.next() % 4 {
                    0 => (layout.receive, INDICES),
                    1 => (layout.transmit, INDICES),
                    _ => (layout.receive, layout.buffers - layout.receive),
                };
                let offset = start + random.next() as usize % size;
                region.store_u32(offset & !3, edge(&mut random) as u32, Relaxed);
                match port.room(64).and_then(|_| port.send(&[1; 60])) {
                    Ok(done) => sent += usize::from(done),
                    Err(_) => refused += 1,
                }
                port.publish();
                match port.available(64).and_then(|_| port.receive(&mut buffer)) {
                    Ok(packet) => received += usize::from(packet.is_some()),
                    Err(_) => refused += 1,
                }
                port.release();
            }
            for ring in [layout.receive, layout.transmit] {
                region.write(ring, &[0; INDICES]);
            }
        }
        assert!(
            sent > 0 && received > 0 && refused > 0,
            "{sent} sent, {received} received, {refused} refused"
        );
        let (before, after) = (&memory[..GUARDS], &memory[GUARDS + words..]);
        assert!(before.iter().chain(after).all(|word| *word == GUARD));
    }

    /// Two boxes of one pool: the second one's side of a port, and its initial buffers.
    fn with_pool(
        body: impl FnOnce([HostPort<()>; 2], [(Consumer<Mapped>, Producer<Mapped>); 2], Mapped, Arc<BufferOwners>),
    ) {
        let slots = [Slots::new(64).unwrap()];
        let size = 300 * BUFFER_SIZE;
        let layout = RegionLayout::pooled(&slots, 1, size).unwrap();
        let mut words = vec![0u64; (2 * layout.size + size) / 8];
        let all = NonNull::new(words.as_mut_ptr().cast()).unwrap();
        // SAFETY: the vector outlives `body` and is not touched meanwhile.
        let memory = unsafe { Mapped::new(all, words.len() * 8) };
        let regions = [0, layout.size].map(|start| memory.part(start, layout.size).unwrap());
        let buffers = memory.part(2 * layout.size, size).unwrap();
        let holders = Arc::new(BufferOwners::new(size));
        let port = |number: u16| {
            let holder = PoolMember::new(number + 1).unwrap();
            let own = holders.take(holder, layout.buffers()).unwrap();
            let member = (holders.clone(), holder);
            HostPort::pooled(&regions[usize::from(number)], &layout.ports[0], buffers, member, &own, ())
                .unwrap()
        };
        let ports = [0, 1].map(port);
        body(ports, regions.map(|region| box_side(&region, &layout.ports[0])), buffers, holders.clone());
    }

    #[test]
    fn packets_are_passed_with_their_buffers() {
        with_pool(|[mut left, mut right], [(_, mut sends), (mut receives, _)], buffers, holders| {
            for round in 0..40u16 {
                sends.free(64).unwrap();
                let mut sent = Vec::new();
                for number in 0..50 {
                    let spare = sends.spare().unwrap();
                    buffers.write(spare.buffer as usize * BUFFER_SIZE + 100, &[round as u8, number]);
                    assert!(sends.push(Descriptor { offset: 100, length: 2, ..spare }));
                    sent.push(spare.buffer);
                }
                sends.publish();
                let passed = left.pass(&mut right, 1000).unwrap();
                assert_eq!((passed.packets, passed.bytes, passed.faulty), (50, 100, 0));
                assert_eq!(receives.available(64), Ok(50));
                for (number, buffer) in (0u8..).zip(sent) {
                    let packet = receives.pop().unwrap();
                    let mut bytes = [0; 2];
                    buffers.read(right.pool.range(packet).unwrap().start, &mut bytes);
                    assert_eq!((packet.buffer, bytes), (buffer, [round as u8, number]));
                }
                receives.release();
            }
            assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
        });
    }

    /// Does what a switch does: inspects each packet's head, and passes it on with its buffer if possible.
    fn switch(from: &mut HostPort<()>, to: &mut HostPort<()>) -> u32 {
        let (origin, mut left, mut handed_over) =
            (SourceRegion::new(from.buffers, from.member.clone(), ()), Vec::new(), 0);
        let pool_peer = to.pool_peer(&origin).unwrap();
        let there = from.available(64).unwrap();
        to.room(there).unwrap();
        for _ in 0..there {
            let Ok(Some(TakenPacket { range, slot, .. })) = from.take() else { continue };
            let head = range.len().min(2);
            let mut bytes = [0; 2];
            from.buffers.read(range.start, &mut bytes[..head]);
            let rest = origin.tail(range.start + head..range.end);
            match to.take_ownership(pool_peer, head, rest, 0) {
                Some(spare) => {
                    left.push((slot, spare));
                    handed_over += 1;
                }
                None => drop(to.send_parts(&bytes[..head], Some(rest), 0).unwrap()),
            }
        }
        to.publish();
        for (slot, spare) in left {
            from.replace_buffer(slot, spare);
        }
        from.release();
        handed_over
    }

    /// Passes on what can go straight, as a switch does. Returns the number of packets that moved.
    fn pass_direct(from: &mut HostPort<()>, to: &mut HostPort<()>) -> u64 {
        let mut batch = DirectBatch::default();
        from.list_direct(&mut batch).unwrap();
        to.send_direct(&mut batch).unwrap();
        to.publish();
        from.release_direct(&batch);
        batch.moved().0
    }

    /// Packets with a tag and the answer "next" go straight, those before the first one that differs.
    #[test]
    fn packets_go_straight_to_another_box() {
        with_pool(|[mut left, mut right], [(mut gets, mut sends), (mut receives, _)], buffers, holders| {
            let tags = holders.tags().clone();
            left.note_tags(&tags);
            right.note_tags(&tags);
            for round in 0..40u64 {
                left.room(64).unwrap();
                assert!((0..50).all(|number| left.send_parts(&[1; 60], None, 1 + round + number).unwrap()));
                left.publish();
                assert_eq!(gets.available(64), Ok(50));
                sends.free(64).unwrap();
                let mut sent = Vec::new();
                for number in 0..50u8 {
                    let spare = sends.spare().unwrap();
                    let packet = gets.exchange(spare.buffer).unwrap();
                    buffers.write(packet.buffer as usize * BUFFER_SIZE + 100, &[round as u8, number, 7]);
                    // The first ten go on, and the next one is dropped.
                    let answer = if number == 10 { Answer::Drop } else { Answer::Next };
                    let meta = answer.to_meta();
                    assert!(sends.push(Descriptor { offset: 100, length: 3, meta, ..packet }));
                    sent.push(packet.buffer);
                }
                gets.release();
                sends.publish();
                let mut batch = DirectBatch::default();
                left.list_direct(&mut batch).unwrap();
                assert_eq!(batch.len(), 10);
                assert!((0..).zip(batch.packets()).all(|(number, packet)| packet.tag == 1 + round + number));
                batch.packets().iter_mut().for_each(|packet| packet.tag += 100);
                // What is left out stays in the ring.
                batch.truncate(8);
                right.send_direct(&mut batch).unwrap();
                right.publish();
                assert_eq!(batch.moved(), (8, 24));
                left.release_direct(&batch);
                assert_eq!((left.waiting(), right.waiting()), ([0, 42], [8, 0]));
                assert_eq!(receives.available(64), Ok(8));
                for (number, buffer) in (0..8u8).zip(&sent) {
                    let packet = receives.pop().unwrap();
                    let mut bytes = [0; 3];
                    buffers.read(right.pool.range(packet).unwrap().start, &mut bytes);
                    assert_eq!((packet.buffer, packet.meta, bytes), (*buffer, 0, [round as u8, number, 7]));
                    assert_eq!(tags.take(*buffer), 101 + round + u64::from(number));
                }
                receives.release();
                // The others are received as any packets.
                left.available(64).unwrap();
                for (number, buffer) in (8u64..).zip(&sent[8..]) {
                    let packet = left.take().unwrap().unwrap();
                    let answer = if number == 10 { Answer::Drop } else { Answer::Next };
                    assert_eq!((packet.tag, packet.meta), (1 + round + number, answer.to_meta()));
                    assert_eq!(packet.range.start, *buffer as usize * BUFFER_SIZE + 100);
                }
                left.release();
                assert_eq!(pass_direct(&mut left, &mut right), 0);
            }
            assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
        });
    }

    #[test]
    fn a_switch_passes_packets_with_their_buffers() {
        with_pool(|[mut left, mut right], [(_, mut sends), (mut receives, _)], buffers, holders| {
            for round in 0..40u16 {
                let mut sent = Vec::new();
                sends.free(64).unwrap();
                for number in 0..50 {
                    let spare = sends.spare().unwrap();
                    buffers.write(spare.buffer as usize * BUFFER_SIZE + 100, &[round as u8, number, 7]);
                    assert!(sends.push(Descriptor { offset: 100, length: 3, ..spare }));
                    sent.push(spare.buffer);
                }
                sends.publish();
                assert_eq!(switch(&mut left, &mut right), 50);
                assert_eq!(receives.available(64), Ok(50));
                for (number, buffer) in (0u8..).zip(sent) {
                    let packet = receives.pop().unwrap();
                    let mut bytes = [0; 3];
                    buffers.read(right.pool.range(packet).unwrap().start, &mut bytes);
                    assert_eq!((packet.buffer, bytes), (buffer, [round as u8, number, 7]));
                }
                receives.release();
            }
            assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
        });
    }

    /// A tag comes back once, with the buffer in which the box got the packet, through whichever port.
    #[test]
    fn a_tag_belongs_to_the_buffer_in_which_a_packet_was_given() {
        with_region(|region, layout| {
            let mut port = HostPort::new(&region, &layout, ()).unwrap();
            let tags = Arc::new(BufferTags::new(port.buffer_count()));
            port.note_tags(&tags);
            let (mut receives, mut sends) = box_side(&region, &layout);
            assert_eq!(port.room(3), Ok(64));
            for tag in [7, 0, 9] {
                assert_eq!(port.send_parts(&[1; 60], None, tag), Ok(true));
            }
            port.publish();
            receives.available(3).unwrap();
            sends.free(4).unwrap();
            // In the buffer that it came in, in another one, and twice.
            let mut given = Vec::new();
            for _ in 0..3 {
                let spare = sends.borrow().unwrap();
                given.push(receives.exchange(spare.buffer).unwrap());
            }
            let foreign = sends.borrow().unwrap();
            let answer = Answer::Port(5).to_meta();
            sends.push(Descriptor { meta: answer, ..given[2] });
            sends.push(given[1]);
            sends.push(Descriptor { length: 60, ..foreign });
            sends.push(given[2]);
            sends.publish();
            port.available(4).unwrap();
            let mut back = || port.take().unwrap().map(|packet| (packet.tag, packet.meta)).unwrap();
            assert_eq!([back(), back(), back(), back()], [(9, answer), (0, 0), (0, 0), (0, 0)]);
            assert_eq!(tags.take(given[0].buffer), 7);
        });
    }

    /// Boxes that name buffers of others lose the packet, and own as many buffers as before.
    #[test]
    fn boxes_that_name_foreign_buffers_keep_their_own() {
        with_pool(|[mut left, mut right], mut sides, buffers, holders| {
            let mut random = Random::new(21);
            let (mut faulty, mut direct) = (0, 0);
            left.note_tags(&Arc::new(BufferTags::new(0)));
            right.note_tags(&Arc::new(BufferTags::new(0)));
            let mut buffer = [0; BUFFER_SIZE];
            for _ in 0..3_000 {
                for (_, sends) in &mut sides {
                    for _ in 0..sends.free(64).unwrap().min(random.next() as u32 % 20) {
                        let lie = Descriptor::from_bits(random.next() & 0x0000_0fff_3ff0_01ff);
                        let honest = Descriptor { length: 60, ..sends.spare().unwrap() };
                        sends.push(if random.next().is_multiple_of(3) { lie } else { honest });
                    }
                    sends.publish();
                }
                faulty += left.pass(&mut right, 1000).unwrap().faulty;
                faulty += right.pass(&mut left, 1000).unwrap().faulty;
                for (_, sends) in &mut sides {
                    for _ in 0..sends.free(64).unwrap().min(random.next() as u32 % 9) {
                        sends.push(Descriptor::from_bits(random.next() & 0x0000_0fff_3ff0_01ff));
                    }
                    sends.publish();
                }
                (0..300).for_each(|buffer| holders.tags().set(buffer, 1 + random.next() % 9));
                direct += pass_direct(&mut right, &mut left);
                direct += pass_direct(&mut left, &mut right);
                switch(&mut left, &mut right);
                switch(&mut right, &mut left);
                for (receives, _) in &mut sides {
                    for _ in 0..receives.available(64).unwrap() {
                        let lie = (random.next() % 300) as u32;
                        let _ = if random.next().is_multiple_of(50) {
                            receives.exchange(lie)
                        } else {
                            receives.pop()
                        };
                    }
                    receives.release();
                }
                // A receiver that copies the packets may find the same invalid descriptors.
                let _ = left.available(64).and_then(|_| left.receive(&mut buffer).map(drop));
                let _ = right.room(64).and_then(|_| right.send(&[1; 60]));
                right.publish();
                left.release();
            }
            assert!(faulty > 100 && direct > 100, "{faulty} faulty, {direct} direct");
            assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
            assert_eq!(buffers.size(), 300 * BUFFER_SIZE);
        });
    }

    #[test]
    fn a_port_outside_its_region_is_refused() {
        with_region(|region, layout| {
            let outside = PortLayout { buffers: region.size() - 8, ..layout };
            assert!(HostPort::new(&region, &outside, Vec::<u8>::new()).is_err());
        });
    }
}
