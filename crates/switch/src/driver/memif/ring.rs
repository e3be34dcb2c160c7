//! The rings of a connection.
//!
//! A ring has a header of three cache lines, here of 128 bytes in all, and descriptors of 16 bytes:
//!
//! | offset | bytes | contents |
//! |---|---|---|
//! | 0 | 4 | [`COOKIE`] |
//! | 4 | 2 | flags, set by the reader: [`MASKED`] |
//! | 6 | 2 | head: moved by the client |
//! | 64 | 2 | tail: moved by the server |
//! | 128 + 16 N | 2, 2, 4, 4, 4 | flags ([`NEXT`]), region, length, offset of the buffer, metadata |
//!
//! In the ring to the server, the client moves the head past frames, and the server the tail past those that it took. In the ring
//! to the client, the client moves the head past empty buffers, and the server the tail past those that it filled. Either way
//! a ring has a [`Reader`] and a [`Writer`], and the client owns the buffers.
//!
//! The other side is hostile. Each side keeps its own index in private memory, and checks that of the other; it copies a
//! descriptor once, and checks the copy. The client made the buffers: it knows where they are, and takes only lengths
//! from descriptors.

use super::error::MemifError;
use super::memory::Region;
use crate::batch::{Batch, MAX_FRAME};
use crate::driver::contract::{Received, Sent};
use boundary::end_stream;
use std::sync::atomic::{AtomicU16, Ordering, fence};

/// Marks a ring.
pub(super) const COOKIE: u32 = 0x3E3_1F20;
/// Maximum slots of a ring, as a power of two. The indices have 16 bits, and VPP has no larger rings.
pub(super) const MAX_LOG2_SIZE: u8 = 14;
/// Bytes of a ring's header.
const HEADER: usize = 128;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// Offsets in the header.
const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;
/// Flag of a ring: its reader needs no interrupts.
const MASKED: u16 = 1;
/// Flag of a descriptor: the frame goes on in the next one.
const NEXT: u64 = 1;
/// How many slots ahead a buffer is fetched into the cache.
const AHEAD: u16 = 4;
/// How many slots ahead a descriptor is fetched that will be written to.
const DESCRIPTORS_AHEAD: u16 = 16;
/// How many slots are filled before the peer is shown them, so that it takes frames while others are written.
const SHOWN_TOGETHER: u16 = 64;
/// Bytes of the frames that are copied without a loop.
const SHORT: usize = 64;

/// Bytes from one buffer to the next: a cache line more than a frame has. A multiple of a power of two would put the first lines
/// of all buffers into few sets of the processor's caches.
pub(super) const STRIDE: usize = MAX_FRAME + 64;

/// Bytes of a ring.
pub(super) const fn bytes(log2_size: u8) -> usize {
    HEADER + (DESCRIPTOR << log2_size)
}

/// Where a ring is, and whose its buffers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) region: u16,
    pub(super) offset: u32,
    pub(super) log2_size: u8,
    pub(super) buffers: Buffers,
}

/// Whose the buffers of a ring are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffers {
    /// This side is the client. They begin at this offset of region 0; there is one for each slot, every [`STRIDE`] bytes.
    Own(usize),
    /// The peer is the client.
    Peers,
}

/// Writes an empty ring into a region, for its client.
pub(super) fn create(region: &Region, place: Place) {
    let Buffers::Own(buffers) = place.buffers else { return };
    let start = place.offset as usize;
    region.store(start, u64::from(COOKIE));
    for slot in 0..1 << place.log2_size {
        let at = start + HEADER + slot * DESCRIPTOR;
        region.store(at, (MAX_FRAME as u64) << 32);
        region.store(at + 8, (buffers + slot * STRIDE) as u64);
    }
}

/// A ring, and how far this side is in it.
#[derive(Debug)]
struct Ring {
    place: Place,
    size: u16,
    position: u16,
}

/// A descriptor that was copied.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    region: usize,
    offset: usize,
    length: usize,
    has_next: bool,
}

impl Ring {
    /// Returns an error if the ring is not where its client says.
    fn open(regions: &[Region], place: Place) -> Result<Self, MemifError> {
        let region = regions.get(usize::from(place.region)).ok_or(MemifError::Place)?;
        let start = place.offset as usize;
        let is_possible = place.log2_size <= MAX_LOG2_SIZE && start.is_multiple_of(DESCRIPTOR);
        if !is_possible || start + bytes(place.log2_size) > region.size() {
            return Err(MemifError::Place);
        }
        match region.load(start) as u32 {
            COOKIE => Ok(Self { place, size: 1 << place.log2_size, position: 0 }),
            _ => Err(MemifError::Cookie),
        }
    }

