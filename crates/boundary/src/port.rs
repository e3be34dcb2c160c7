//! The host's end of a box's port. Packets are copied, so that what was checked stays as it was.

use crate::layout::PortLayout;
use crate::limits::BUFFER_SIZE;
use crate::memory::{Mapped, SharedMemory};
use crate::origin::{Origin, Remainder};
use crate::ring::{Consumer, Corrupt, Descriptor, DescriptorError, Pool, Producer, RingError};
use core::fmt;
use core::ops::Range;

/// How many packets ahead memory is asked for: the time of so many packets is that of a cache miss.
const AHEAD: u32 = 8;

/// Bytes of a cache line.
const LINE: usize = 64;

/// What a box did to its port that no correct box does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortFault {
    /// An index is impossible: the port is of no more use.
    Corrupt(Corrupt),
    /// A descriptor leaves its pool: the packet is lost, the port goes on.
    Descriptor(DescriptorError),
}

impl From<Corrupt> for PortFault {
    fn from(corrupt: Corrupt) -> Self {
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

impl core::error::Error for PortFault {}

/// The host's end of a port.
#[derive(Debug)]
pub struct HostPort<Owner> {
    to_box: Producer<Mapped>,
    from_box: Consumer<Mapped>,
    buffers: Mapped,
    pool: Pool,
    /// Keeps the memory that the rings lie in.
    owner: Owner,
}

impl<Owner> HostPort<Owner> {
    /// The ends of a new port in a zeroed area, whose rings get the buffers that they start with. `owner`
    /// is kept as long as the ends are: it keeps the area.
    pub fn new(area: &Mapped, layout: &PortLayout, owner: Owner) -> Result<Self, RingError> {
        let mut port = Self::at(area, layout, [0; 2], owner)?;
        port.to_box.fill(layout.first);
        // The transmit ring is the box's to produce into; the buffers that it starts with are put there
        // by the host.
        let transmit = part(area, layout.transmit, layout.slots.bytes())?;
        Producer::new(transmit, layout.slots)?.fill(layout.first.wrapping_add(layout.slots.count() as u16));
        Ok(port)
    }

    /// The ends of a port whose rings (receive, transmit) were empty at these positions.
    pub fn at(
        area: &Mapped,
        layout: &PortLayout,
        positions: [u32; 2],
        owner: Owner,
    ) -> Result<Self, RingError> {
        let ring = |offset| part(area, offset, layout.slots.bytes());
        Ok(Self {
            to_box: Producer::at(ring(layout.receive)?, layout.slots, positions[0])?,
            from_box: Consumer::at(ring(layout.transmit)?, layout.slots, positions[1])?,
            buffers: part(area, layout.buffers, layout.buffers_size)?,
            pool: Pool::in_bytes(layout.buffers_size),
            owner,
        })
    }

    /// Packets that can be sent to the box now.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> Result<u32, PortFault> {
        Ok(self.to_box.free(wanted)?)
    }

    /// Copies a packet into the ring to the box, not visible before [`publish`](Self::publish). False:
    /// the ring is full by what [`room`](Self::room) last saw, or the packet is longer than a buffer.
    #[inline]
    pub fn send(&mut self, packet: &[u8]) -> Result<bool, PortFault> {
        self.send_parts(packet, None)
    }

    /// As [`send`](Self::send), for a packet of which only the beginning has been copied out of where it
    /// came from.
    #[inline]
    pub fn send_parts(&mut self, head: &[u8], rest: Option<Remainder>) -> Result<bool, PortFault> {
        let next = self.to_box.ahead(AHEAD);
        if let Some((spare, start)) =
            next.and_then(|spare| Some((spare, self.pool.buffer(spare.buffer).ok()?)))
        {
            let place = Pool::place(spare.buffer, LINE);
            self.buffers.expect_write(start + usize::from(place));
        }
        let length = head.len() + rest.map_or(0, |rest| rest.length());
        let Some(spare) = self.to_box.spare().filter(|_| length <= BUFFER_SIZE) else {
            return Ok(false);
        };
        let offset = Pool::place(spare.buffer, length);
        let start = self.pool.buffer(spare.buffer)? + usize::from(offset);
        match head.first_chunk::<LINE>() {
            // Of a known length it is a few instructions instead of a call.
            Some(line) if head.len() == LINE => self.buffers.write(start, line),
            _ => self.buffers.write(start, head),
        }
        if let Some(rest) = rest {
            rest.copy_to(&self.buffers, start + head.len());
        }
        Ok(self.to_box.push(Descriptor { buffer: spare.buffer, offset, length: length as u16, flags: 0 }))
    }

    /// Shows the box what was sent. True: it sleeps, and its doorbell is to be rung.
    #[inline]
    pub fn publish(&mut self) -> bool {
        self.to_box.publish()
    }

    /// Packets that the box has sent.
    #[inline]
    pub fn available(&mut self, wanted: u32) -> Result<u32, PortFault> {
        Ok(self.from_box.available(wanted)?)
    }

    /// Copies the next packet that the box has sent; its bytes. Nothing: there is none by what
    /// [`available`](Self::available) last saw.
    #[inline]
    pub fn receive<'a>(&mut self, into: &'a mut [u8; BUFFER_SIZE]) -> Result<Option<&'a [u8]>, PortFault> {
        let Some(descriptor) = self.from_box.pop() else { return Ok(None) };
        let range = self.pool.range(descriptor)?;
        let (packet, _) = into.split_at_mut(range.len());
        self.buffers.read(range.start, packet);
        Ok(Some(packet))
    }

    /// Takes the next packet that the box has sent where it lies in [`origin`](Self::origin), for the caller
    /// to copy before [`release`](Self::release). Nothing: as in [`receive`](Self::receive).
    ///
    /// The box may still write to it: what is to be relied on is copied first, and then looked at.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Range<usize>>, PortFault> {
        if let Some(range) = self.from_box.ahead(AHEAD).and_then(|next| self.pool.range(next).ok()) {
            self.buffers.expect_read(range.start);
        }
        let Some(descriptor) = self.from_box.pop() else { return Ok(None) };
        Ok(Some(self.pool.range(descriptor)?))
    }

    /// The memory that the port's packets lie in.
    pub fn origin(&self) -> Origin
    where
        Owner: Clone + Send + Sync + 'static,
    {
        Origin::new(self.buffers, self.owner.clone())
    }

    /// Gives the slots that were received from back. True: the box sleeps, and its doorbell is to be rung.
    #[inline]
    pub fn release(&mut self) -> bool {
        self.from_box.release()
    }

    /// Copies up to `most` packets straight from this port's box to another's, and publishes them;
    /// nothing looks at their contents. Packets that leave their pool are left out. What the other ring
    /// has no room for stays.
    pub fn pass<Other>(&mut self, other: &mut HostPort<Other>, most: u32) -> Result<Passed, PortFault> {
        let there = self.from_box.available(most)?.min(most);
        let count = other.to_box.free(there)?.min(there);
        let mut passed = Passed::default();
        for _ in 0..count {
            let next = self.from_box.ahead(AHEAD).and_then(|packet| self.pool.range(packet).ok());
            let spare = other.to_box.ahead(AHEAD).and_then(|spare| other.pool.buffer(spare.buffer).ok());
            if let (Some(next), Some(spare)) = (next, spare) {
                self.buffers.expect_read(next.start);
                other.buffers.expect_write(spare);
            }
            let (Some(packet), Some(spare)) = (self.from_box.pop(), other.to_box.spare()) else { break };
            match (self.pool.range(packet), other.pool.buffer(spare.buffer)) {
                (Ok(from), Ok(to)) => {
                    let (length, offset) = (packet.length, Pool::place(spare.buffer, from.len()));
                    self.buffers.copy_to(from.start, &other.buffers, to + usize::from(offset), from.len());
                    other.to_box.push(Descriptor { buffer: spare.buffer, offset, length, flags: 0 });
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

    /// Announces that the host sleeps until the box sends. False: it has sent already, don't sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, PortFault> {
        Ok(self.from_box.prepare_sleep()?)
    }

    /// Announces that the host sleeps until the box has room for a packet. False: it has room already,
    /// don't sleep.
    pub fn prepare_room_sleep(&mut self) -> Result<bool, PortFault> {
        Ok(self.to_box.prepare_sleep()?)
    }

    /// Takes the announcements back.
    pub fn end_sleep(&self) {
        self.from_box.end_sleep();
        self.to_box.end_sleep();
    }
}

/// What [`HostPort::pass`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets copied.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Packets left out because one of the boxes wrote an impossible descriptor.
    pub faulty: u32,
    /// The receiving box sleeps, and its doorbell is to be rung.
    pub wake_receiver: bool,
    /// The sending box sleeps for want of room, and its doorbell is to be rung.
    pub wake_sender: bool,
}

fn part(area: &Mapped, offset: usize, size: usize) -> Result<Mapped, RingError> {
    let missing = RingError::Region { needed: offset.saturating_add(size), found: area.size() };
    area.part(offset, size).ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::AreaLayout;
    use crate::memory::hostile::Random;
    use crate::ring::Slots;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::ptr::NonNull;
    use core::sync::atomic::Ordering::Relaxed;

    /// Runs `body` with a new area that has one port of 64 slots.
    fn with_area(body: impl FnOnce(Mapped, PortLayout)) {
        let layout = AreaLayout::new(&[Slots::new(64).unwrap()]).unwrap();
        let mut words = vec![0u64; layout.size / 8];
        // SAFETY: the vector outlives `body` and is not touched meanwhile.
        let area = unsafe { Mapped::new(NonNull::new(words.as_mut_ptr().cast()).unwrap(), layout.size) };
        body(area, layout.ports[0]);
    }

    /// The box's side of the same port.
    fn box_side(area: &Mapped, layout: &PortLayout) -> (Consumer<Mapped>, Producer<Mapped>) {
        let ring = |offset| area.part(offset, layout.slots.bytes()).unwrap();
        let receive = Consumer::new(ring(layout.receive), layout.slots).unwrap();
        (receive, Producer::new(ring(layout.transmit), layout.slots).unwrap())
    }

    #[test]
    fn packets_pass_from_box_to_box() {
        with_area(|left_area, layout| {
            with_area(|right_area, _| {
                let mut left = HostPort::new(&left_area, &layout, ()).unwrap();
                let mut right = HostPort::new(&right_area, &layout, ()).unwrap();
                let (_, mut sends) = box_side(&left_area, &layout);
                let (mut receives, _) = box_side(&right_area, &layout);
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

    /// Random words over rings and descriptors: an error, a packet, or nothing, and never a byte outside.
    #[test]
    fn a_box_that_scribbles_is_harmless() {
        with_area(|area, layout| {
            let mut random = Random::new(3);
            let mut buffer = [0; BUFFER_SIZE];
            for _ in 0..300 {
                let mut port = HostPort::new(&area, &layout, ()).unwrap();
                for _ in 0..40 {
                    let offset = layout.receive + random.next() as usize % (layout.buffers - layout.receive);
                    area.store_u32(offset & !3, random.edge() as u32, Relaxed);
                    let _ = port.room(64).and_then(|_| port.send(&[1; 60]));
                    port.publish();
                    let _ = port.available(64).and_then(|_| port.receive(&mut buffer).map(|_| ()));
                    port.release();
                }
                for ring in [layout.receive, layout.transmit] {
                    area.write(ring, &[0; 256]);
                }
            }
        });
    }

    #[test]
    fn a_port_outside_its_area_is_refused() {
        with_area(|area, layout| {
            let outside = PortLayout { buffers: area.size() - 8, ..layout };
            assert!(HostPort::new(&area, &outside, Vec::<u8>::new()).is_err());
        });
    }
}
