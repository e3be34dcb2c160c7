//! What an element emits during one call.

use alloc::vec::Vec;

use packet::{BATCH, Batch, Packet};

/// The batches that an element has emitted, in the order of delivery, and those kept for reuse.
///
/// Ports belong to groups. Between ports of one group the order of packets is kept, because what is reached through
/// them can tell; ports of different groups fill batches of their own.
#[derive(Default)]
pub struct Outputs {
    emitted: Vec<(usize, Batch)>,
    /// For each group the place among `emitted` of the batch that is being filled, plus one; `UNTOUCHED`, `SEALED`.
    filling: Vec<u32>,
    spare: Vec<Batch>,
    limit: usize,
}

/// Nothing was emitted in the group.
const UNTOUCHED: u32 = 0;
/// Something was emitted, to which nothing may be added.
const SEALED: u32 = u32::MAX;
/// Spare batches kept; more are freed, so that a burst leaves no memory behind.
const SPARE: usize = 64;

impl Outputs {
    /// For batches of at most `limit` packets.
    pub fn new(limit: usize) -> Outputs {
        Outputs { limit: limit.clamp(1, BATCH), ..Outputs::default() }
    }

    /// The most packets that it puts into one batch.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// An empty batch with memory.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_else(Batch::with_capacity)
    }

    /// Takes the memory of a batch back; drops its packets.
    #[inline]
    pub fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        if self.spare.len() < SPARE {
            self.spare.push(batch);
        }
    }

    /// Emits a whole batch after what was emitted before.
    #[inline]
    pub fn emit(&mut self, port: usize, group: usize, batch: Batch) {
        if batch.is_empty() {
            return self.recycle(batch);
        }
        self.emitted.push((port, batch));
        *self.filling(group) = SEALED;
    }

    /// Batches emitted so far: the place of the next one.
    #[inline]
    pub fn place(&self) -> usize {
        self.emitted.len()
    }

    /// Emits a whole batch before what was emitted at `place` and later; nothing may be sent after that in the same
    /// call.
    #[inline]
    pub fn emit_at(&mut self, place: usize, port: usize, batch: Batch) {
        if batch.is_empty() {
            return self.recycle(batch);
        }
        self.emitted.insert(place.min(self.emitted.len()), (port, batch));
        self.filling.fill(SEALED);
    }

    /// Emits one packet; it joins the batch before it where order allows.
    #[inline]
    pub fn send(&mut self, port: usize, group: usize, packet: Packet) {
        let place = self.filling.get(group).copied().unwrap_or(UNTOUCHED) as usize;
        let limit = self.limit;
        if let Some((at, batch)) = self.emitted.get_mut(place.wrapping_sub(1))
            && *at == port
            && batch.len() < limit
        {
            return batch.push(packet);
        }
        self.send_apart(port, group, packet);
    }

    /// Emits one packet in a batch of its own, which those that follow may join.
    #[inline(never)]
    fn send_apart(&mut self, port: usize, group: usize, packet: Packet) {
        let mut batch = self.batch();
        batch.push(packet);
        self.emitted.push((port, batch));
        *self.filling(group) = self.emitted.len() as u32;
    }

    /// Whether anything was emitted in the group.
    #[inline]
    pub fn is_touched(&self, group: usize) -> bool {
        !self.emitted.is_empty() && self.filling.get(group).is_some_and(|place| *place != UNTOUCHED)
    }

    #[inline]
    fn filling(&mut self, group: usize) -> &mut u32 {
        if group >= self.filling.len() {
            self.filling.resize(group + 1, UNTOUCHED);
        }
        &mut self.filling[group]
    }

    /// Whether nothing was emitted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.emitted.is_empty()
    }

    /// Takes what was emitted, last first, as a stack of deliveries wants it.
    #[inline]
    pub fn take_reversed(&mut self, mut each: impl FnMut(usize, Batch)) {
        self.filling.fill(UNTOUCHED);
        while let Some((port, batch)) = self.emitted.pop() {
            each(port, batch);
        }
    }
}
