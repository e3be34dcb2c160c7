//! A port of the box: its rings and their users.
//!
//! A port has a pair of rings for each thread of the host that switches. All of them are served in turn, and a packet leaves
//! through the pair with the number of the one through which it came: so the flow stays in its thread.
//!
//! A packet is processed in the buffer in which it arrived, and leaves in it through another port; the ring that it
//! arrived on gets another buffer. If there is no spare buffer, or if a packet is not in a buffer of the ports, its
//! bytes are copied.

use crate::buffers::{Buffers, PoolExhausted};
use alloc::rc::{Rc, Weak};
use alloc::string::String;
use alloc::vec::Vec;
use boundary::limits::BUFFER_SIZE;
use boundary::{
    Answer, CACHE_LINE, Consumer, CorruptIndex, Descriptor, Mapped, NEAR_PREFETCH, Platform, PortInfo,
    PortStats, Producer,
};
use core::cell::{Cell, RefCell};
use packet::{Batch, PacketType, Timestamp};

/// Prefetch distance in packets: processing this many packets takes about as long as a cache miss.
const PREFETCH_DISTANCE: u32 = 8;

/// One of every `KEPT_BUFFER_INTERVAL` slots of a transmit ring keeps its buffer.
const KEPT_BUFFER_INTERVAL: u32 = 2;

/// A transmit ring that was full counts as ready again once one of every `WRITABLE_SHARE` slots is free. If each single free
/// slot counted, senders would create packets that find no room.
const WRITABLE_SHARE: u32 = 8;

/// A side of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Packets to the box.
    Receive,
    /// Packets from the box.
    Transmit,
}

/// The user of one side of a port.
#[derive(Clone, Debug)]
struct SideUser {
    configuration: String,
    /// The number of the configuration's router: a newer router may take over from the running one.
    router_number: u64,
    /// Expires when the device is closed, or all that share the side.
    alive: Weak<()>,
    /// Whether elements share the side.
    is_shared: bool,
}

/// The two rings between the box and one thread of the host.
struct RingPair {
    receive: RefCell<Consumer<Mapped>>,
    transmit: RefCell<Producer<Mapped>>,
}

/// A port of the box.
pub(crate) struct Port {
    pairs: Vec<RingPair>,
    /// The pair that packets are taken from next.
    turn: Cell<usize>,
    /// The number of slots of each ring.
    slots: u32,
    stats: Cell<PortStats>,
    /// Packets that `send` took although they are too long, since the last call of `take_refused`.
    refused: Cell<usize>,
    /// Received packets dropped because no packet could be allocated.
    no_buffer: Cell<u64>,
    mac: Cell<[u8; 6]>,
    users: [RefCell<Option<SideUser>>; 2],
}

impl Port {
    /// The port that a boot info describes by its ring pairs, or `None` if its rings are outside `pages`.
    pub(crate) fn new(pages: &Mapped, pairs: &[PortInfo]) -> Option<Port> {
        let pair = |info: &PortInfo| {
            let ring = |offset: u32| pages.part(offset as usize, info.slots.bytes());
            Some(RingPair {
                receive: RefCell::new(Consumer::new(ring(info.receive)?, info.slots).ok()?),
                transmit: RefCell::new(Producer::new(ring(info.transmit)?, info.slots).ok()?),
            })
        };
        let info = pairs.first()?;
        Some(Port {
            pairs: pairs.iter().map(pair).collect::<Option<_>>()?,
            turn: Cell::new(0),
            slots: info.slots.count(),
            stats: Cell::default(),
            no_buffer: Cell::default(),
            refused: Cell::default(),
            mac: Cell::new(mac_of(info)),
            users: [RefCell::new(None), RefCell::new(None)],
        })
    }

