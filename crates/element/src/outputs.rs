//! What elements emit, until the router delivers it.

use alloc::vec::Vec;

use packet::{Batch, MAX_BATCH, Packet};

use crate::gathered::{Gathered, Gathering, Split, Spread};

/// The batches that wait for delivery, and spare ones.
///
/// This is the stack of the router's depth-first delivery. The batches that the present call emits are on top, in the order of
/// emission; `end_call` turns them around, so that the first one is delivered next. Below are those that earlier calls
/// emitted.
///
/// Connections belong to groups. Packet order is preserved between the connections of a group, because an element reachable
/// from several of them can observe it. Connections of different groups fill separate batches.
///
/// Some outputs gather packets instead (see [`Gathering`]). What they gathered behind a split is delivered when the stack is as
/// high again as it was when the split was called; behind closed splits and at parts that never meet, when it is empty and the
/// call that began it all has ended.
#[derive(Default)]
pub struct Outputs {
    waiting: Vec<Emission>,
    /// Where those of the present call begin.
    start: usize,
    /// For each group the index in `waiting` of the batch being filled, plus one; or `UNTOUCHED` or `SEALED`.
    filling: Vec<u32>,
    spare: Vec<Batch>,
    /// What outputs gather instead of emitting it.
    gathered: Gathered,
    /// The same behind closed splits, up to the end of the call.
    closed: Gathered,
    spread: Spread,
    /// Whether the call will emit more after this delivery, so that gathering goes on where it may.
    goes_on: bool,
    limit: usize,
    /// What the element that is called has put back of its batch.
    rest: Option<Batch>,
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
/// The group of a batch whose order does not matter.
const NO_GROUP: u32 = u32::MAX;
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

    /// Sets the maximum number of packets in a batch.
    #[inline]
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// An empty batch with memory.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_else(Batch::with_capacity)
    }

    /// Takes back a batch's memory; drops its packets.
    #[inline]
    pub fn recycle(&mut self, mut batch: Batch) {
        if !batch.is_empty() {
            batch.clear();
        }
        if batch.has_memory() && self.spare.len() < MAX_SPARE + self.filling.len() {
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

    /// The number of packets in the batches that the present call emitted.
    pub fn emitted_packets(&self) -> usize {
        let emitted = self.waiting.get(self.start..).unwrap_or_default();
        emitted.iter().map(|emission| emission.batch.len()).sum()
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

    /// Gathers one packet.
    #[inline]
    pub fn gather(&mut self, to: &Gathering, packet: Packet) {
        to.packets.set(to.packets.get() + 1);
        let spare = || self.spare.pop().unwrap_or_else(Batch::with_capacity);
        if to.split.is_some() {
            let gathered = if to.is_closed { &mut self.closed } else { &mut self.gathered };
            return gathered.batch(to, spare).push(packet);
        }
        let batch = self.spread.batch(to, spare);
        batch.push(packet);
        if batch.len() >= self.limit {
            // A full batch goes on at once.
            let batch = core::mem::take(batch);
            self.waiting.push(Emission { connection: to.connection, group: NO_GROUP, batch });
        }
    }

    /// Gathers a batch.
    #[inline]
    pub fn gather_batch(&mut self, to: &Gathering, mut batch: Batch) {
        if !batch.is_empty() {
            to.packets.set(to.packets.get() + batch.len() as u64);
            let into = match to.split {
                Some(_) if to.is_closed => self.closed.batch(to, Batch::new),
                Some(_) => self.gathered.batch(to, Batch::new),
                None => self.spread.batch(to, Batch::new),
            };
            if into.is_empty() {
                core::mem::swap(into, &mut batch);
            } else {
                into.append(&mut batch);
            }
        }
        self.recycle(batch);
    }

    /// Sets whether the call will emit more after a delivery.
    pub fn set_goes_on(&mut self, goes_on: bool) {
        self.goes_on = goes_on;
    }

    /// Stamps packets that are about to arrive at an element that splits them among outputs that gather.
    #[inline]
    pub fn stamp(&mut self, split: &Split, batch: &mut Batch) {
        let gathered = if split.is_closed { &mut self.closed } else { &mut self.gathered };
        gathered.stamp(split, batch.as_mut_slice(), self.waiting.len());
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

    /// Whether nothing waits for delivery.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
            && self.gathered.is_empty()
            && self.closed.is_empty()
            && self.spread.is_empty()
    }

    /// Takes the next batch to be delivered, with the number of its connection.
    #[inline]
    pub fn take_next(&mut self) -> Option<(u32, Batch)> {
        if let Some(gathered) = self.gathered.take(self.waiting.len()) {
            if let Some(sequence) = self.gathered.take_sequence() {
                let wait = |(connection, batch)| Emission { connection, group: NO_GROUP, batch };
                self.waiting.extend(sequence.map(wait));
                self.start = self.waiting.len();
            }
            return Some(gathered);
        }
        let Some(Emission { connection, batch, .. }) = self.waiting.pop() else {
            return if self.goes_on { None } else { self.closed.take(0).or_else(|| self.spread.take()) };
        };
        self.start = self.waiting.len();
        Some((connection, batch))
    }

    /// Puts back the last packets of the batch with which the present call was made.
    pub fn put_back(&mut self, rest: Batch) {
        self.rest = Some(rest);
    }

    /// What the call has put back.
    #[inline]
    pub fn take_rest(&mut self) -> Option<Batch> {
        self.rest.take()
    }

    /// Has a batch delivered by a connection after what the present call has emitted or gathered behind `split`, and everything that
    /// results from it.
    pub fn deliver_later(&mut self, connection: u32, batch: Batch, split: Option<u32>) {
        if let Some(split) = split {
            self.gathered.raise(split, self.start);
        }
        self.waiting.insert(self.start, Emission { connection, group: NO_GROUP, batch });
        self.start += 1;
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