    #[inline(always)]
    fn half<'a>(&self, regions: &'a [Region], offset: usize) -> Option<&'a AtomicU16> {
        regions.get(usize::from(self.place.region))?.half(self.place.offset as usize + offset)
    }

    /// The offsets of the index that this side moves, and of the other one.
    #[inline(always)]
    fn indices(&self) -> (usize, usize) {
        match self.place.buffers {
            Buffers::Own(_) => (HEAD, TAIL),
            Buffers::Peers => (TAIL, HEAD),
        }
    }

    /// Shows the peer how far this side is.
    #[inline(always)]
    fn publish(&self, regions: &[Region], index: u16) {
        if let Some(word) = self.half(regions, self.indices().0) {
            word.store(index, Ordering::Release);
        }
    }

    /// How far the peer is.
    #[inline(always)]
    fn peer(&self, regions: &[Region]) -> u16 {
        self.half(regions, self.indices().1).map_or(self.position, |word| word.load(Ordering::Acquire))
    }

    /// A number of slots, if the ring has as many.
    #[inline(always)]
    fn checked(&self, slots: u16) -> Result<u16, MemifError> {
        if slots > self.size { Err(MemifError::Index) } else { Ok(slots) }
    }

    #[inline(always)]
    fn slot(&self, position: u16) -> usize {
        usize::from(position & (self.size - 1))
    }

    /// The descriptor at a position. Of the own buffers it is known where they are.
    #[inline(always)]
    fn descriptor(&self, regions: &[Region], position: u16) -> Descriptor {
        let slot = self.slot(position);
        let at = self.place.offset as usize + HEADER + slot * DESCRIPTOR;
        let word = |at| regions.get(usize::from(self.place.region)).map_or(0, |region| region.load(at));
        let first = word(at);
        let (length, has_next) = ((first >> 32) as usize, first & NEXT != 0);
        match self.place.buffers {
            Buffers::Own(buffers) => {
                Descriptor { region: 0, offset: buffers + slot * STRIDE, length, has_next }
            }
            Buffers::Peers => {
                let (region, offset) = (usize::from((first >> 16) as u16), word(at + 8) as u32 as usize);
                Descriptor { region, offset, length, has_next }
            }
        }
    }

    /// Sets the length of a descriptor, and whether the frame goes on in the next one.
    #[inline(always)]
    fn describe(&self, regions: &[Region], position: u16, buffer: Descriptor) {
        let at = self.place.offset as usize + HEADER + self.slot(position) * DESCRIPTOR;
        if let Some(region) = regions.get(usize::from(self.place.region)) {
            let flags = if buffer.has_next { NEXT } else { 0 };
            region.store(at, flags | (buffer.region as u64) << 16 | (buffer.length as u64) << 32);
        }
    }

    /// Fetches the descriptor at a position, which will be written to.
    #[inline(always)]
    fn prefetch_descriptor(&self, regions: &[Region], position: u16) {
        if let Some(region) = regions.get(usize::from(self.place.region)) {
            let at = self.place.offset as usize + HEADER + self.slot(position) * DESCRIPTOR;
            region.prefetch_write(at);
        }
    }

    /// The buffer at a position: its region, and where it is there.
    #[inline(always)]
    fn buffer<'a>(&self, regions: &'a [Region], position: u16) -> Option<(&'a Region, usize)> {
        let Descriptor { region, offset, .. } = self.descriptor(regions, position);
        Some((regions.get(region)?, offset))
    }
}

/// The end of a ring at which frames are read.
#[derive(Debug)]
pub(super) struct Reader(Ring);

impl Reader {
    /// Opens the end. A client must [`start`](Self::start) it, when the server has accepted everything.
    pub(super) fn open(regions: &[Region], place: Place) -> Result<Self, MemifError> {
        Ring::open(regions, place).map(Self)
    }

    /// Gives the peer all buffers, if they are those of this side, and masks interrupts.
    pub(super) fn start(&self, regions: &[Region]) {
        self.release(regions);
        self.mask(regions);
    }

    /// The frames, or parts of them, that wait.
    #[inline(always)]
    pub(super) fn waiting(&self, regions: &[Region]) -> Result<u16, MemifError> {
        self.0.checked(self.0.peer(regions).wrapping_sub(self.0.position))
    }

