//! A port of the box: two rings, and who uses them.
//!
//! A packet is worked on in the buffer in which it came, and leaves in it by another port: the ring that it came by
//! gets another buffer for it. Where there is none, and where a packet has no buffer of the ports, bytes are copied.

use crate::buffers::{Buffers, NoPacket};
use alloc::rc::{Rc, Weak};
use alloc::string::String;
use boundary::limits::BUFFER_SIZE;
use boundary::{
    CACHE_LINE, Consumer, CorruptIndex, Mapped, NEAR_PREFETCH, Platform, PortInfo, PortStats, Producer,
};
use core::cell::{Cell, RefCell};
use packet::{Batch, PacketType, Timestamp};

/// How many packets ahead memory is asked for: the time of so many packets is that of a cache miss.
const PREFETCH_DISTANCE: u32 = 8;

/// The share of a transmit ring's slots that keep their buffers, one in so many.
const KEPT: u32 = 2;

/// The share of a transmit ring's slots that is worth going on for once it was full, one in so many: with each slot
/// that comes free a sender would make packets that find no room.
const WORTH: u32 = 8;

/// Which end of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Packets to the box.
    Receive,
    /// Packets from the box.
    Transmit,
}

/// Who uses one side of a port.
#[derive(Clone, Debug)]
struct Holder {
    configuration: String,
    /// Which of the configuration's routers: the next one may take over from the one that runs.
    making: u64,
    /// Dead when the device was closed.
    alive: Weak<()>,
}

/// A port of the box.
pub(crate) struct Port {
    receive: RefCell<Consumer<Mapped>>,
    transmit: RefCell<Producer<Mapped>>,
    /// Slots of each.
    slots: u32,
    stats: Cell<PortStats>,
    /// Packets lost for want of a packet to receive them into.
    no_buffer: Cell<u64>,
    mac: Cell<[u8; 6]>,
    holders: [RefCell<Option<Holder>>; 2],
}

impl Port {
    /// The port that a boot info describes, or nothing if its rings are outside `pages`.
    pub(crate) fn new(pages: &Mapped, info: &PortInfo) -> Option<Port> {
        let ring = |offset: u32| pages.part(offset as usize, info.slots.bytes());
        Some(Port {
            receive: RefCell::new(Consumer::new(ring(info.receive)?, info.slots).ok()?),
            transmit: RefCell::new(Producer::new(ring(info.transmit)?, info.slots).ok()?),
            slots: info.slots.count(),
            stats: Cell::default(),
            no_buffer: Cell::default(),
            mac: Cell::new(link(info)),
            holders: [RefCell::new(None), RefCell::new(None)],
        })
    }

