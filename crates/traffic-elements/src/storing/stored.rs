//! The packets of a queue, and since when they wait.

use alloc::collections::VecDeque;

use element::QueueAge;
use element::prelude::*;

/// The packets of a queue, in the order in which they leave, and since when they wait.
///
/// Most packets arrive at the end. A queue that is also a stack puts some at the front.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) packets: VecDeque<Packet>,
    /// The age of the packets that arrived at the end.
    age: QueueAge,
    /// The packets that arrived at the front, and since when there are any.
    stacked: usize,
    stacked_since: Timestamp,
}

impl Stored {
    /// Nothing yet; memory for this many packets.
    pub(super) fn with_capacity(capacity: usize) -> Stored {
        Stored { packets: VecDeque::with_capacity(capacity), ..Stored::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Stores a batch at the end.
    #[inline]
    pub(super) fn extend(&mut self, cx: &Context, batch: &mut Batch) {
        self.age.arrive(batch.len(), || cx.steady());
        self.packets.extend(batch.drain());
    }

    /// Notes that a packet was stored at the end.
    pub(super) fn count_last(&mut self, cx: &Context) {
        self.age.arrive(1, || cx.steady());
    }

    /// Notes that a packet was stored at the front.
    pub(super) fn count_first(&mut self, cx: &Context) {
        if self.stacked == 0 {
            self.stacked_since = cx.steady();
        }
        self.stacked += 1;
    }

    /// Notes that packets were taken from the front.
    #[inline]
    pub(super) fn count_taken(&mut self, count: usize) {
        let from_stack = count.min(self.stacked);
        self.stacked -= from_stack;
        self.age.leave(count - from_stack);
    }

    /// Notes that packets were taken from the end, before as many as `left` stayed.
    pub(super) fn count_taken_from_end(&mut self, count: usize, left: usize) {
        let queued = (left + count).saturating_sub(self.stacked);
        self.age.retract(count.min(queued));
        self.stacked -= count.saturating_sub(queued).min(self.stacked);
    }

    /// Removes what is over a capacity: the oldest packets, or else the newest. Returns how many.
    pub(super) fn shrink(&mut self, capacity: usize, keep_newest: bool) -> usize {
        let surplus = self.packets.len().saturating_sub(capacity);
        if keep_newest {
            self.packets.drain(..surplus);
            self.count_taken(surplus);
        } else {
            self.packets.truncate(capacity);
            self.count_taken_from_end(surplus, self.packets.len());
        }
        surplus
    }

    pub(super) fn report(&self, waiting: &mut Waiting) {
        let stacked = (self.stacked > 0).then_some(self.stacked_since);
        waiting.add(self.stacked, stacked);
        waiting.add(self.packets.len() - self.stacked, self.age.oldest());
    }
}