    /// Adds frames to a batch, from at most this number of slots. Returns the slots that were read.
    pub(super) fn receive(
        &mut self,
        regions: &[Region],
        batch: &mut Batch,
        most: u16,
    ) -> Result<(u16, Received), MemifError> {
        let waiting = self.waiting(regions)?.min(most);
        let (mut received, mut read) = (Received::default(), 0);
        let room = u16::try_from(batch.room()).unwrap_or(u16::MAX);
        let mut frames = 0;
        // Frames that cannot be used count too, so that a visit ends.
        while read < waiting && frames < room {
            let ahead = self.0.position.wrapping_add(AHEAD);
            if read + AHEAD < waiting
                && let Some((region, offset)) = self.0.buffer(regions, ahead)
            {
                region.prefetch_read(offset);
            }
            frames += 1;
            let descriptor = self.take(regions, &mut read);
            let length = descriptor.length;
            if descriptor.has_next {
                self.receive_chain(regions, batch, descriptor, &mut read, waiting, &mut received);
            } else if length > MAX_FRAME {
                received.long += 1;
            } else if let Some(space) = batch.space()
                && let Some(region) = regions.get(descriptor.region)
                && (length <= SHORT && read_short(region, descriptor.offset, space)
                    || space.get_mut(..length).is_some_and(|space| region.read(descriptor.offset, space)))
            {
                batch.commit(length);
            } else {
                received.faulty += 1;
            }
        }
        if read > 0 {
            self.release(regions);
        }
        Ok((read, received))
    }

    /// Takes the descriptor in the next slot, and empties the slot.
    #[inline(always)]
    fn take(&mut self, regions: &[Region], read: &mut u16) -> Descriptor {
        let descriptor = self.0.descriptor(regions, self.0.position);
        if let Buffers::Own(_) = self.0.place.buffers {
            let empty = Descriptor { length: MAX_FRAME, has_next: false, ..descriptor };
            self.0.describe(regions, self.0.position, empty);
        }
        self.0.position = self.0.position.wrapping_add(1);
        *read += 1;
        descriptor
    }

    /// Collects a frame that lies in several buffers. A chain must end with the slots that the peer has published.
    #[cold]
    fn receive_chain(
        &mut self,
        regions: &[Region],
        batch: &mut Batch,
        mut descriptor: Descriptor,
        read: &mut u16,
        waiting: u16,
        received: &mut Received,
    ) {
        let (mut length, mut is_faulty) = (0usize, false);
        loop {
            let end = length.saturating_add(descriptor.length);
            if let (false, Some(space)) =
                (is_faulty, batch.space().and_then(|space| space.get_mut(length..end)))
            {
                let region = regions.get(descriptor.region);
                is_faulty = !region.is_some_and(|region| region.read(descriptor.offset, space));
            }
            length = end;
            if !descriptor.has_next {
                break;
            }
            if *read == waiting {
                is_faulty = true;
                break;
            }
            descriptor = self.take(regions, read);
        }
        match (is_faulty, length > MAX_FRAME) {
            (true, _) => received.faulty += 1,
            (false, true) => received.long += 1,
            (false, false) => batch.commit(length),
        }
    }

    /// Lets the peer use the slots again that were read.
    #[inline(always)]
    fn release(&self, regions: &[Region]) {
        let given = match self.0.place.buffers {
            Buffers::Own(_) => self.0.position.wrapping_add(self.0.size),
            Buffers::Peers => self.0.position,
        };
        self.0.publish(regions, given);
    }

    /// Asks the peer for interrupts. Returns false if frames wait already.
    pub(super) fn unmask(&self, regions: &[Region]) -> Result<bool, MemifError> {
        self.set_flags(regions, 0);
        fence(Ordering::SeqCst);
        Ok(self.waiting(regions)? == 0)
    }

    /// Tells the peer that interrupts are not needed.
    pub(super) fn mask(&self, regions: &[Region]) {
        self.set_flags(regions, MASKED);
    }

    fn set_flags(&self, regions: &[Region], flags: u16) {
        if let Some(word) = self.0.half(regions, FLAGS) {
            word.store(flags, Ordering::Relaxed);
        }
    }
}

/// Copies the longest short frame, by few instructions. Returns false if it is not inside the region.
#[inline(always)]
fn read_short(region: &Region, offset: usize, space: &mut [u8; MAX_FRAME]) -> bool {
    space.first_chunk_mut::<SHORT>().is_some_and(|space| region.read(offset, space))
}

/// The end of a ring at which frames are written.
#[derive(Debug)]
pub(super) struct Writer {
    ring: Ring,
    /// Slots that were filled since the beginning.
    filled: u64,
}

impl Writer {
    /// Opens the end.
    pub(super) fn open(regions: &[Region], place: Place) -> Result<Self, MemifError> {
        Ring::open(regions, place).map(|ring| Self { ring, filled: 0 })
    }

