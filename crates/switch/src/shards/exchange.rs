//! The rings between the shards of a switch.
//!
//! Each shard has one ring to every other one: one thread puts frames in, one takes them out. A frame is copied in and copied
//! out, so that no buffer of a pool ever belongs to two threads. A ring that is full refuses: no thread waits for another
//! one. The rings are those of `boundary`, with its models of their concurrency.

use super::Spread;
use crate::batch::{Batch, FrameMark, MAX_FRAME};
use crate::forward::MAX_HOPS;
use crate::port::PortId;
use boundary::{Consumer, Descriptor, Mapped, Producer, SharedMemory, Slots};
use packet::MacAddr;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// The slots of a ring. A shard that is busy for half a millisecond loses no frame at two million frames per second.
const SLOTS: Slots = match Slots::new(1024) {
    Ok(slots) => slots,
    Err(_) => panic!("1024 slots are allowed"),
};

/// Bytes before a frame in its buffer: the tag.
const TAG: usize = 16;
/// Bytes of a buffer, in whole cache lines.
const STRIDE: usize = (TAG + MAX_FRAME).next_multiple_of(64);
/// Bytes of the descriptors, up to a page boundary.
const RING: usize = SLOTS.bytes().next_multiple_of(4096);
/// Bytes of a ring with its buffers.
const SIZE: usize = RING + SLOTS.count() as usize * STRIDE;

/// Slots that are free while a ring counts as crowded: fewer than a quarter.
const CROWDED: u32 = SLOTS.count() / 4;

/// Where a tag has the number of the shard whose record it names: above the number of the hop, which has five bits.
const SHARD_SHIFT: u32 = 53;

/// The bits of a tag with the number of the shard.
pub(crate) const SHARD_BITS: u64 = 7 << SHARD_SHIFT;

const _: () = assert!(MAX_HOPS <= 32 && boundary::limits::MAX_PAIRS <= 8);

/// The shard that a tag belongs to.
pub(crate) fn shard_of(tag: u64) -> usize {
    ((tag & SHARD_BITS) >> SHARD_SHIFT) as usize
}

/// A tag as its shard knows it.
pub(crate) fn without_shard(tag: u64) -> u64 {
    tag & !SHARD_BITS
}

/// What a shard tells another one about the frames that it sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// They were received at this port, and belong to flows of the other shard.
    Received(PortId),
    /// They were received at this port of a translator, which made them frames of flows of the other shard.
    Translated(PortId),
    /// They go to this port, which the other shard drives.
    Deliver(PortId),
    /// The frames are addresses that were learned at this port.
    Learned(PortId),
    /// The frame says whether this port, which the sender drives, has little room left.
    Crowded(PortId),
    /// The tags are those of frames that were lost on the way to a function; the frames say how many of each.
    Lost,
}

/// Tags of lost frames that wait for their shard, each with its number. What is beyond counts for the last of them, so that a
/// shard that is busy costs a bounded memory.
const MAX_LOST: usize = 4096;

impl Message {
    /// The number of a buffer in a descriptor has 20 bits, of which a buffer of a ring needs none: its slot says which it is.
    fn to_bits(self) -> u32 {
        let (kind, PortId(port)) = match self {
            Self::Received(port) => (0, port),
            Self::Deliver(port) => (1, port),
            Self::Learned(port) => (2, port),
            Self::Translated(port) => (3, port),
            Self::Crowded(port) => (4, port),
            Self::Lost => (5, PortId(0)),
        };
        kind << 16 | u32::from(port)
    }

    fn from_bits(bits: u32) -> Self {
        let port = PortId(bits as u16);
        match bits >> 16 {
            0 => Self::Received(port),
            1 => Self::Deliver(port),
            2 => Self::Learned(port),
            3 => Self::Translated(port),
            4 => Self::Crowded(port),
            _ => Self::Lost,
        }
    }
}

/// The memory of a ring.
#[derive(Debug)]
struct RingMemory(NonNull<u8>);

// SAFETY: the memory is accessed only through `Mapped`, which tolerates concurrent writers.
unsafe impl Send for RingMemory {}
// SAFETY: as above; no reference into it is handed out.
unsafe impl Sync for RingMemory {}