    /// Sets the port's new address, after the box was copied.
    pub(crate) fn set_mac(&self, info: &PortInfo) {
        self.mac.set(mac_of(info));
    }

    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac.get()
    }

    /// The port's address, with the first byte at the bottom.
    fn mac_word(&self) -> u64 {
        let [a, b, c, d, e, f] = self.mac.get();
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    pub(crate) fn stats(&self) -> PortStats {
        self.stats.get()
    }

    pub(crate) fn no_buffer(&self) -> u64 {
        self.no_buffer.get()
    }

    /// Reserves a side for a configuration's router, until the result is dropped. Elements of one router can share it, if
    /// all but one ask for that.
    ///
    /// # Errors
    ///
    /// The name of the configuration that uses it.
    pub(crate) fn reserve(
        &self,
        side: Side,
        configuration: &str,
        router_number: u64,
        is_shared: bool,
    ) -> Result<Rc<()>, String> {
        let mut user = self.user(side).borrow_mut();
        let same = user.as_mut().filter(|user| {
            user.configuration == configuration
                && user.router_number == router_number
                && (is_shared || user.is_shared)
        });
        if let Some(user) = same
            && let Some(alive) = user.alive.upgrade()
        {
            user.is_shared &= is_shared;
            return Ok(alive);
        }
        if let Some(user) = user.as_ref().filter(|user| user.alive.strong_count() > 0)
            && (user.configuration != configuration || user.router_number == router_number)
        {
            return Err(user.configuration.clone());
        }
        let alive = Rc::new(());
        let configuration = configuration.into();
        *user = Some(SideUser { configuration, router_number, alive: Rc::downgrade(&alive), is_shared });
        Ok(alive)
    }

    fn user(&self, side: Side) -> &RefCell<Option<SideUser>> {
        match side {
            Side::Receive => &self.users[0],
            Side::Transmit => &self.users[1],
        }
    }

    /// The number of ring pairs.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The pair whose turn it is.
    #[inline]
    pub(crate) fn next_pair(&self) -> u8 {
        let pair = self.turn.get();
        self.turn.set(if pair + 1 < self.pairs.len() { pair + 1 } else { 0 });
        pair as u8
    }

    /// Takes at most `most` packets out of the ring of a pair. `publish` returns their slots to the host, before anything else is
    /// done, so that it can reuse them.
    pub(crate) fn receive(
        &self,
        pair: u8,
        buffers: &mut Buffers,
        pool: &packet::Pool,
        most: usize,
        now: Timestamp,
        into: &mut Batch,
    ) -> Result<(), CorruptIndex> {
        let Some(rings) = self.pairs.get(usize::from(pair)) else { return Ok(()) };
        let mut ring = rings.receive.borrow_mut();
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let count = ring.available(most)?.min(most);
        let mut stats = self.stats.get();
        let lost = take(&mut ring, count, buffers, pool, (self.mac_word(), now), into, &mut stats);
        self.no_buffer.set(self.no_buffer.get() + lost);
        self.stats.set(stats);
        Ok(())
    }

    /// The number of packets that can be received from a pair now, at most `most`.
    pub(crate) fn waiting(&self, pair: u8, most: usize) -> Result<usize, CorruptIndex> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let Some(rings) = self.pairs.get(usize::from(pair)) else { return Ok(0) };
        Ok(rings.receive.borrow_mut().available(most)?.min(most) as usize)
    }

    /// Borrows buffers from free slots of the transmit ring of a pair until `wanted` are spare. Some slots keep theirs, for
    /// packets that are copied.
    pub(crate) fn borrow_spares(
        &self,
        pair: u8,
        wanted: usize,
        buffers: &mut Buffers,
    ) -> Result<(), CorruptIndex> {
        let Some(rings) = self.pairs.get(usize::from(pair)) else { return Ok(()) };
        let mut ring = rings.transmit.borrow_mut();
        let missing = wanted.saturating_sub(buffers.spare_count()) as u32;
        let borrowed = ring.borrowed();
        let free = ring.free(borrowed + missing)?.saturating_sub(borrowed);
        let most = (self.slots - self.slots / KEPT_BUFFER_INTERVAL).saturating_sub(borrowed);
        for _ in 0..missing.min(free).min(most) {
            buffers.add_spare(ring.borrow());
        }
        Ok(())
    }

    /// Puts packets from `batch` into the rings of the pairs through which they came, to be published by `publish`. Packets
    /// that find no room stay in `batch`.
    pub(crate) fn send(
        &self,
        buffers: &mut Buffers,
        batch: &mut Batch,
        answer: Answer,
    ) -> Result<(), CorruptIndex> {
        if self.pairs.len() == 1 {
            return self.send_through(0, buffers, batch, answer);
        }
        let (mut run, mut left) = (Batch::default(), Batch::default());
        while let Some(pair) = batch.iter().next().map(|first| buffers.pair_of(first)) {
            let others = batch.iter().take_while(|packet| buffers.pair_of(packet) == pair);
            let count = others.count();
            batch.drain_front(count).for_each(|packet| run.push(packet));
            buffers.serve(pair);
            self.send_through(pair, buffers, &mut run, answer)?;
            left.append(&mut run);
        }
        *batch = left;
        Ok(())
    }

    /// Puts packets from the front of `batch` into the ring of a pair. Packets that find no room stay in `batch`.
    fn send_through(
        &self,
        pair: u8,
        buffers: &mut Buffers,
        batch: &mut Batch,
        answer: Answer,
    ) -> Result<(), CorruptIndex> {
        let meta = answer.to_meta();
        let Some(rings) = self.pairs.get(usize::from(pair)) else { return Ok(()) };
        let mut ring = rings.transmit.borrow_mut();
        let wanted = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let wished = wanted.saturating_add(ring.borrowed());
        let room = ring.free(wished)?.min(wanted) as usize;
        let mut stats = self.stats.get();
        let (taken, refused) = put(&mut ring, room, buffers, batch, meta, &mut stats);
        self.refused.set(self.refused.get() + refused);
        self.stats.set(stats);
        if taken >= batch.len() {
            batch.clear();
        } else {
            drop(batch.drain_front(taken));
        }
        Ok(())
    }

    /// How many packets `send` took since the last call although they are too long for the ring.
    pub(crate) fn take_refused(&self) -> usize {
        self.refused.take()
    }

    /// Publishes received or sent packets to the host, and wakes it if it sleeps.
    pub(crate) fn publish(&self, side: Side, platform: &dyn Platform) {
        let mut rings = false;
        for pair in &self.pairs {
            rings |= match side {
                Side::Receive => pair.receive.borrow_mut().release(),
                Side::Transmit => pair.transmit.borrow_mut().publish(),
            };
        }
        if rings {
            platform.ring_host();
        }
    }

    /// Counts packets that were dropped for lack of room.
    pub(crate) fn count_full(&self, count: u64) {
        let stats = self.stats.get();
        self.stats.set(PortStats { full_drops: stats.full_drops + count, ..stats });
    }

    /// Whether there is a packet at any pair, or enough room at all.
    pub(crate) fn is_ready(&self, side: Side) -> Result<bool, CorruptIndex> {
        for pair in &self.pairs {
            match side {
                Side::Receive if pair.receive.borrow_mut().available(1)? > 0 => return Ok(true),
                Side::Receive => {}
                Side::Transmit => {
                    let mut ring = pair.transmit.borrow_mut();
                    let wanted = (ring.borrowed() + self.slots / WRITABLE_SHARE).min(self.slots);
                    if ring.free(wanted)? < wanted {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(side == Side::Transmit)
    }

    /// Prepares for sleep until [`is_ready`](Self::is_ready). Returns false if it is ready already; the box must then
    /// not sleep.
    pub(crate) fn prepare_sleep(&self, side: Side) -> Result<bool, CorruptIndex> {
        let mut sleeps = side == Side::Receive;
        for pair in &self.pairs {
            match side {
                Side::Receive => sleeps &= pair.receive.borrow_mut().prepare_sleep()?,
                Side::Transmit => {
                    sleeps |= pair.transmit.borrow_mut().prepare_sleep_for(self.slots / WRITABLE_SHARE)?;
                }
            }
        }
        Ok(sleeps)
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    pub(crate) fn end_sleep(&self) {
        for pair in &self.pairs {
            pair.receive.borrow().end_sleep();
            pair.transmit.borrow().end_sleep();
        }
    }
}

/// Takes `count` packets out of a ring. Returns how many were dropped because no packet could be allocated.
///
/// It is a function of its own because the compiler knows then that nothing else refers to what it changes, and keeps it in registers.
#[inline(never)]
fn take(
    ring: &mut Consumer<Mapped>,
    count: u32,
    buffers: &mut Buffers,
    pool: &packet::Pool,
    (mac, now): (u64, Timestamp),
    into: &mut Batch,
    stats: &mut PortStats,
) -> u64 {
    let mut lost = 0;
    ring.prefetch_slots(count);
    ring.take_each(count, PREFETCH_DISTANCE, |descriptor, coming| {
        coming.into_iter().for_each(|coming| buffers.prefetch(coming));
        let spare = buffers.take_spare();
        let received = match spare {
            Some(_) => buffers.packet_in_place(descriptor, pool),
            None => buffers.packet_copy(descriptor, pool),
        };
        match received {
            None => {}
            Some(Ok(mut packet)) => {
                stats.received_packets += 1;
                stats.received_bytes += packet.len() as u64;
                let kind = kind(packet.data(), mac);
                packet.set_packet_type(kind);
                packet.set_timestamp(now);
                packet.set_mac_to_start();
                into.push(packet);
            }
            Some(Err(PoolExhausted(length))) => {
                stats.received_packets += 1;
                stats.received_bytes += length as u64;
                lost += 1;
            }
        }
        spare
    });
    lost
}

/// Puts packets from the front of `batch` into a ring that has this much room. Returns how many of those that are still in `batch`
/// were put too, and how many could not be put although there was room.
///
/// It is a function of its own for the reason that [`take`] is.
#[inline(never)]
fn put(
    ring: &mut Producer<Mapped>,
    room: usize,
    buffers: &mut Buffers,
    batch: &mut Batch,
    meta: u16,
    stats: &mut PortStats,
) -> (usize, usize) {
    let mut refused = 0;
    ring.prefetch_slots(room as u32);
    // Packets with a buffer of their own leave the buffers of the slots as spare ones.
    let quick = ring.fill_slots(|slots| {
        batch.take_lent(room, |(bytes, range)| match buffers.release(bytes, range) {
            Some(descriptor) => {
                buffers.add_spare(slots.put(Descriptor { meta, ..descriptor }));
                stats.sent_packets += 1;
                stats.sent_bytes += u64::from(descriptor.length);
            }
            None => refused += 1,
        })
    });
    let mut taken = 0;
    for packet in batch.iter_mut().take(room - quick.unwrap_or(0)) {
        let descriptor = match packet.into_buffer() {
            Some((bytes, range)) => {
                if ring.borrowed() == 0 {
                    buffers.add_spare(ring.borrow());
                }
                buffers.release(bytes, range)
            }
            // The packet takes no slot, and is counted as if there were no room.
            None if packet.len() > BUFFER_SIZE => None,
            None => {
                let spare = buffers.take_spare().or_else(|| ring.borrow().map(|spare| spare.buffer));
                let Some(spare) = spare else { break };
                // A cache miss takes longer than copying a short packet.
                let distance = if packet.len() <= CACHE_LINE { PREFETCH_DISTANCE } else { NEAR_PREFETCH };
                if let Some(next) = ring.peek_ahead(distance) {
                    buffers.prefetch_fill(next, packet.len());
                }
                buffers.copy_in(spare, packet.data())
            }
        };
        taken += 1;
        match descriptor {
            Some(descriptor) => {
                ring.push(Descriptor { meta, ..descriptor });
                stats.sent_packets += 1;
                stats.sent_bytes += u64::from(descriptor.length);
            }
            None => refused += 1,
        }
    }
    stats.full_drops += refused as u64;
    (taken, refused)
}

fn mac_of(info: &PortInfo) -> [u8; 6] {
    let bytes = info.mac.to_le_bytes();
    core::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

/// The packet type of a frame received by a port with this address.
#[inline]
fn kind(frame: &[u8], mac: u64) -> PacketType {
    const GROUP: u64 = 1;
    const ALL: u64 = (1 << 48) - 1;
    let to = match frame.first_chunk::<8>() {
        // One load of a word takes less than one of six bytes.
        Some(first) => u64::from_le_bytes(*first) & ALL,
        None => match frame.first_chunk::<6>() {
            Some([a, b, c, d, e, f]) => u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0]),
            None => return PacketType::Host,
        },
    };
    match to {
        to if to == mac => PacketType::Host,
        ALL => PacketType::Broadcast,
        to if to & GROUP != 0 => PacketType::Multicast,
        _ => PacketType::OtherHost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of all lengths around that of a word, which is read at once.
    #[test]
    fn frames_are_told_apart_by_their_address() {
        let own = [2, 0, 0, 0xff, 0, 7];
        let mac = u64::from_le_bytes([2, 0, 0, 0xff, 0, 7, 0, 0]);
        for (to, expected) in [
            (own, PacketType::Host),
            ([0xff; 6], PacketType::Broadcast),
            ([1, 0, 0x5e, 0, 0, 1], PacketType::Multicast),
            ([0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], PacketType::Multicast),
            ([2, 0, 0, 0xff, 0, 8], PacketType::OtherHost),
            ([0; 6], PacketType::OtherHost),
        ] {
            let mut frame = [0xa5; 64];
            frame[..6].copy_from_slice(&to);
            for length in [6, 7, 8, 9, 64] {
                assert_eq!(kind(&frame[..length], mac), expected, "{to:x?} {length}");
            }
            assert_eq!([0, 5].map(|length| kind(&frame[..length], mac)), [PacketType::Host; 2]);
        }
    }
}
