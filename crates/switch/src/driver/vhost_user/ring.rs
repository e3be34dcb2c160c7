//! A split ring of a peer: a table of descriptors, the list of those that the peer has made available, and the list of
//! those that the switch has used.
//!
//! The switch walks the ring by itself and in order, so what it has used is always a prefix of what it has taken: the
//! index of the one is that of the other between two calls. It publishes the index once a call.

use super::error::VhostUserError;
use super::memory::{Descriptor, GuestMemory, MAX_HEADER, RingPart};
use super::messages::RingPlace;
use super::offloads::{OffloadFeatures, OffloadHeader, Offloads};
use crate::batch::{Batch, MAX_FRAME};
use crate::device::{Coalescer, OFFLOAD_HEADER};
use crate::driver::contract::{Received, Sent};
use boundary::end_stream;
use reason::Reason;
use std::sync::atomic::{Ordering, fence};

/// Maximum number of descriptors of a ring, by the standard.
const MAX_SIZE: u32 = 32768;
/// Maximum number of buffers for one frame to the peer. A peer with buffers of a few bytes could otherwise make each frame
/// cost as much as hundreds.
const MAX_SEGMENTS: usize = 64;
/// Maximum number of descriptors of one chain, as in QEMU and Linux. A peer with a large ring could otherwise make each frame cost
/// as much as thousands.
const MAX_CHAIN: u16 = 1024;

/// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Bytes of a descriptor.
const DESCRIPTOR_SIZE: u32 = 16;
/// The flag of each list by which its writer says that it wants no notifications.
const QUIET: u16 = 1;

/// How far ahead frames are fetched from memory.
const AHEAD: u16 = 8;

/// What was agreed on about rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RingFeatures {
    /// Bytes of the header before each frame.
    pub(super) header: usize,
    /// A frame to the peer may take several buffers.
    pub(super) is_mergeable: bool,
    /// Notifications are asked for by index.
    pub(super) by_index: bool,
    /// Chains may go on in tables of their own, in the memory of the peer.
    pub(super) has_tables: bool,
    pub(super) offloads: OffloadFeatures,
}

/// A descriptor of a chain, and where those after it are.
#[derive(Clone, Copy, Debug)]
struct Link {
    descriptor: Descriptor,
    /// The address of the chain's own table, and its number of descriptors. Without one, they are in that of the ring.
    table: Option<(u64, u16)>,
    /// How many more there may be: a longer chain is a loop.
    left: u16,
}

/// Buffers for a frame to the peer.
#[derive(Debug, Default)]
struct Buffers {
    /// The head of each entry of the list, and the bytes in it.
    entries: Vec<(u16, u32)>,
    /// The address and the length of each buffer.
    pieces: Vec<(u64, usize)>,
}

/// A ring.
#[derive(Debug)]
pub(super) struct Ring {
    table: RingPart,
    available: RingPart,
    used: RingPart,
    /// The number of descriptors, less one: a power of two.
    mask: u16,
    /// The index of the next entry to take, which is that of the next one to use.
    next: u16,
    /// The index that was last published.
    published: u16,
    features: RingFeatures,
}

/// Whether a ring can have this number of descriptors.
pub(super) fn is_size(size: u32) -> bool {
    size.is_power_of_two() && size <= MAX_SIZE
}

impl Ring {
    /// The ring at a place in the memory. It goes on after the last entry that the peer was shown as used: entries that an
    /// earlier back end had taken, and lost, are taken again.
    pub(super) fn new(
        memory: &GuestMemory,
        place: &RingPlace,
        size: u16,
        features: RingFeatures,
    ) -> Result<Self, VhostUserError> {
        let count = usize::from(size);
        let part = |address, length, align| {
            memory.ring_part(address, length, align).ok_or(VhostUserError::RingAddress)
        };
        // Each list ends with the index by which the other side asks for notifications.
        let (table, available) =
            (part(place.descriptors, count * 16, 16)?, part(place.available, 6 + count * 2, 2)?);
        let used = part(place.used, 6 + count * 8, 4)?;
        let next = used.half(2).load(Ordering::Acquire);
        let mut ring = Self { table, available, used, mask: size - 1, next, published: next, features };
        ring.be_quiet();
        Ok(ring)
    }

    /// The index of the next entry, for the peer.
    pub(super) fn next(&self) -> u16 {
        self.next
    }

    /// The number of descriptors.
    fn size(&self) -> u16 {
        self.mask + 1
    }