const LAYOUT: Layout = match Layout::from_size_align(SIZE, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("the size is not too large"),
};

impl RingMemory {
    fn new() -> Arc<Self> {
        // SAFETY: the layout has a size other than zero.
        let start = NonNull::new(unsafe { alloc_zeroed(LAYOUT) });
        Arc::new(Self(start.unwrap_or_else(|| handle_alloc_error(LAYOUT))))
    }

    /// The ring and its buffers.
    fn parts(&self) -> Option<(Mapped, Mapped)> {
        // SAFETY: the allocation has this size, and is freed when the last of the two ends drops its `Arc`; the ends keep the
        // parts in private fields beside it and hand none of them out.
        let all = unsafe { Mapped::new(self.0, SIZE) };
        Some((all.part(0, RING)?, all.part(RING, SIZE - RING)?))
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and both ends are gone.
        unsafe { dealloc(self.0.as_ptr(), LAYOUT) };
    }
}

/// The end of a ring at which frames are put in.
#[derive(Debug)]
struct Outbox {
    ring: Producer<Mapped>,
    buffers: Mapped,
    /// Wakes the thread of the other shard.
    bell: Arc<OwnedFd>,
    _memory: Arc<RingMemory>,
}

/// The end of a ring at which frames are taken out.
#[derive(Debug)]
struct Inbox {
    ring: Consumer<Mapped>,
    buffers: Mapped,
    _memory: Arc<RingMemory>,
}

/// The buffer in the slot at a position.
fn buffer(position: u32) -> usize {
    (position & (SLOTS.count() - 1)) as usize * STRIDE
}

impl Outbox {
    /// Puts a frame in; it becomes visible with `publish`. Returns false if there is no room.
    fn push(&mut self, message: Message, frame: &[u8], mark: FrameMark) -> bool {
        // Nobody but this process writes the indices.
        if self.ring.free(1) == Ok(0) || frame.len() > MAX_FRAME {
            return false;
        }
        let start = buffer(self.ring.position());
        self.buffers.write(start, &mark.tag.to_ne_bytes());
        self.buffers.write(start + TAG, frame);
        let length = frame.len() as u32;
        self.ring.push(Descriptor { buffer: message.to_bits(), offset: 0, length, meta: mark.meta })
    }

    fn publish(&mut self) {
        if self.ring.publish() {
            let one = 1u64;
            // SAFETY: the kernel reads eight bytes of a live variable. The write fails only if the counter is at its maximum,
            // in which case the descriptor is already readable.
            unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }

    fn is_crowded(&mut self) -> bool {
        self.ring.free(CROWDED).is_ok_and(|free| free < CROWDED)
    }
}

/// The rings of one shard, and the thread that each frame belongs to.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The number of the shard, and of all shards.
    own: usize,
    count: usize,
    /// How flows are spread.
    pub(crate) spread: Spread,
    /// The rings to and from the other shards, by their numbers; none at the place of its own.
    outboxes: Vec<Option<Outbox>>,
    inboxes: Vec<Option<Inbox>>,
    /// Addresses that other shards were not told of yet.
    pub(crate) news: Vec<(MacAddr, PortId)>,
    /// Ports that this shard drives for all, and that began or ceased to have little room, which others were not told yet.
    crowding: Vec<(PortId, bool)>,
    /// Tags of frames that were lost here and whose records other shards have, each with the number of frames.
    lost: Vec<(u64, u32)>,
    /// Scratch memory: the frames of a batch that belong to each shard.
    pub(crate) parts: Vec<Vec<u32>>,
}