    /// Slots with empty buffers.
    #[inline(always)]
    fn free(&self, regions: &[Region]) -> Result<u16, MemifError> {
        let Ring { position, size, .. } = self.ring;
        let peer = self.ring.peer(regions);
        match self.ring.place.buffers {
            Buffers::Own(_) => Ok(size - self.ring.checked(position.wrapping_sub(peer))?),
            Buffers::Peers => self.ring.checked(peer.wrapping_sub(position)),
        }
    }

    /// Whether less than a quarter of the slots are free.
    pub(super) fn is_crowded(&self, regions: &[Region]) -> bool {
        self.free(regions).is_ok_and(|free| free < self.ring.size / 4)
    }

    /// Frames, or parts of them, that the peer has not taken. At its end it may have more empty buffers than it gave back.
    pub(super) fn untaken(&self, regions: &[Region]) -> u64 {
        self.free(regions).map_or(0, |free| u64::from(self.ring.size - free).min(self.filled))
    }

    /// Writes frames, in order, as far as there is room. The peer must be woken if the second value is true.
    pub(super) fn send(
        &mut self,
        regions: &[Region],
        batch: &Batch,
        frames: &[u32],
    ) -> Result<(Sent, bool), MemifError> {
        let mut sent = Sent::default();
        let mut free = self.free(regions)?;
        let mut shown = self.ring.position;
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)) {
            if free > DESCRIPTORS_AHEAD {
                self.ring.prefetch_descriptor(regions, self.ring.position.wrapping_add(DESCRIPTORS_AHEAD));
            }
            let Some(used) = self.write(regions, frame, free)? else { break };
            free -= used;
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
            if self.ring.position.wrapping_sub(shown) >= SHOWN_TOGETHER {
                shown = self.ring.position;
                self.show(regions);
            }
        }
        sent.is_crowded = free < self.ring.size / 4;
        if sent.frames == 0 {
            return Ok((sent, false));
        }
        self.show(regions);
        // The peer unmasks interrupts, and then looks at the index; this side does the same in the other order.
        fence(Ordering::SeqCst);
        let flags = self.ring.half(regions, FLAGS).map_or(MASKED, |word| word.load(Ordering::Relaxed));
        Ok((sent, flags & MASKED == 0))
    }

    /// Shows the peer the frames that were written.
    #[inline(always)]
    fn show(&self, regions: &[Region]) {
        end_stream();
        self.ring.publish(regions, self.ring.position);
    }

    /// Writes a frame. Returns the slots that it took, or `None` if it does not fit into the free ones.
    #[inline(always)]
    fn write(&mut self, regions: &[Region], frame: &[u8], free: u16) -> Result<Option<u16>, MemifError> {
        if free == 0 {
            return Ok(None);
        }
        let buffer = self.ring.descriptor(regions, self.ring.position);
        let capacity = match self.ring.place.buffers {
            Buffers::Own(_) => MAX_FRAME,
            Buffers::Peers => buffer.length,
        };
        if frame.len() > capacity {
            return self.write_chain(regions, frame, free);
        }
        if !regions.get(buffer.region).is_some_and(|region| region.write(buffer.offset, frame, capacity)) {
            return Err(MemifError::Buffer);
        }
        let filled = Descriptor { length: frame.len(), has_next: false, ..buffer };
        self.ring.describe(regions, self.ring.position, filled);
        self.ring.position = self.ring.position.wrapping_add(1);
        self.filled += 1;
        Ok(Some(1))
    }

    /// Like [`write`](Self::write), for a frame that is longer than a buffer.
    #[cold]
    fn write_chain(
        &mut self,
        regions: &[Region],
        frame: &[u8],
        free: u16,
    ) -> Result<Option<u16>, MemifError> {
        let (mut rest, mut used) = (frame, 0);
        loop {
            if used == free {
                return Ok(None);
            }
            let position = self.ring.position.wrapping_add(used);
            let mut buffer = self.ring.descriptor(regions, position);
            let (part, next) = rest.split_at_checked(buffer.length).unwrap_or((rest, &[]));
            let is_written = regions
                .get(buffer.region)
                .is_some_and(|region| region.write(buffer.offset, part, buffer.length));
            if !is_written {
                return Err(MemifError::Buffer);
            }
            (buffer.length, buffer.has_next) = (part.len(), !next.is_empty());
            self.ring.describe(regions, position, buffer);
            (rest, used) = (next, used + 1);
            if rest.is_empty() {
                self.ring.position = self.ring.position.wrapping_add(used);
                self.filled += u64::from(used);
                return Ok(Some(used));
            }
        }
    }
}
