//! Deadlines of entries, in order, with a refresh that costs nothing.
//!
//! A heap of four-fold branching holds every entry with the deadline that was known when it was last moved. A
//! packet puts its flow's deadline off by writing the new one into the flow's own record, and leaves the heap alone:
//! the heap learns of it when the entry comes to its top. So the heap's deadlines are never later than the true
//! ones. Only a deadline that comes nearer (a connection that ends) must be told at once: `hasten`.

use alloc::vec::Vec;

/// Children of a heap entry: four of them share a cache line.
const FAN: usize = 4;

/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

/// Entries that `earliest` corrects before it takes the best one it saw. Bounds the time of one eviction when all
/// of a million flows were refreshed since the last.
const CORRECTIONS: usize = 256;

#[derive(Clone, Copy)]
struct Timed {
    /// In the owner's ticks; at or before the entry's true deadline.
    deadline: u64,
    handle: u32,
}

/// Deadlines of entries that are known by their handles.
///
/// A tick is whatever the owner counts in. Functions that need true deadlines take a function that reads them from
/// the entries: `actual(handle)`, which must be the deadline that was last passed or a later one.
#[derive(Default)]
pub struct Timeouts {
    heap: Vec<Timed>,
    /// Where each handle is in the heap.
    places: Vec<u32>,
}

impl Timeouts {
    /// No deadlines.
    pub fn new() -> Self {
        Self::default()
    }

    /// No deadlines, with room for handles below `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        Self { heap: Vec::with_capacity(entries), places: alloc::vec![NOWHERE; entries] }
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
        self.place(handle).is_some()
    }

    /// Sets a handle's deadline, whether it has one or not.
    pub fn set(&mut self, handle: u32, deadline: u64) {
        match self.place(handle) {
            Some(place) => self.change(place, deadline),
            None => {
                if self.places.len() <= handle as usize {
                    self.places.resize(handle as usize + 1, NOWHERE);
                }
                self.heap.push(Timed { deadline, handle });
                self.rise(self.heap.len() - 1);
            }
        }
    }

    /// Tells that a handle's deadline is now `deadline`, if that is before the one known here.
    ///
    /// A deadline that was put off needs no call.
    #[inline]
    pub fn hasten(&mut self, handle: u32, deadline: u64) {
        if let Some(place) = self.place(handle)
            && deadline < self.heap[place].deadline
        {
            self.change(place, deadline);
        }
    }

    /// Forgets a handle's deadline; false if it had none.
    pub fn remove(&mut self, handle: u32) -> bool {
        let Some(place) = self.place(handle) else { return false };
        let last = self.heap.len() - 1;
        self.heap.swap(place, last);
        self.heap.truncate(last);
        self.places[handle as usize] = NOWHERE;
        if place < last {
            self.settle(place);
        }
        true
    }

    /// Forgets all deadlines.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Takes out the handle with the earliest deadline, if that is at or before `now`.
    ///
    /// Called until it returns `None`, it gives all that have expired, the earliest first.
    pub fn pop_expired(&mut self, now: u64, actual: impl Fn(u32) -> u64) -> Option<u32> {
        let mut budget = usize::MAX;
        self.pop_expired_within(now, &mut budget, actual)
    }

    /// As `pop_expired`, but stops when it has looked at `budget` entries, which it counts down: so that the time of
    /// one call is bounded. With a budget of 0 left it says nothing about those that remain.
    pub fn pop_expired_within(
        &mut self,
        now: u64,
        budget: &mut usize,
        actual: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        while *budget > 0 {
            *budget -= 1;
            let Timed { deadline, handle } = *self.heap.first()?;
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
    /// It is exact as long as no more than 256 of the entries that seem earlier have been put off; beyond, it is the
    /// earliest of those 256.
    pub fn earliest(&mut self, actual: impl Fn(u32) -> u64) -> Option<(u32, u64)> {
        let mut best: Option<(u32, u64)> = None;
        for _ in 0..CORRECTIONS {
            let Timed { deadline, handle } = *self.heap.first()?;
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

    /// All handles, in no order.
    pub fn handles(&self) -> impl Iterator<Item = u32> {
        self.heap.iter().map(|timed| timed.handle)
    }

    #[inline]
    fn place(&self, handle: u32) -> Option<usize> {
        let place = *self.places.get(handle as usize)?;
        (place != NOWHERE).then_some(place as usize)
    }

    fn change(&mut self, place: usize, deadline: u64) {
        self.heap[place].deadline = deadline;
        self.settle(place);
    }

    /// Moves an entry up or down to where it belongs.
    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let timed = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / FAN;
            if self.heap[parent].deadline <= timed.deadline {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, timed);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let timed = self.heap[place];
        loop {
            let first = place * FAN + 1;
            let children = first..self.heap.len().min(first + FAN);
            let Some(least) = children.min_by_key(|&child| self.heap[child].deadline) else { break };
            if self.heap[least].deadline >= timed.deadline {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, timed);
    }

    fn put(&mut self, place: usize, timed: Timed) {
        self.heap[place] = timed;
        self.places[timed.handle as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use random::Random;

    #[test]
    fn expires_in_order_whatever_was_refreshed() {
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
                        timeouts.hasten(handle, deadline);
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