    /// Takes the port's new address, after the box was copied.
    pub(crate) fn readdress(&self, info: &PortInfo) {
        self.mac.set(link(info));
    }

    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac.get()
    }

    pub(crate) fn stats(&self) -> PortStats {
        self.stats.get()
    }

    pub(crate) fn no_buffer(&self) -> u64 {
        self.no_buffer.get()
    }

    /// Takes a side for a configuration's router; the side is free again when what is returned is dropped.
    ///
    /// # Errors
    ///
    /// The name of the configuration that has it.
    pub(crate) fn hold(&self, side: Side, configuration: &str, making: u64) -> Result<Rc<()>, String> {
        let mut holder = self.holder(side).borrow_mut();
        if let Some(holder) = holder.as_ref().filter(|holder| holder.alive.strong_count() > 0)
            && (holder.configuration != configuration || holder.making == making)
        {
            return Err(holder.configuration.clone());
        }
        let alive = Rc::new(());
        let configuration = configuration.into();
        *holder = Some(Holder { configuration, making, alive: Rc::downgrade(&alive) });
        Ok(alive)
    }

    fn holder(&self, side: Side) -> &RefCell<Option<Holder>> {
        match side {
            Side::Receive => &self.holders[0],
            Side::Transmit => &self.holders[1],
        }
    }

    /// Takes at most `most` packets out of the ring. Their slots are the host's again when `show` is called, which is
    /// before anything else is done, so that it can answer what is sent next.
    pub(crate) fn receive(
        &self,
        buffers: &mut Buffers,
        pool: &packet::Pool,
        most: usize,
        now: Timestamp,
        into: &mut Batch,
    ) -> Result<(), CorruptIndex> {
        let mut ring = self.receive.borrow_mut();
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let count = ring.available(most)?.min(most);
        let (mac, mut stats) = (self.mac.get(), self.stats.get());
        for _ in 0..count {
            if let Some(next) = ring.peek_ahead(PREFETCH_DISTANCE) {
                buffers.prefetch(next);
            }
            let received = match buffers.spare() {
                Some(spare) => ring.exchange(spare).and_then(|packet| buffers.accept(packet, pool)),
                None => ring.pop().and_then(|packet| buffers.copy(packet, pool)),
            };
            let Some(received) = received else { continue };
            stats.received_packets += 1;
            let mut packet = match received {
                Ok(packet) => packet,
                Err(NoPacket(length)) => {
                    stats.received_bytes += length as u64;
                    self.no_buffer.set(self.no_buffer.get() + 1);
                    continue;
                }
            };
            stats.received_bytes += packet.len() as u64;
            let kind = kind(packet.data(), &mac);
            packet.set_packet_type(kind);
            packet.set_timestamp(now);
            packet.set_mac(0);
            into.push(packet);
        }
        self.stats.set(stats);
        Ok(())
    }

    /// Packets that a receiver may take out now, at most so many.
    pub(crate) fn waiting(&self, most: usize) -> Result<usize, CorruptIndex> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Ok(self.receive.borrow_mut().available(most)?.min(most) as usize)
    }

    /// Moves buffers out of free slots of the transmit ring until `wanted` are spare. Some slots keep theirs, for packets
    /// that have none.
    pub(crate) fn lend_spares(&self, wanted: usize, buffers: &mut Buffers) -> Result<(), CorruptIndex> {
        let mut ring = self.transmit.borrow_mut();
        let missing = wanted.saturating_sub(buffers.spares()) as u32;
        let borrowed = ring.borrowed();
        let free = ring.free(borrowed + missing)?.saturating_sub(borrowed);
        let most = (self.slots - self.slots / KEPT).saturating_sub(borrowed);
        for _ in 0..missing.min(free).min(most) {
            buffers.keep(ring.borrow());
        }
        Ok(())
    }

    /// Puts packets from the front of `batch` into the ring, for `show`, and leaves those for which there is no room.
    pub(crate) fn send(&self, buffers: &mut Buffers, batch: &mut Batch) -> Result<(), CorruptIndex> {
        let mut ring = self.transmit.borrow_mut();
        let wanted = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let wished = wanted.saturating_add(ring.borrowed());
        let room = ring.free(wished)?.min(wanted) as usize;
        let (mut stats, mut taken) = (self.stats.get(), 0);
        for packet in batch.iter_mut().take(room) {
            let descriptor = match packet.into_buffer() {
                Some((bytes, range)) => {
                    // It brings its own: what lies in the slot is spare, unless that is out already.
                    if ring.borrowed() == 0 {
                        buffers.keep(ring.borrow());
                    }
                    buffers.name(bytes, range)
                }
                // It takes no slot, and is counted as if there were no room.
                None if packet.len() > BUFFER_SIZE => None,
                None => {
                    let spare = buffers.spare().or_else(|| ring.borrow().map(|spare| spare.buffer));
                    let Some(spare) = spare else { break };
                    // A line comes later than a short packet is copied.
                    let distance = if packet.len() <= CACHE_LINE { PREFETCH_DISTANCE } else { NEAR_PREFETCH };
                    if let Some(next) = ring.peek_ahead(distance) {
                        buffers.prefetch_fill(next, packet.len());
                    }
                    buffers.fill(spare, packet.data())
                }
            };
            taken += 1;
            let Some(descriptor) = descriptor else {
                stats.full_drops += 1;
                continue;
            };
            ring.push(descriptor);
            stats.sent_packets += 1;
            stats.sent_bytes += u64::from(descriptor.length);
        }
        self.stats.set(stats);
        if taken >= batch.len() {
            batch.clear();
        } else {
            drop(batch.drain_front(taken));
        }
        Ok(())
    }

    /// Lets the host see what was received or sent, and wakes it if it waits for that.
    pub(crate) fn show(&self, side: Side, platform: &dyn Platform) {
        let rings = match side {
            Side::Receive => self.receive.borrow_mut().release(),
            Side::Transmit => self.transmit.borrow_mut().publish(),
        };
        if rings {
            platform.ring_host();
        }
    }

    /// Counts packets that found no room and were dropped.
    pub(crate) fn count_full(&self, count: u64) {
        let stats = self.stats.get();
        self.stats.set(PortStats { full_drops: stats.full_drops + count, ..stats });
    }

    /// Whether there is a packet, or room that is worth going on for.
    pub(crate) fn is_ready(&self, side: Side) -> Result<bool, CorruptIndex> {
        Ok(match side {
            Side::Receive => self.receive.borrow_mut().available(1)? > 0,
            Side::Transmit => {
                let mut ring = self.transmit.borrow_mut();
                let wanted = (ring.borrowed() + self.slots / WORTH).min(self.slots);
                ring.free(wanted)? >= wanted
            }
        })
    }

    /// Announces that the box sleeps until there is. False: there is already.
    pub(crate) fn prepare_sleep(&self, side: Side) -> Result<bool, CorruptIndex> {
        match side {
            Side::Receive => self.receive.borrow_mut().prepare_sleep(),
            Side::Transmit => self.transmit.borrow_mut().prepare_sleep_for(self.slots / WORTH),
        }
    }

    /// Takes the announcements back.
    pub(crate) fn end_sleep(&self) {
        self.receive.borrow().end_sleep();
        self.transmit.borrow().end_sleep();
    }
}

fn link(info: &PortInfo) -> [u8; 6] {
    let bytes = info.mac.to_le_bytes();
    core::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

/// How a frame is addressed, as seen from a port with an address.
#[inline]
fn kind(frame: &[u8], mac: &[u8; 6]) -> PacketType {
    match frame.first_chunk::<6>() {
        Some(to) if to == mac => PacketType::Host,
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => PacketType::Broadcast,
        Some(to) if to[0] & 1 != 0 => PacketType::Multicast,
        Some(_) => PacketType::OtherHost,
        None => PacketType::Host,
    }
}
