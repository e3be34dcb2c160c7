//! What elements emit, until the router delivers it.

use alloc::vec::Vec;

use packet::{Batch, MAX_BATCH, Packet};

/// The batches that wait for delivery, and spare ones.
///
/// This is the stack of the router's depth-first delivery. The batches that the present call emits are on top, in the order of
/// emission; `end_call` turns them around, so that the first one is delivered next. Below are those that earlier calls
/// emitted.
///
/// Connections belong to groups. Packet order is preserved between the connections of a group, because an element reachable
/// from several of them can observe it. Connections of different groups fill separate batches.
#[derive(Default)]
pub struct Outputs {
    waiting: Vec<Emission>,
    /// Where those of the present call begin.
    start: usize,
    /// For each group the index in `waiting` of the batch being filled, plus one; or `UNTOUCHED` or `SEALED`.
    filling: Vec<u32>,
    spare: Vec<Batch>,
    limit: usize,
}

/// A batch that an element emitted to an output.
struct Emission {
    /// The router's number of the output's connection.
    connection: u32,
    group: u32,
    batch: Batch,
}

/// Nothing was emitted in the group during this call.
const UNTOUCHED: u32 = 0;
/// The group's last batch was emitted whole and must not grow.
const SEALED: u32 = u32::MAX;
/// Number of spare batches that are kept, besides one for each group. Further ones are freed, so that a burst does not keep
/// memory.
const MAX_SPARE: usize = 64;

impl Outputs {
    /// With batches of at most `limit` packets.
    pub fn new(limit: usize) -> Outputs {
        Outputs { limit: limit.clamp(1, MAX_BATCH), ..Outputs::default() }
    }

    /// The maximum number of packets in a batch.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// An empty batch with memory.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_else(Batch::with_capacity)
    }

    /// Takes back a batch's memory; drops its packets.
    #[inline]
    pub fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        if self.spare.len() < MAX_SPARE + self.filling.len() {
            self.spare.push(batch);
        }
    }

    /// Emits a whole batch, behind earlier ones.
    #[inline]
    pub fn emit(&mut self, connection: u32, group: u32, batch: Batch) {
        if batch.is_empty() {
            return self.recycle(batch);
        }
        self.waiting.push(Emission { connection, group, batch });
        *self.filling(group) = SEALED;
    }

    /// The number of batches that the present call emitted, which is the index of the next one.
    #[inline]
    pub fn emitted(&self) -> usize {
        self.waiting.len() - self.start
    }

    /// Emits a whole batch ahead of those with index `index` and above. It must be the last emission of a call.
    #[inline]
    pub fn emit_at(&mut self, index: usize, connection: u32, group: u32, batch: Batch) {
        if batch.is_empty() {
            return self.recycle(batch);
        }
        let index = (self.start + index).min(self.waiting.len());
        self.waiting.insert(index, Emission { connection, group, batch });
    }

    /// Emits one packet. It joins the batch being filled where order allows.
    #[inline]
    pub fn send(&mut self, connection: u32, group: u32, packet: Packet) {
        let filling = self.filling.get(group as usize).copied().unwrap_or(UNTOUCHED) as usize;
        let limit = self.limit;
        if let Some(emission) = self.waiting.get_mut(filling.wrapping_sub(1))
            && emission.connection == connection
            && emission.batch.len() < limit
        {
            return emission.batch.push(packet);
        }
        self.send_apart(connection, group, packet);
    }

    /// Emits one packet in a new batch, which later ones may join.
    #[inline(never)]
    fn send_apart(&mut self, connection: u32, group: u32, packet: Packet) {
        let mut batch = self.batch();
        batch.push(packet);
        self.waiting.push(Emission { connection, group, batch });
        *self.filling(group) = self.waiting.len() as u32;
    }

    /// Whether the present call emitted anything in the group.
    #[inline]
    pub fn has_emitted_in(&self, group: u32) -> bool {
        self.filling.get(group as usize).is_some_and(|filling| *filling != UNTOUCHED)
    }

    #[inline]
    fn filling(&mut self, group: u32) -> &mut u32 {
        let group = group as usize;
        if group >= self.filling.len() {
            self.filling.resize(group + 1, UNTOUCHED);
        }
        &mut self.filling[group]
    }

    /// Ends a call: what it emitted is delivered next.
    #[inline]
    pub fn end_call(&mut self) {
        let emitted = self.waiting.get_mut(self.start..).unwrap_or_default();
        for emission in emitted.iter() {
            if let Some(filling) = self.filling.get_mut(emission.group as usize) {
                *filling = UNTOUCHED;
            }
        }
        if emitted.len() > 1 {
            emitted.reverse();
        }
        self.start = self.waiting.len();
    }

    /// Takes the next batch to be delivered, with the number of its connection.
    #[inline]
    pub fn take_next(&mut self) -> Option<(u32, Batch)> {
        let Emission { connection, batch, .. } = self.waiting.pop()?;
        self.start = self.waiting.len();
        Some((connection, batch))
    }

    /// Divides a batch just taken: returns its first `count` packets. The others are delivered next.
    pub fn divide(&mut self, connection: u32, mut batch: Batch, count: usize) -> Batch {
        let mut first = self.batch();
        batch.drain_front(count).for_each(|packet| first.push(packet));
        self.waiting.push(Emission { connection, group: 0, batch });
        self.start = self.waiting.len();
        first
    }
}
