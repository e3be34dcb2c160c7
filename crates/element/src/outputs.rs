//! What an element emits during one call.

use alloc::vec::Vec;

use packet::{Batch, MAX_BATCH, Packet};

/// The batches that an element has emitted, in order of delivery, and spare ones.
///
/// Ports belong to groups. Packet order is preserved between the ports of a group, because an element reachable from
/// several of them can observe it. Ports of different groups fill separate batches.
#[derive(Default)]
pub struct Outputs {
    emitted: Vec<(usize, Batch)>,
    /// For each group the index in `emitted` of the batch being filled, plus one; or `UNTOUCHED` or `SEALED`.
    filling: Vec<u32>,
    spare: Vec<Batch>,
    limit: usize,
}

/// Nothing was emitted in the group.
const UNTOUCHED: u32 = 0;
/// The group's last batch was emitted whole and must not grow.
const SEALED: u32 = u32::MAX;
/// Maximum number of spare batches. Further ones are freed, so that a burst does not keep memory.
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
        if self.spare.len() < MAX_SPARE {
            self.spare.push(batch);
        }
    }

    /// Emits a whole batch, behind earlier ones.
    #[inline]
    pub fn emit(&mut self, port: usize, group: usize, batch: Batch) {
        if batch.is_empty() {
            return self.recycle(batch);
        }
        self.emitted.push((port, batch));
        *self.filling(group) = SEALED;
    }

    /// The number of emitted batches, which is the index of the next one.
    #[inline]
    pub fn emitted(&self) -> usize {
        self.emitted.len()
    }

    /// Emits a whole batch ahead of those with index `index` and above. It must be the last emission of a call.
    #[inline]
    pub fn emit_at(&mut self, index: usize, port: usize, batch: Batch) {
        if batch.is_empty() {
            return self.recycle(batch);
        }
        self.emitted.insert(index.min(self.emitted.len()), (port, batch));
        self.filling.fill(SEALED);
    }

    /// Emits one packet. It joins the batch being filled where order allows.
    #[inline]
    pub fn send(&mut self, port: usize, group: usize, packet: Packet) {
        let filling = self.filling.get(group).copied().unwrap_or(UNTOUCHED) as usize;
        let limit = self.limit;
        if let Some((filled_port, batch)) = self.emitted.get_mut(filling.wrapping_sub(1))
            && *filled_port == port
            && batch.len() < limit
        {
            return batch.push(packet);
        }
        self.send_apart(port, group, packet);
    }

    /// Emits one packet in a new batch, which later ones may join.
    #[inline(never)]
    fn send_apart(&mut self, port: usize, group: usize, packet: Packet) {
        let mut batch = self.batch();
        batch.push(packet);
        self.emitted.push((port, batch));
        *self.filling(group) = self.emitted.len() as u32;
    }

    /// Whether anything was emitted in the group.
    #[inline]
    pub fn has_emitted_in(&self, group: usize) -> bool {
        !self.emitted.is_empty() && self.filling.get(group).is_some_and(|filling| *filling != UNTOUCHED)
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

    /// Takes the emitted batches in reverse order, as a delivery stack needs them.
    #[inline]
    pub fn take_reversed(&mut self, mut each: impl FnMut(usize, Batch)) {
        self.filling.fill(UNTOUCHED);
        while let Some((port, batch)) = self.emitted.pop() {
            each(port, batch);
        }
    }
}