impl Exchange {
    /// The rings between shards with these events, which wake their threads.
    pub(crate) fn connect(bells: Vec<OwnedFd>, seed: u64) -> io::Result<Vec<Self>> {
        let bells: Vec<Arc<OwnedFd>> = bells.into_iter().map(Arc::new).collect();
        let count = bells.len();
        let mut all: Vec<Self> = (0..count)
            .map(|own| Self {
                own,
                count,
                spread: Spread::new(count, seed),
                outboxes: Vec::new(),
                inboxes: (0..count).map(|_| None).collect(),
                news: Vec::new(),
                crowding: Vec::new(),
                lost: Vec::new(),
                parts: vec![Vec::new(); count],
            })
            .collect();
        for from in 0..count {
            for (to, bell) in bells.iter().enumerate() {
                let ends = (from != to).then(|| ring(bell)).transpose()?;
                let (outbox, inbox) = ends.unzip();
                if let Some(shard) = all.get_mut(from) {
                    shard.outboxes.push(outbox);
                }
                if let Some(place) = all.get_mut(to).and_then(|shard| shard.inboxes.get_mut(from)) {
                    *place = inbox;
                }
            }
        }
        Ok(all)
    }

    /// The bits of its number in a tag.
    pub(crate) fn mark(&self) -> u64 {
        (self.own as u64) << SHARD_SHIFT
    }

    /// The number of the shard.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// The number of shards.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Sends frames of a batch to another shard, as far as there is room. Frames that are not whole are left out. Returns how
    /// many were sent: a prefix of those given.
    pub(crate) fn send(&mut self, to: usize, message: Message, batch: &Batch, frames: &[u32]) -> usize {
        let Some(outbox) = self.outboxes.get_mut(to).and_then(Option::as_mut) else { return 0 };
        let mut sent = 0;
        for number in frames.iter().map(|number| *number as usize) {
            let Some(frame) = batch.frame(number) else { break };
            if !outbox.push(message, frame, batch.mark(number)) {
                break;
            }
            sent += 1;
        }
        outbox.publish();
        sent
    }

    /// Notes whether a port that this shard drives for all has little room left. The others need only the latest state.
    pub(crate) fn note_crowded(&mut self, port: PortId, is_crowded: bool) {
        self.crowding.retain(|(other, _)| *other != port);
        self.crowding.push((port, is_crowded));
    }

    /// Notes that a frame with this tag, which belongs to another shard, was lost on the way to a function.
    pub(crate) fn note_lost(&mut self, tag: u64) {
        let is_full = self.lost.len() >= MAX_LOST;
        match self.lost.last_mut().filter(|(last, _)| *last == tag || is_full) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.lost.push((tag, 1)),
        }
    }

    /// Tells the other shards of addresses that were learned, of ports that have little room, and of lost frames, as far as
    /// there is room.
    pub(crate) fn announce(&mut self) {
        let Self { outboxes, news, crowding, lost, .. } = self;
        let mut tell_all = |message, bytes: &[u8]| {
            let mut all = true;
            for outbox in outboxes.iter_mut().flatten() {
                all &= outbox.push(message, bytes, FrameMark::default());
            }
            all
        };
        // Shards that had room are told again: that changes nothing.
        let told =
            news.iter().take_while(|(address, port)| tell_all(Message::Learned(*port), &address.0)).count();
        news.drain(..told);
        let told = crowding
            .iter()
            .take_while(|(port, is_crowded)| tell_all(Message::Crowded(*port), &[u8::from(*is_crowded)]))
            .count();
        crowding.drain(..told);
        let mut tell_one = |(tag, count): &(u64, u32)| {
            let mark = FrameMark { tag: *tag, ..FrameMark::default() };
            let outbox = outboxes.get_mut(shard_of(*tag)).and_then(Option::as_mut);
            outbox.is_none_or(|outbox| outbox.push(Message::Lost, &count.to_ne_bytes(), mark))
        };
        let told = lost.iter().take_while(|lost| tell_one(lost)).count();
        lost.drain(..told);
        self.outboxes.iter_mut().flatten().for_each(Outbox::publish);
    }

    /// Whether the ring to another shard is more than three quarters full.
    pub(crate) fn is_crowded(&mut self, to: usize) -> bool {
        self.outboxes.get_mut(to).and_then(Option::as_mut).is_some_and(Outbox::is_crowded)
    }

    /// Takes the next frames that another shard sent and that have one message, up to the room of the batch.
    pub(crate) fn receive(&mut self, from: usize, batch: &mut Batch) -> Option<Message> {
        let Inbox { ring, buffers, .. } = self.inboxes.get_mut(from)?.as_mut()?;
        let room = batch.room() as u32;
        let waiting = ring.available(room).map_or(0, |waiting| waiting.min(room));
        let mut of_all = None;
        for _ in 0..waiting {
            let Some(next) = ring.peek_ahead(0) else { break };
            if *of_all.get_or_insert(next.buffer) != next.buffer {
                break;
            }
            let start = buffer(ring.position());
            let (Some(descriptor), Some(space)) = (ring.pop(), batch.space()) else { break };
            let length = (descriptor.length as usize).min(MAX_FRAME);
            let mut tag = [0; 8];
            buffers.read(start, &mut tag);
            if let Some(space) = space.get_mut(..length) {
                buffers.read(start + TAG, space);
            }
            batch.commit_marked(length, FrameMark { tag: u64::from_ne_bytes(tag), meta: descriptor.meta });
        }
        // No shard sleeps until there is room.
        ring.release();
        of_all.map(Message::from_bits)
    }

    /// Prepares for sleep until a shard sends something. Returns false if something waits already.
    pub(crate) fn prepare_sleep(&mut self) -> bool {
        let mut sleeps = self.news.is_empty() && self.crowding.is_empty() && self.lost.is_empty();
        for inbox in self.inboxes.iter_mut().flatten() {
            sleeps &= inbox.ring.prepare_sleep().unwrap_or(true);
        }
        sleeps
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    pub(crate) fn end_sleep(&mut self) {
        self.inboxes.iter_mut().flatten().for_each(|inbox| inbox.ring.end_sleep());
    }
}

