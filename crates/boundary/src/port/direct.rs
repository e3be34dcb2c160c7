//! Packets that go straight from one box to another: unread, and with their buffers.

use super::{HostPort, PortFault};
use crate::answer::Answer;
use crate::owners::{BufferOwners, PoolMember};
use crate::ring::Descriptor;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Packets of a batch.
const CAPACITY: u32 = 256;

/// A packet that a box passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectPacket {
    /// What was noted when its box got it. The other box's port notes what is here when it [gets](HostPort::send_direct) it.
    pub tag: u64,
    /// The word of its slot, which was copied once. It says [`Next`](Answer::Next), which is zero, as a word to a box does.
    word: u64,
    /// The buffer that its box gets in exchange.
    spare: u32,
}

const _: () = assert!(Answer::Next.to_meta() == 0);

impl DirectPacket {
    /// The packet's length in bytes.
    #[inline(always)]
    pub const fn length(&self) -> u32 {
        Descriptor::from_bits(self.word).length
    }
}

/// Packets on their way from one box to another that shares its pool. They stay in the ring of the first one until they are
/// [released](HostPort::release_direct).
#[derive(Debug, Default)]
pub struct DirectBatch {
    packets: Vec<DirectPacket>,
    /// The pool, and the box that the packets come from.
    source: Option<(Arc<BufferOwners>, PoolMember)>,
    /// Packets that the other box got: the first ones.
    moved: usize,
    /// Packets that were looked at when they were listed.
    seen: usize,
}

impl DirectBatch {
    /// The packets, in order.
    pub fn packets(&mut self) -> &mut [DirectPacket] {
        &mut self.packets
    }

    /// The number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Keeps the first packets. The others stay where they are.
    pub fn truncate(&mut self, count: usize) {
        self.packets.truncate(count);
    }

    /// Whether all packets that were looked at moved.
    pub fn is_all(&self) -> bool {
        self.moved == self.seen
    }

    /// The packets that the other box got, and their bytes.
    pub fn moved(&self) -> (u64, u64) {
        let moved = self.packets.get(..self.moved).unwrap_or_default();
        (moved.len() as u64, moved.iter().map(|packet| u64::from(packet.length())).sum())
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.source = None;
        (self.moved, self.seen) = (0, 0);
    }
}

impl<Owner> HostPort<Owner> {
    /// Lists the next packets that the box has sent, as long as it answered [`Next`](Answer::Next) and something was noted of them.
    /// They are not taken. A box outside a pool has none.
    pub fn list_direct(&mut self, batch: &mut DirectBatch) -> Result<(), PortFault> {
        batch.clear();
        let (Some((owners, member)), Some(tags)) = (&self.member, &self.tags) else { return Ok(()) };
        let count = self.from_box.available(CAPACITY)?.min(CAPACITY);
        batch.seen = count as usize;
        self.from_box.prefetch_slots(count);
        batch.packets.reserve(count as usize);
        self.from_box.look_each(count, |descriptor| {
            let is_own = self.pool.range(descriptor).is_ok() && owners.owns(*member, descriptor.buffer);
            let tag = tags.get(descriptor.buffer);
            let is_direct = descriptor.meta == Answer::Next.to_meta() && is_own && tag != 0;
            if is_direct {
                batch.packets.push(DirectPacket { tag, word: descriptor.to_bits(), spare: 0 });
            }
            is_direct
        });
        batch.source = Some((owners.clone(), *member));
        Ok(())
    }

    /// Puts packets with their buffers into the ring to the box, as far as there is room, and notes their tags. They become
    /// visible with [`publish`](Self::publish). None go to a box outside the pool. A box that lists a buffer twice, or one that
    /// is not its own, has its packets from there on left to [`take`](Self::take).
    pub fn send_direct(&mut self, batch: &mut DirectBatch) -> Result<(), PortFault> {
        let (Some((owners, to)), Some(tags)) = (&self.member, &self.tags) else { return Ok(()) };
        let Some((_, from)) = batch.source.as_ref().filter(|(others, _)| Arc::ptr_eq(owners, others)) else {
            return Ok(());
        };
        let count = batch.packets.len() as u32;
        self.to_box.free(count)?;
        self.to_box.prefetch_slots(count);
        let moved = self.to_box.fill_slots(|slots| {
            let mut moved = 0;
            for packet in &mut batch.packets {
                let Some(spare) = slots.spare() else { break };
                let descriptor = Descriptor::from_bits(packet.word);
                if !owners.exchange(*from, descriptor, *to, spare.buffer) {
                    break;
                }
                tags.set(descriptor.buffer, packet.tag);
                slots.put(descriptor);
                packet.spare = spare.buffer;
                moved += 1;
            }
            moved
        });
        batch.moved += moved.unwrap_or(0);
        Ok(())
    }

    /// Takes the packets that the other box got, and returns their slots with the buffers that were exchanged for theirs. Returns
    /// true if the box sleeps and its doorbell must be rung.
    pub fn release_direct(&mut self, batch: &DirectBatch) -> bool {
        let moved = batch.packets.get(..batch.moved).unwrap_or_default();
        self.from_box.exchange_each(moved.iter().map(|packet| packet.spare));
        self.from_box.release()
    }
}