    /// The number of entries that the peer has made available.
    #[inline(always)]
    fn waiting(&self) -> Result<u16, VhostUserError> {
        match self.available.half(2).load(Ordering::Acquire).wrapping_sub(self.next) {
            waiting if waiting <= self.size() => Ok(waiting),
            _ => Err(VhostUserError::RingIndex),
        }
    }

    /// Whether the peer has made anything available. An invalid index counts: its use reports it.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.available.half(2).load(Ordering::Relaxed) != self.next
    }

    /// Whether the peer has made less than a quarter of the ring available.
    pub(super) fn is_crowded(&self) -> bool {
        let mark = self.size() / 4;
        self.waiting().is_ok_and(|waiting| waiting < mark)
    }

    /// The number of the first descriptor of the entry with an index.
    #[inline(always)]
    fn head(&self, index: u16) -> u16 {
        self.available.half(4 + usize::from(index & self.mask) * 2).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn descriptor(&self, number: u16) -> Result<Descriptor, VhostUserError> {
        if number > self.mask {
            return Err(VhostUserError::Descriptor);
        }
        Ok(self.table.descriptor(number))
    }

    /// The start of a chain, at a descriptor of the ring's table.
    #[inline(always)]
    fn start(&self, memory: &GuestMemory, descriptor: Descriptor) -> Result<Link, VhostUserError> {
        self.resolve(memory, Link { descriptor, table: None, left: self.mask.min(MAX_CHAIN - 1) })
    }

    /// The descriptor after one that says that there is one.
    #[inline(always)]
    fn follow(&self, memory: &GuestMemory, link: Link) -> Result<Link, VhostUserError> {
        let number = link.descriptor.next;
        let descriptor = match link.table {
            None => self.descriptor(number)?,
            Some((table, count)) if number < count => read_descriptor(memory, table, number)?,
            Some(_) => return Err(VhostUserError::Descriptor),
        };
        let left = link.left.checked_sub(1).ok_or(VhostUserError::Descriptor)?;
        self.resolve(memory, Link { descriptor, left, ..link })
    }

    /// The first descriptor of a table, in the place of the one that refers to the table.
    #[inline(always)]
    fn resolve(&self, memory: &GuestMemory, link: Link) -> Result<Link, VhostUserError> {
        if link.descriptor.flags & INDIRECT == 0 { Ok(link) } else { self.enter_table(memory, link) }
    }

    /// Goes on in the table that a descriptor refers to: the last one of the ring's table, by the standard, because it has no
    /// next one. A table refers to no other one.
    #[cold]
    fn enter_table(&self, memory: &GuestMemory, link: Link) -> Result<Link, VhostUserError> {
        let Descriptor { address, length, flags, .. } = link.descriptor;
        let count = length / DESCRIPTOR_SIZE;
        let is_table = self.features.has_tables
            && link.table.is_none()
            && flags & NEXT == 0
            && length.is_multiple_of(DESCRIPTOR_SIZE)
            && (1..=u32::from(self.size())).contains(&count);
        if !is_table {
            return Err(VhostUserError::Descriptor);
        }
        let descriptor = read_descriptor(memory, address, 0)?;
        if descriptor.flags & INDIRECT != 0 {
            return Err(VhostUserError::Descriptor);
        }
        Ok(Link { descriptor, table: Some((address, count as u16)), ..link })
    }

    /// Notes that an entry is used. [`publish`](Self::publish) lets the peer see it.
    #[inline(always)]
    fn put_used(&mut self, head: u16, length: u32) {
        let at = 4 + usize::from(self.next & self.mask) * 8;
        self.used.word(at).store(head.into(), Ordering::Relaxed);
        self.used.word(at + 4).store(length, Ordering::Relaxed);
        self.next = self.next.wrapping_add(1);
    }

    /// Lets the peer see what was used. Returns whether it wants to be notified.
    #[inline]
    fn publish(&mut self) -> bool {
        if self.next == self.published {
            return false;
        }
        end_stream();
        self.used.half(2).store(self.next, Ordering::Release);
        let before = std::mem::replace(&mut self.published, self.next);
        // The peer asks for notifications, and then looks at the index.
        fence(Ordering::SeqCst);
        if self.features.by_index {
            let wanted = self.available.half(4 + usize::from(self.size()) * 2).load(Ordering::Relaxed);
            let passed = self.next.wrapping_sub(wanted).wrapping_sub(1);
            return passed < self.next.wrapping_sub(before);
        }
        self.available.half(0).load(Ordering::Relaxed) & QUIET == 0
    }

    /// Asks for a notification. Returns whether nothing is available now: only then it will come.
    pub(super) fn ask_to_be_woken(&mut self) -> bool {
        if self.features.by_index {
            self.used.half(4 + usize::from(self.size()) * 8).store(self.next, Ordering::Relaxed);
        } else {
            self.used.half(0).store(0, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        !self.is_ready()
    }

    /// Asks for no notifications.
    pub(super) fn be_quiet(&mut self) {
        if !self.features.by_index {
            self.used.half(0).store(QUIET, Ordering::Relaxed);
        }
    }

    /// Takes frames from the peer, as many as the batch has room for. Returns whether the peer wants to be notified.
    pub(super) fn receive(
        &mut self,
        memory: &GuestMemory,
        batch: &mut Batch,
        received: &mut Received,
        offloads: &mut Offloads,
    ) -> Result<bool, VhostUserError> {
        let count = usize::from(self.waiting()?).min(batch.room());
        let has_headers = self.features.offloads.has_headers();
        for at in 0..count {
            if at + usize::from(AHEAD) < count {
                let coming = self.head(self.next.wrapping_add(AHEAD)) & self.mask;
                memory.prefetch(self.table.descriptor(coming).address);
            }
            let head = self.head(self.next);
            let first = self.start(memory, self.descriptor(head)?)?;
            let asked = if has_headers { self.offload_header(memory, first)? } else { None };
            if let Some(header) = asked {
                self.take_unfinished(memory, first, header, batch, received, offloads)?;
            } else {
                let Some(space) = batch.space() else { return Err(VhostUserError::RingIndex) };
                match self.take(memory, first, self.features.header, space)? {
                    length if length < self.features.header => received.faulty += 1,
                    length if length > self.features.header + MAX_FRAME => received.long += 1,
                    length => batch.commit(length - self.features.header),
                }
            }
            self.put_used(head, 0);
            // A large frame has become several.
            if asked.is_some() && batch.room() == 0 {
                break;
            }
        }
        Ok(self.publish())
    }

    /// The offload header of a chain of descriptors, if it asks for anything.
    #[inline(always)]
    fn offload_header(
        &self,
        memory: &GuestMemory,
        first: Link,
    ) -> Result<Option<OffloadHeader>, VhostUserError> {
        let mut bytes = [0; OFFLOAD_HEADER];
        let Descriptor { address, length, .. } = first.descriptor;
        if length as usize >= OFFLOAD_HEADER {
            if !memory.read(address, &mut bytes) {
                return Err(VhostUserError::Address);
            }
        } else {
            self.take(memory, first, 0, &mut bytes)?;
        }
        Ok(OffloadHeader::new(bytes))
    }

    /// Takes a frame whose header leaves work to the switch.
    #[inline(never)]
    fn take_unfinished(
        &self,
        memory: &GuestMemory,
        first: Link,
        header: OffloadHeader,
        batch: &mut Batch,
        received: &mut Received,
        offloads: &mut Offloads,
    ) -> Result<(), VhostUserError> {
        let skipped = self.features.header;
        if header.is_large() {
            match self.take(memory, first, skipped, offloads.room())?.checked_sub(skipped) {
                None => received.faulty += 1,
                Some(length) => offloads.cut(self.features.offloads, header, length, batch, received),
            }
            return Ok(());
        }
        let Some(space) = batch.space() else { return Err(VhostUserError::RingIndex) };
        let length = self.take(memory, first, skipped, space)?;
        match length.checked_sub(skipped).map(|length| (length, space.get_mut(..length))) {
            None => received.faulty += 1,
            Some((_, None)) => received.long += 1,
            Some((length, Some(frame))) => match header.finish(frame) {
                true => batch.commit(length),
                false => received.refused.count(Reason::BAD_CHECKSUM),
            },
        }
        Ok(())
    }

    /// Copies the bytes of a chain of descriptors, without the first `header` ones. Returns the length of the chain, of which
    /// no more is copied than there is space for.
    #[inline(always)]
    fn take(
        &self,
        memory: &GuestMemory,
        first: Link,
        header: usize,
        space: &mut [u8],
    ) -> Result<usize, VhostUserError> {
        let (mut link, mut length) = (first, 0usize);
        loop {
            let Descriptor { address, length: piece, flags, .. } = link.descriptor;
            if flags & WRITE != 0 {
                return Err(VhostUserError::Descriptor);
            }
            let piece = piece as usize;
            // What of the piece belongs to the header, and is not read.
            let skipped = header.saturating_sub(length).min(piece);
            let start = length.saturating_sub(header);
            let address = address.wrapping_add(skipped as u64);
            if let Some(room) = space.get_mut(start..) {
                let copied = (piece - skipped).min(room.len());
                if let Some(into) = room.get_mut(..copied)
                    && !memory.read(address, into)
                {
                    return Err(VhostUserError::Address);
                }
            }
            length = length.saturating_add(piece);
            if flags & NEXT == 0 {
                return Ok(length);
            }
            link = self.follow(memory, link)?;
        }
    }

    /// Gives frames to the peer, as many as it has buffers for. Returns whether the peer wants to be notified.
    pub(super) fn send(
        &mut self,
        memory: &GuestMemory,
        batch: &Batch,
        frames: &[u32],
        sent: &mut Sent,
        coalescer: &mut Coalescer,
    ) -> Result<bool, VhostUserError> {
        if self.features.offloads.takes_joined() && Coalescer::is_worthwhile(batch, frames) {
            return self.send_joined(memory, batch, frames, sent, coalescer);
        }
        coalescer.forget();
        let mut waiting = self.waiting()?;
        for number in frames {
            let Some(frame) = batch.frame(*number as usize) else { continue };
            let taken = self.put(memory, waiting, frame)?;
            if taken == 0 {
                break;
            }
            waiting -= taken;
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        sent.is_crowded = waiting < self.size() / 4;
        Ok(self.publish())
    }

    /// Gives frames to a peer that takes several segments of a flow as one frame.
    fn send_joined(
        &mut self,
        memory: &GuestMemory,
        batch: &Batch,
        frames: &[u32],
        sent: &mut Sent,
        coalescer: &mut Coalescer,
    ) -> Result<bool, VhostUserError> {
        coalescer.join_datagrams(self.features.offloads.takes_datagrams());
        // The peer takes frames of any length.
        coalescer.join(batch, frames, usize::MAX);
        let mut waiting = self.waiting()?;
        let mut next = 0;
        while let Some(group) = coalescer.groups().get(next) {
            let parts = || coalescer.message(group, batch, frames);
            let taken = match group.frames {
                1 => self.put(memory, waiting, parts().nth(1).unwrap_or_default())?,
                _ => self.put_joined(memory, waiting, parts)?,
            };
            if taken == 0 {
                // There may be room for the first frames of a group.
                if group.frames > 1 && waiting > 0 {
                    coalescer.split(next);
                    continue;
                }
                break;
            }
            let (count, bytes) = coalescer.size(group, batch, frames);
            waiting -= taken;
            sent.frames += count;
            sent.bytes += bytes;
            next += 1;
        }
        coalescer.skip(next, usize::MAX, frames);
        sent.is_crowded = waiting < self.size() / 4;
        Ok(self.publish())
    }

    /// Puts a frame into as many buffers as it takes. Returns the number of entries; 0 if there are not enough.
    #[inline(always)]
    fn put(&mut self, memory: &GuestMemory, waiting: u16, frame: &[u8]) -> Result<u16, VhostUserError> {
        if waiting == 0 {
            return Ok(0);
        }
        if waiting > AHEAD {
            let coming = self.head(self.next.wrapping_add(AHEAD)) & self.mask;
            memory.prefetch(self.table.descriptor(coming).address);
        }
        let head = self.head(self.next);
        let first = self.descriptor(head)?;
        // Most peers have one buffer for a frame.
        if first.flags & (NEXT | INDIRECT) == 0 && first.length as usize >= self.features.header + frame.len()
        {
            self.put_whole(memory, head, first, frame)?;
            return Ok(1);
        }
        self.put_single(memory, waiting, frame)
    }

    /// Puts a frame into one buffer, which is long enough.
    #[inline(always)]
    fn put_whole(
        &mut self,
        memory: &GuestMemory,
        head: u16,
        buffer: Descriptor,
        frame: &[u8],
    ) -> Result<(), VhostUserError> {
        if buffer.flags & WRITE == 0 {
            return Err(VhostUserError::Descriptor);
        }
        let header = self.header(1);
        let header = header.get(..self.features.header).unwrap_or_default();
        if !memory.write(buffer.address, header, frame, buffer.length as usize) {
            return Err(VhostUserError::Address);
        }
        self.put_used(head, (header.len() + frame.len()) as u32);
        Ok(())
    }

    /// Puts a joined frame into buffers: the parts of its message. Returns the number of entries; 0 if there are not enough,
    /// or the peer does not take it.
    fn put_joined<'a, I: Iterator<Item = &'a [u8]>>(
        &mut self,
        memory: &GuestMemory,
        waiting: u16,
        parts: impl Fn() -> I,
    ) -> Result<u16, VhostUserError> {
        let mut all = parts();
        let front = all.next().unwrap_or_default();
        if !self.features.offloads.takes(front) {
            return Ok(0);
        }
        match self.find_buffers(memory, waiting, parts().map(<[u8]>::len).sum(), true)? {
            Some(buffers) => self.put_pieces(memory, &buffers, front, all),
            None => Ok(0),
        }
    }

    /// Puts a frame into several buffers.
    #[cold]
    fn put_single(
        &mut self,
        memory: &GuestMemory,
        waiting: u16,
        frame: &[u8],
    ) -> Result<u16, VhostUserError> {
        match self.find_buffers(memory, waiting, OFFLOAD_HEADER + frame.len(), false)? {
            Some(buffers) => self.put_pieces(memory, &buffers, &[0; OFFLOAD_HEADER], std::iter::once(frame)),
            None => Ok(0),
        }
    }

    /// The next buffers for a frame of `length` bytes with its offload header. `None` if there are not enough.
    fn find_buffers(
        &self,
        memory: &GuestMemory,
        waiting: u16,
        length: usize,
        is_joined: bool,
    ) -> Result<Option<Buffers>, VhostUserError> {
        let length = length - OFFLOAD_HEADER + self.features.header;
        let (mut found, mut room) = (Buffers::default(), 0);
        while room < length {
            let taken = found.entries.len() as u16;
            if taken == waiting || (taken > 0 && !self.features.is_mergeable) {
                return Ok(None);
            }
            let head = self.head(self.next.wrapping_add(taken));
            let before = room;
            let mut link = self.start(memory, self.descriptor(head)?)?;
            loop {
                if found.pieces.len() == MAX_SEGMENTS && is_joined {
                    return Ok(None);
                }
                let Descriptor { address, length: piece, flags, .. } = link.descriptor;
                if flags & WRITE == 0 || found.pieces.len() == MAX_SEGMENTS {
                    return Err(VhostUserError::Descriptor);
                }
                let piece = (piece as usize).min(length - room);
                found.pieces.push((address, piece));
                room += piece;
                if flags & NEXT == 0 || room == length {
                    break;
                }
                link = self.follow(memory, link)?;
            }
            found.entries.push((head, (room - before) as u32));
        }
        Ok(Some(found))
    }

    /// Puts a frame into buffers for it: the offload header, to which the number of buffers is added, and what else is in
    /// `front`; then the parts. Returns the number of entries.
    fn put_pieces<'a>(
        &mut self,
        memory: &GuestMemory,
        buffers: &Buffers,
        front: &[u8],
        parts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<u16, VhostUserError> {
        let count = buffers.entries.len() as u16;
        let (offloads, headers) = front.split_at_checked(OFFLOAD_HEADER).unwrap_or_default();
        let number = count.to_le_bytes();
        let number = number.get(..self.features.header - OFFLOAD_HEADER).unwrap_or_default();
        let mut pieces = buffers.pieces.iter();
        let (mut address, mut room) = (0, 0);
        let mut put = |mut part: &[u8]| {
            while !part.is_empty() {
                if room == 0 {
                    // The buffers are as long as the parts together.
                    (address, room) = *pieces.next().ok_or(VhostUserError::Descriptor)?;
                }
                let (now, rest) = part.split_at(part.len().min(room));
                if !memory.write(address, &[], now, now.len()) {
                    return Err(VhostUserError::Address);
                }
                (address, room, part) = (address.wrapping_add(now.len() as u64), room - now.len(), rest);
            }
            Ok(())
        };
        [offloads, number, headers].into_iter().try_for_each(&mut put)?;
        for part in parts {
            put(part)?;
        }
        for (head, length) in &buffers.entries {
            self.put_used(*head, *length);
        }
        Ok(count)
    }

    /// The header of a frame: all zeros, but for the number of buffers.
    #[inline(always)]
    fn header(&self, buffers: u16) -> [u8; MAX_HEADER] {
        let [low, high] = buffers.to_le_bytes();
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, low, high]
    }
}

/// A descriptor of a table in the peer's memory, copied once.
fn read_descriptor(memory: &GuestMemory, table: u64, number: u16) -> Result<Descriptor, VhostUserError> {
    let mut bytes = [0; DESCRIPTOR_SIZE as usize];
    match table.checked_add(u64::from(number) * u64::from(DESCRIPTOR_SIZE)) {
        Some(address) if memory.read(address, &mut bytes) => Ok(Descriptor::from_bytes(bytes)),
        _ => Err(VhostUserError::Address),
    }
}
