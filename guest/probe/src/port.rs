//! A port as the probe sees it.

use boundary::{Consumer, CorruptIndex, Descriptor, Mapped, PoolLayout, PortInfo, PortStats, Producer};

/// Packets that are moved at once.
pub(crate) const BATCH: u32 = 256;

/// The share of a transmit ring's slots that is worth to be woken for, one in so many.
const WORTH: u32 = 8;

pub(crate) struct Port {
    pub(crate) receive: Consumer<Mapped>,
    pub(crate) transmit: Producer<Mapped>,
    pub(crate) stats: PortStats,
    /// Slots that are worth to be woken for once the transmit ring was full.
    pub(crate) worth: u32,
    buffers: Mapped,
    pool: PoolLayout,
}

/// Gives back what was received, and wakes the host if it sleeps for want of room.
fn release(receive: &mut Consumer<Mapped>) {
    if receive.release() {
        boot::ring_host();
    }
}

/// Shows the host what was pushed, and wakes it if it sleeps. What was received is released before: the
/// host may answer at once.
fn publish(transmit: &mut Producer<Mapped>) {
    if transmit.publish() {
        boot::ring_host();
    }
}

impl Port {
    /// The port that a boot info describes, or nothing when it isn't inside the region.
    pub(crate) fn new(region: &Mapped, info: &PortInfo) -> Option<Self> {
        let ring = |offset: u32| region.part(offset as usize, info.slots.bytes());
        let buffers = region.part(info.buffers as usize, info.buffers_size as usize)?;
        Some(Self {
            receive: Consumer::new(ring(info.receive)?, info.slots).ok()?,
            transmit: Producer::new(ring(info.transmit)?, info.slots).ok()?,
            stats: PortStats::default(),
            worth: info.slots.count() / WORTH,
            pool: PoolLayout::in_bytes(info.buffers_size as usize),
            buffers,
        })
    }

    /// Takes packets and forgets them; how many.
    pub(crate) fn drop_batch(&mut self) -> Result<u32, CorruptIndex> {
        let count = self.receive.available(BATCH)?.min(BATCH);
        for _ in 0..count {
            if let Some(packet) = self.receive.pop() {
                self.stats.received_packets += 1;
                self.stats.received_bytes += u64::from(packet.length);
            }
        }
        release(&mut self.receive);
        Ok(count)
    }

    /// Sends packets of `length` bytes; how many.
    pub(crate) fn send_batch(&mut self, length: u16) -> Result<u32, CorruptIndex> {
        let count = self.transmit.free(BATCH)?.min(BATCH);
        for _ in 0..count {
            let Some(spare) = self.transmit.spare() else { break };
            self.transmit.push(Descriptor { offset: 0, length: length.into(), ..spare });
            self.stats.sent_packets += 1;
            self.stats.sent_bytes += u64::from(length);
        }
        publish(&mut self.transmit);
        Ok(count)
    }

    /// Sends a batch back, addresses exchanged; how many.
    pub(crate) fn mirror_batch(&mut self) -> Result<u32, CorruptIndex> {
        let count = self.receive.available(BATCH)?.min(BATCH);
        let count = self.transmit.free(count)?.min(count);
        for _ in 0..count {
            let Some(spare) = self.transmit.spare() else { break };
            let Some(packet) = self.receive.exchange(spare.buffer) else { break };
            self.exchange_addresses(packet);
            self.transmit.push(packet);
            self.note(packet);
        }
        release(&mut self.receive);
        publish(&mut self.transmit);
        Ok(count)
    }

    /// Hands a batch to `other`; how many. Nothing is copied: the ports share their buffers.
    pub(crate) fn forward_batch(&mut self, other: &mut Self) -> Result<u32, CorruptIndex> {
        let count = self.receive.available(BATCH)?.min(BATCH);
        let count = other.transmit.free(count)?.min(count);
        for _ in 0..count {
            let Some(spare) = other.transmit.spare() else { break };
            let Some(packet) = self.receive.exchange(spare.buffer) else { break };
            other.transmit.push(packet);
            self.note(packet);
        }
        release(&mut self.receive);
        publish(&mut other.transmit);
        Ok(count)
    }

    fn note(&mut self, packet: Descriptor) {
        self.stats.received_packets += 1;
        self.stats.received_bytes += u64::from(packet.length);
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += u64::from(packet.length);
    }

    fn exchange_addresses(&self, packet: Descriptor) {
        let range = self.pool.range(packet).ok().filter(|range| range.len() >= 12);
        if let Some(data) = range.and_then(|range| self.buffers.pointer(range.start, 12)) {
            let data = data.cast::<[[u8; 6]; 2]>();
            // SAFETY: 12 bytes inside the pool; bytes need no alignment.
            unsafe {
                let [to, from] = data.read();
                data.write([from, to]);
            }
        }
    }
}
