//! A port of the box: two rings, and who uses them.

use alloc::rc::{Rc, Weak};
use alloc::string::String;
use boundary::limits::BUFFER_SIZE;
use boundary::{
    Consumer, Corrupt, Descriptor, Ground, Mapped, Pool, PortInfo, PortStats, Producer, SharedMemory,
};
use core::cell::{Cell, RefCell};
use packet::{Batch, PacketType, Timestamp};

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
    buffers: Mapped,
    pool: Pool,
    stats: Cell<PortStats>,
    /// Packets lost for want of a packet to receive them into.
    no_buffer: Cell<u64>,
    mac: Cell<[u8; 6]>,
    holders: [RefCell<Option<Holder>>; 2],
}

impl Port {
    /// The port that a boot info describes, or nothing when it doesn't lie in the area.
    pub(crate) fn new(area: &Mapped, info: &PortInfo) -> Option<Port> {
        let ring = |offset: u32| area.part(offset as usize, info.slots.bytes());
        Some(Port {
            receive: RefCell::new(Consumer::new(ring(info.receive)?, info.slots).ok()?),
            transmit: RefCell::new(Producer::new(ring(info.transmit)?, info.slots).ok()?),
            buffers: area.part(info.buffers as usize, info.buffers_size as usize)?,
            pool: Pool::in_bytes(info.buffers_size as usize),
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

    /// Copies at most `most` packets out of the ring. Their slots are the host's again at once, so that it can answer
    /// what is sent next.
    pub(crate) fn receive(
        &self,
        pool: &packet::Pool,
        most: usize,
        now: Timestamp,
        ground: &dyn Ground,
        into: &mut Batch,
    ) -> Result<(), Corrupt> {
        let mut ring = self.receive.borrow_mut();
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let count = ring.available(most)?.min(most);
        let (mac, mut stats) = (self.mac.get(), self.stats.get());
        for _ in 0..count {
            let Some(range) = ring.pop().and_then(|descriptor| self.pool.range(descriptor).ok()) else {
                continue;
            };
            stats.received_packets += 1;
            stats.received_bytes += range.len() as u64;
            let Some(mut packet) = pool.allocate(range.len()) else {
                self.no_buffer.set(self.no_buffer.get() + 1);
                continue;
            };
            self.buffers.read(range.start, packet.data_mut());
            let kind = kind(packet.data(), &mac);
            packet.set_packet_type(kind);
            packet.set_timestamp(now);
            packet.set_mac(0);
            into.push(packet);
        }
        self.stats.set(stats);
        if ring.release() {
            ground.ring_host();
        }
        Ok(())
    }

    /// Copies packets from the front of `batch` into the ring, and leaves those for which there is no room.
    pub(crate) fn send(&self, batch: &mut Batch, ground: &dyn Ground) -> Result<(), Corrupt> {
        let mut ring = self.transmit.borrow_mut();
        let wanted = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let room = ring.free(wanted)?.min(wanted) as usize;
        let mut stats = self.stats.get();
        for packet in batch.iter().take(room) {
            // What is longer than a buffer can't leave: it takes no slot, and is counted as if there were no room.
            let bytes = packet.data();
            let spare = ring.spare().filter(|_| bytes.len() <= BUFFER_SIZE);
            let Some((spare, start)) =
                spare.and_then(|spare| Some((spare, self.pool.buffer(spare.buffer).ok()?)))
            else {
                stats.full_drops += 1;
                continue;
            };
            self.buffers.write(start, bytes);
            ring.push(Descriptor { buffer: spare.buffer, offset: 0, length: bytes.len() as u16, flags: 0 });
            stats.sent_packets += 1;
            stats.sent_bytes += bytes.len() as u64;
        }
        self.stats.set(stats);
        if room >= batch.len() {
            batch.clear();
        } else {
            drop(batch.drain_front(room));
        }
        if ring.publish() {
            ground.ring_host();
        }
        Ok(())
    }

    /// Counts packets that found no room and were dropped.
    pub(crate) fn count_full(&self, count: u64) {
        let stats = self.stats.get();
        self.stats.set(PortStats { full_drops: stats.full_drops + count, ..stats });
    }

    /// Whether there is a packet, or room for one.
    pub(crate) fn is_ready(&self, side: Side) -> Result<bool, Corrupt> {
        Ok(match side {
            Side::Receive => self.receive.borrow_mut().available(1)? > 0,
            Side::Transmit => self.transmit.borrow_mut().free(1)? > 0,
        })
    }

    /// Announces that the box sleeps until there is. False: there is already.
    pub(crate) fn prepare_sleep(&self, side: Side) -> Result<bool, Corrupt> {
        match side {
            Side::Receive => self.receive.borrow_mut().prepare_sleep(),
            Side::Transmit => self.transmit.borrow_mut().prepare_sleep(),
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
