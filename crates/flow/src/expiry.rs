//! Deadlines of entries in a priority queue, with free refreshes.
//!
//! A 4-ary heap holds every entry with a lower bound of its deadline. To postpone a flow's deadline, a packet writes
//! the new deadline into the flow's own record and does not touch the heap; the heap reads it when the entry reaches
//! the top. Only an earlier deadline (a connection that closes) must be reported at once, with `set_if_earlier`.

use alloc::vec::Vec;

/// Children per heap entry: four of them share a cache line.
const ARITY: usize = 4;

/// The position of a handle that is not in the heap.
const UNQUEUED: u32 = u32::MAX;

/// Postponed entries that `earliest` re-sorts before it returns the best one seen. Bounds the time of one eviction when
/// all of a million flows were refreshed since the last one.
const MAX_CORRECTIONS: usize = 256;

#[derive(Clone, Copy)]
struct HeapEntry {
    /// In the owner's ticks; at or before the entry's true deadline.
    deadline: u64,
    handle: u32,
}

/// Deadlines of entries, which are identified by handles.
///
/// The owner defines the tick. Functions that need true deadlines take a function that reads them from the entries:
/// `actual(handle)`. It must return the deadline last passed here, or a later one.
#[derive(Default)]
pub struct Timeouts {
    heap: Vec<HeapEntry>,
    /// The heap position of each handle.
    positions: Vec<u32>,
}