/// A ring to the shard whose thread a bell wakes.
fn ring(bell: &Arc<OwnedFd>) -> io::Result<(Outbox, Inbox)> {
    let memory = RingMemory::new();
    let failed = || io::Error::other("the memory of a ring is too small");
    let (ring, buffers) = memory.parts().ok_or_else(failed)?;
    let producer = Producer::new(ring, SLOTS).map_err(|_| failed())?;
    let consumer = Consumer::new(ring, SLOTS).map_err(|_| failed())?;
    let outbox = Outbox { ring: producer, buffers, bell: bell.clone(), _memory: memory.clone() };
    Ok((outbox, Inbox { ring: consumer, buffers, _memory: memory }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    fn bell() -> OwnedFd {
        // SAFETY: the descriptor that the call returns is owned by this value alone.
        unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_NONBLOCK)) }
    }

    fn rings(bell: &OwnedFd) -> bool {
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes to a live variable.
        unsafe { libc::read(bell.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    #[test]
    fn frames_pass_whole_with_their_marks_until_the_ring_is_full() {
        let bells = [bell(), bell()];
        let copies = bells.iter().map(|bell| bell.try_clone().unwrap()).collect();
        let mut shards = Exchange::connect(copies, 0).unwrap();
        let mut batch = Batch::new(256);
        for number in 0..256usize {
            batch.push(&vec![number as u8; if number == 9 { MAX_FRAME } else { number }]);
            batch.set_tag(number, if number % 3 == 0 { number as u64 + 1 } else { 0 });
        }
        let all: Vec<u32> = (0..256).collect();
        assert!(shards[1].prepare_sleep());
        let [three, four] = [PortId(3), PortId(4)];
        assert_eq!(shards[0].send(1, Message::Received(three), &batch, &all[..100]), 100);
        assert!(rings(&bells[1]) && !rings(&bells[0]) && !shards[1].prepare_sleep());
        shards[1].end_sleep();
        assert_eq!(shards[0].send(1, Message::Deliver(three), &batch, &all[100..]), 156);
        assert!(!rings(&bells[1]), "an awake thread was woken");
        assert!(!shards[0].is_crowded(1));
        // To itself it has no ring.
        assert_eq!(shards[0].send(0, Message::Deliver(three), &batch, &all), 0);
        let mut found = Batch::new(300);
        for (message, numbers) in [(Message::Received(three), 0..100), (Message::Deliver(three), 100..256)] {
            assert_eq!(shards[1].receive(0, &mut found), Some(message));
            assert_eq!(found.len(), numbers.len());
            for (at, number) in numbers.enumerate() {
                assert_eq!((found.frame(at), found.mark(at)), (batch.frame(number), batch.mark(number)));
            }
            found.clear();
        }
        assert_eq!(shards[1].receive(0, &mut found), None);
        // 1,024 frames have room.
        let sent: usize = (0..5).map(|_| shards[0].send(1, Message::Received(four), &batch, &all)).sum();
        assert!(sent == 1024 && shards[0].is_crowded(1));
        shards[0].news.push((MacAddr([2, 0, 0, 0, 0, 9]), four));
        shards[0].announce();
        assert!(shards[0].news.len() == 1 && !shards[0].prepare_sleep(), "news were lost");
        let mut received = 0;
        while shards[1].receive(0, &mut found) == Some(Message::Received(four)) {
            received += found.len();
            found.clear();
        }
        assert_eq!(received, 1024);
        shards[0].announce();
        assert!(shards[0].news.is_empty() && !shards[0].is_crowded(1));
        assert_eq!(shards[1].receive(0, &mut found), Some(Message::Learned(four)));
        assert_eq!(found.frame(0), Some(&[2, 0, 0, 0, 0, 9][..]));
    }

    /// What a shard was told in all: lost frames, and the last word on each port.
    fn told(shard: &mut Exchange) -> (u64, Vec<(PortId, bool)>) {
        let (mut found, mut lost, mut crowded) = (Batch::new(64), 0, Vec::new());
        while let Some(message) = shard.receive(0, &mut found) {
            for (at, frame) in found.frames().enumerate() {
                match message {
                    Message::Lost => {
                        assert_eq!(shard_of(found.tag(at)), 1);
                        lost += u64::from(u32::from_ne_bytes(frame.try_into().unwrap()));
                    }
                    Message::Crowded(port) => crowded.push((port, frame == [1])),
                    other => panic!("{other:?}"),
                }
            }
            found.clear();
        }
        (lost, crowded)
    }

    #[test]
    fn what_a_busy_shard_is_told_costs_bounded_memory() {
        let mut shards = Exchange::connect(vec![bell(), bell()], 0).unwrap();
        let (mut second, mut first) = (shards.pop().unwrap(), shards.pop().unwrap());
        for round in 0..10_000u64 {
            first.note_lost((1 << SHARD_SHIFT) | (round / 2));
            first.note_crowded(PortId(round as u16 % 3), round % 2 == 0);
            if round % 100 == 0 {
                first.announce();
            }
        }
        assert!(first.lost.len() <= MAX_LOST && first.crowding.len() <= 3);
        assert!(!first.prepare_sleep(), "it would sleep with something to tell");
        let (mut lost, mut crowded) = (0, Vec::new());
        while !first.lost.is_empty() || !first.crowding.is_empty() || lost == 0 {
            first.announce();
            let more = told(&mut second);
            lost += more.0;
            crowded.extend(more.1);
        }
        assert_eq!(lost, 10_000);
        let last = |port| crowded.iter().rfind(|(found, _)| *found == PortId(port)).map(|(_, state)| *state);
        assert_eq!([0, 1, 2].map(last), [Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn two_threads_exchange_frames_in_order() {
        let mut shards = Exchange::connect(vec![bell(), bell()], 0).unwrap();
        let (mut second, mut first) = (shards.pop().unwrap(), shards.pop().unwrap());
        let receiver = std::thread::spawn(move || {
            let (mut batch, mut expected) = (Batch::new(64), 0u32);
            while expected < 200_000 {
                if second.receive(0, &mut batch).is_some() {
                    for frame in batch.frames() {
                        assert_eq!(frame, [expected.to_ne_bytes(); 20].concat());
                        expected += 1;
                    }
                    batch.clear();
                }
            }
        });
        let mut batch = Batch::new(64);
        let (mut next, mut pending) = (0u32, 0);
        while next < 200_000 {
            while pending < 64 && next + (pending as u32) < 200_000 {
                batch.push(&[(next + pending as u32).to_ne_bytes(); 20].concat());
                pending += 1;
            }
            let numbers: Vec<u32> = (0..pending as u32).collect();
            let sent = first.send(1, Message::Received(PortId(0)), &batch, &numbers);
            next += sent as u32;
            batch.clear();
            pending = 0;
        }
        receiver.join().unwrap();
    }
}