impl Timeouts {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty queue with room for handles below `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        Self { heap: Vec::with_capacity(entries), positions: alloc::vec![UNQUEUED; entries] }
    }

    /// Number of deadlines.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is no deadline.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Whether a handle has a deadline.
    pub fn contains(&self, handle: u32) -> bool {
        self.position(handle).is_some()
    }

    /// Sets or replaces a handle's deadline.
    pub fn set(&mut self, handle: u32, deadline: u64) {
        match self.position(handle) {
            Some(position) => self.change(position, deadline),
            None => {
                if self.positions.len() <= handle as usize {
                    self.positions.resize(handle as usize + 1, UNQUEUED);
                }
                self.heap.push(HeapEntry { deadline, handle });
                self.sift_up(self.heap.len() - 1);
            }
        }
    }

    /// Moves a handle's deadline forward to `deadline`, if that is earlier than the recorded one.
    ///
    /// A postponed deadline needs no call.
    #[inline]
    pub fn set_if_earlier(&mut self, handle: u32, deadline: u64) {
        if let Some(position) = self.position(handle)
            && deadline < self.heap[position].deadline
        {
            self.change(position, deadline);
        }
    }

    /// Removes a handle's deadline; false if it had none.
    pub fn remove(&mut self, handle: u32) -> bool {
        let Some(position) = self.position(handle) else { return false };
        let last = self.heap.len() - 1;
        self.heap.swap(position, last);
        self.heap.truncate(last);
        self.positions[handle as usize] = UNQUEUED;
        if position < last {
            self.restore_order(position);
        }
        true
    }

    /// Removes all deadlines.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Removes and returns the handle with the earliest deadline, if that is at or before `now`.
    ///
    /// Repeated calls until `None` return all expired handles, the earliest first.
    pub fn pop_expired(&mut self, now: u64, actual: impl Fn(u32) -> u64) -> Option<u32> {
        let mut budget = usize::MAX;
        self.pop_expired_within(now, &mut budget, actual)
    }

    /// Like `pop_expired`, but examines at most `budget` entries and counts the budget down, which bounds the time of a
    /// call. When the budget is 0 the result is `None`, and entries may remain expired.
    pub fn pop_expired_within(
        &mut self,
        now: u64,
        budget: &mut usize,
        actual: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        while *budget > 0 {
            *budget -= 1;
            let HeapEntry { deadline, handle } = *self.heap.first()?;
            if deadline > now {
                return None;
            }
            let later = actual(handle);
            if later <= deadline {
                self.remove(handle);
                return Some(handle);
            }
            self.change(0, later);
        }
        None
    }

    /// The handle with the earliest deadline, and that deadline.
    ///
    /// The result is exact if at most 256 entries ahead of it were postponed. Otherwise it is the earliest of 256
    /// postponed entries.
    pub fn earliest(&mut self, actual: impl Fn(u32) -> u64) -> Option<(u32, u64)> {
        let mut best: Option<(u32, u64)> = None;
        for _ in 0..MAX_CORRECTIONS {
            let HeapEntry { deadline, handle } = *self.heap.first()?;
            let later = actual(handle);
            if later <= deadline {
                return Some((handle, deadline));
            }
            if best.is_none_or(|(_, best)| later < best) {
                best = Some((handle, later));
            }
            self.change(0, later);
        }
        best
    }

    /// All handles, in unspecified order.
    pub fn handles(&self) -> impl Iterator<Item = u32> {
        self.heap.iter().map(|entry| entry.handle)
    }

    #[inline]
    fn position(&self, handle: u32) -> Option<usize> {
        let position = *self.positions.get(handle as usize)?;
        (position != UNQUEUED).then_some(position as usize)
    }

    fn change(&mut self, position: usize, deadline: u64) {
        self.heap[position].deadline = deadline;
        self.restore_order(position);
    }

    /// Moves an entry up or down to its position in the heap.
    fn restore_order(&mut self, position: usize) {
        let position = self.sift_up(position);
        self.sift_down(position);
    }

    fn sift_up(&mut self, mut position: usize) -> usize {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if self.heap[parent].deadline <= entry.deadline {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        let entry = self.heap[position];
        loop {
            let first = position * ARITY + 1;
            let children = first..self.heap.len().min(first + ARITY);
            let Some(least) = children.min_by_key(|&child| self.heap[child].deadline) else { break };
            if self.heap[least].deadline >= entry.deadline {
                break;
            }
            self.put(position, self.heap[least]);
            position = least;
        }
        self.put(position, entry);
    }

    fn put(&mut self, position: usize, entry: HeapEntry) {
        self.heap[position] = entry;
        self.positions[entry.handle as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use random::Random;

    #[test]
    fn expires_in_order_despite_refreshes() {
        let mut random = Random::new(11);
        let mut timeouts = Timeouts::new();
        let mut actual: BTreeMap<u32, u64> = BTreeMap::new();
        for now in 0..20_000u64 {
            let handle = random.below(200);
            let deadline = now + 1 + u64::from(random.below(400));
            match random.below(4) {
                0 => {
                    timeouts.set(handle, deadline);
                    actual.insert(handle, deadline);
                }
                1 | 2 => {
                    if let Some(old) = actual.get_mut(&handle) {
                        *old = deadline;
                        timeouts.set_if_earlier(handle, deadline);
                    }
                }
                _ => assert_eq!(timeouts.remove(handle), actual.remove(&handle).is_some()),
            }
            let earliest = actual.values().min().copied();
            assert_eq!(timeouts.earliest(|handle| actual[&handle]).map(|(_, deadline)| deadline), earliest);
            let mut last = 0;
            while let Some(handle) = timeouts.pop_expired(now, |handle| actual[&handle]) {
                let deadline = actual.remove(&handle).unwrap();
                assert!(last <= deadline && deadline <= now);
                last = deadline;
            }
            assert!(actual.values().all(|&deadline| deadline > now));
            assert_eq!(timeouts.len(), actual.len());
            assert!(
                timeouts.handles().all(|handle| timeouts.contains(handle) && actual.contains_key(&handle))
            );
        }
    }

    #[test]
    fn one_eviction_among_a_million_refreshed_is_bounded() {
        let mut timeouts = Timeouts::with_capacity(100_000);
        (0..100_000).for_each(|handle| timeouts.set(handle, u64::from(handle)));
        let reads = core::cell::Cell::new(0);
        let earliest = timeouts.earliest(|handle| {
            reads.set(reads.get() + 1);
            1_000_000 - u64::from(handle)
        });
        assert_eq!((earliest, reads.get()), (Some((255, 999_745)), 256));
    }
}
