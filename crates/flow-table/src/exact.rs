//! An exact-match table of fixed capacity: two cache misses a lookup, both of which can be prefetched.
//!
//! An [index](HandleIndex) leads from the hash of a key to its handle, and the handle to a slot with the whole key.
//!
//! A table with far fewer keys than before shrinks in steps, which its owner makes when it has time: buckets are joined in pairs,
//! slots at the end move into free ones, and memory that holds nothing is given back to the system.

use std::ops::Range;

use crate::handle_index::{BUCKET, HandleIndex, SPARSE, WAYS};
use crate::path::PathId;
use crate::tuple::fold;

/// Pairs of buckets that are joined in a step, and slots that are looked at, moved or cut off. Each takes up to 0.2 us.
const JOINS: usize = 256;
const MOVES: usize = 256;

/// Slots of which a table that is so small does not get rid.
const MIN_SLOTS: usize = 4096;

/// The path of a slot that is free.
const FREE: u32 = u32::MAX;

/// No slot.
const NONE: u32 = u32::MAX;

/// Most keys of a table: a handle has 32 bits.
const MAX_CAPACITY: usize = 1 << 30;

/// How soon a table is to be cared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Care {
    /// A step would shrink it.
    Soon,
    /// Unused keys may be removed.
    Later,
}

/// A key, its decision, and words that the owner of the cache notes of it.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Slot<const N: usize, const NOTES: usize = 0> {
    pub(crate) key: [u64; N],
    /// Zero if nothing is noted.
    pub(crate) notes: [u64; NOTES],
    pub(crate) path: PathId,
    /// The latest addition of an entry after which the decision was found right.
    pub(crate) stamp: u32,
    /// When it was last used, in seconds.
    pub(crate) used: u32,
}

/// The hash of a key.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hash(u64);

impl Hash {
    #[inline(always)]
    pub(crate) fn new<const N: usize>(key: &[u64; N], seed: u64) -> Self {
        const ODD: [u64; 4] =
            [0x9e37_79b9_7f4a_7c15, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3];
        let mut hash = seed;
        let (pairs, rest) = key.as_chunks::<2>();
        for (at, pair) in pairs.iter().enumerate() {
            // The products do not depend on each other.
            let secret = ODD[at % 4].rotate_left(at as u32 * 7);
            hash ^= fold(pair[0] ^ seed ^ secret, pair[1] ^ seed.rotate_left(29) ^ secret.rotate_left(17));
        }
        for word in rest {
            hash ^= word;
        }
        Self(fold(hash ^ ODD[2], seed | 1) ^ hash.rotate_left(32))
    }

    #[inline(always)]
    fn tag(self) -> u32 {
        HandleIndex::tag(self.0)
    }
}

/// A table of at most `capacity` keys.
pub(crate) struct ExactTable<const N: usize, const NOTES: usize = 0> {
    index: HandleIndex,
    slots: Vec<Slot<N, NOTES>>,
    /// The first free slot. Free slots are a list: `stamp` is the handle of the next one, and `used` that of the one before.
    free: u32,
    /// The number of keys.
    keys: usize,
    /// While slots at the end are cut off: the number of slots that remain.
    wanted: Option<usize>,
    /// Where the search for free slots among those continues.
    low: u32,
    /// The most buckets and slots that were used since memory was given back.
    touched: [usize; 2],
    capacity: usize,
    seed: u64,
    /// Where the search for old slots continues.
    hand: usize,
    /// Keys that were displaced before they were old.
    pub(crate) evicted: u64,
}

impl<const N: usize, const NOTES: usize> ExactTable<N, NOTES> {
    /// The most memory that a table takes, in bytes.
    pub(crate) fn max_bytes(capacity: usize) -> usize {
        let slots = capacity.max(WAYS).saturating_mul(size_of::<Slot<N, NOTES>>());
        slots.saturating_add(HandleIndex::max_bytes(capacity))
    }

    /// An empty table. The system provides its memory when it is first used.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        let capacity = capacity.clamp(WAYS, MAX_CAPACITY);
        Self {
            index: HandleIndex::new(capacity),
            slots: Vec::with_capacity(capacity),
            free: NONE,
            keys: 0,
            wanted: None,
            low: 0,
            touched: [0; 2],
            capacity,
            seed,
            hand: 0,
            evicted: 0,
        }
    }

    /// The memory of the buckets and of the slots, which are read at random places.
    pub(crate) fn memory(&self) -> [Range<*const u8>; 2] {
        let slots = self.slots.as_ptr();
        [self.index.memory(), slots.cast()..slots.wrapping_add(self.slots.capacity()).cast()]
    }

    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u64; N]) -> Hash {
        Hash::new(key, self.seed)
    }

    #[inline(always)]
    pub(crate) fn prefetch_bucket(&self, hash: Hash) {
        self.index.prefetch(hash.tag());
    }

    /// The handle of the first slot in the first bucket that may have this key; `None` if there is none. Prefetches it.
    #[inline(always)]
    pub(crate) fn candidate(&self, hash: Hash) -> Option<u32> {
        let handle = self.index.candidate(hash.tag())?;
        let slot = self.slots.get(handle as usize)?;
        packet::prefetch(slot);
        if size_of::<Slot<N, NOTES>>() > 64
            && let Some(last) = slot.key.last()
        {
            packet::prefetch(last);
        }
        Some(handle)
    }

    #[inline(always)]
    pub(crate) fn slot(&self, handle: u32) -> Option<&Slot<N, NOTES>> {
        self.slots.get(handle as usize)
    }

    #[inline(always)]
    pub(crate) fn slot_mut(&mut self, handle: u32) -> Option<&mut Slot<N, NOTES>> {
        self.slots.get_mut(handle as usize)
    }

    /// The handle of a key, by a full search.
    pub(crate) fn find(&self, hash: Hash, key: &[u64; N]) -> Option<u32> {
        let is_it = |handle| self.slot(handle).is_some_and(|slot| is_equal(&slot.key, key));
        self.index.find(hash.tag(), is_it)
    }

    /// Adds a key that is not in the table. Displaces another one if the table or both buckets are full.
    pub(crate) fn insert(&mut self, hash: Hash, slot: Slot<N, NOTES>) {
        if self.len() >= self.capacity {
            self.displace_oldest();
        }
        self.index.grow(self.keys);
        let handle = match self.free {
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            handle => {
                self.unlink(handle);
                self.slots[handle as usize] = slot;
                handle
            }
        };
        self.keys += 1;
        if !self.index.insert(hash.tag(), handle) {
            let used = |handle: &u32| self.slot(*handle).map_or(0, |slot| slot.used);
            if let Some(oldest) = self.index.neighbours(hash.tag()).min_by_key(used) {
                self.evicted += 1;
                self.remove(oldest);
            }
            self.index.insert(hash.tag(), handle);
        }
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, handle: u32) {
        let Some(slot) = self.slot(handle) else { return };
        let tag = self.hash(&slot.key).tag();
        if self.index.remove(tag, handle) {
            // The slot keeps its key; no bucket leads to it.
            self.link(handle);
            self.keys -= 1;
        }
    }

    /// Visits `count` slots in turn, and removes those for which `is_old` holds.
    pub(crate) fn sweep(&mut self, count: usize, is_old: impl Fn(&Slot<N, NOTES>) -> bool) -> usize {
        let mut removed = 0;
        for _ in 0..count.min(self.slots.len()) {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            if self.slots.get(self.hand).is_some_and(|slot| slot.path.slot != FREE && is_old(slot)) {
                self.remove(self.hand as u32);
                removed += 1;
            }
        }
        removed
    }

    pub(crate) fn clear(&mut self) {
        self.note_touched();
        self.index.clear();
        self.slots.clear();
        (self.free, self.keys, self.wanted) = (NONE, 0, None);
    }

    /// Makes a step towards fewer buckets and slots, if the keys need far fewer. A step takes some tens of microseconds.
    pub(crate) fn shrink(&mut self) {
        self.note_touched();
        for _ in 0..JOINS {
            if !self.index.is_sparse(self.keys) {
                break;
            }
            for handle in self.index.join() {
                self.evicted += 1;
                self.link(handle);
                self.keys -= 1;
            }
        }
        if self.wanted.is_none() && self.is_sparse() {
            (self.wanted, self.low) = (Some((2 * self.keys).max(MIN_SLOTS)), 0);
        }
        for _ in 0..MOVES {
            let Some(wanted) = self.wanted else { return };
            self.wanted = match self.slots.last().copied() {
                Some(last) if self.slots.len() > wanted && self.cut_off(&last, wanted) => Some(wanted),
                // It is done, or there are many keys again.
                _ => None,
            };
        }
    }

    /// Whether a step would shrink the table, or memory could be given back: then `Soon`. Whether unused keys are worth a search.
    pub(crate) fn care(&self) -> Option<Care> {
        let used = [self.index.used(), self.slots.len()];
        let is_idle = self.touched.iter().zip(used).any(|(touched, used)| *touched > used);
        if self.wanted.is_some() || self.is_sparse() || self.index.is_sparse(self.keys) || is_idle {
            return Some(Care::Soon);
        }
        (self.slots.len() > MIN_SLOTS).then_some(Care::Later)
    }

    fn is_sparse(&self) -> bool {
        self.slots.len() > MIN_SLOTS && self.keys * SPARSE < self.slots.len()
    }

    /// Memory of buckets and slots that holds nothing but is in use: zeros, and the rest of a vector. At most so many bytes of each,
    /// each once, and none while the table shrinks.
    pub(crate) fn take_idle_memory(&mut self, most: usize) -> [Range<*const u8>; 2] {
        self.note_touched();
        let shrinks = self.wanted.is_some() || self.is_sparse() || self.index.is_sparse(self.keys);
        let areas = [
            (self.index.start(), BUCKET * size_of::<u32>(), self.index.used()),
            (self.slots.as_ptr().cast::<u8>(), size_of::<Slot<N, NOTES>>(), self.slots.len()),
        ];
        let mut take = |at: usize| {
            let (start, size, used): (*const u8, usize, usize) = areas[at];
            let end = self.touched[at];
            let begin = if shrinks { end } else { used.max(end.saturating_sub(most / size)) };
            self.touched[at] = begin;
            start.wrapping_add(begin * size)..start.wrapping_add(end * size)
        };
        [take(0), take(1)]
    }

    fn note_touched(&mut self) {
        let used = [self.index.used(), self.slots.len()];
        self.touched = [self.touched[0].max(used[0]), self.touched[1].max(used[1])];
    }

    /// Cuts the last slot off, or looks for a place for its key among those that remain. Returns false if there is none.
    fn cut_off(&mut self, slot: &Slot<N, NOTES>, wanted: usize) -> bool {
        let last = (self.slots.len() - 1) as u32;
        if slot.path.slot == FREE {
            self.unlink(last);
            self.slots.pop();
            return true;
        }
        if self.slots.get(self.low as usize).is_some_and(|low| low.path.slot == FREE) {
            self.index.replace(self.hash(&slot.key).tag(), last, self.low);
            self.unlink(self.low);
            self.slots[self.low as usize] = *slot;
            self.slots.pop();
        }
        self.low += 1;
        (self.low as usize) < wanted
    }

    /// Adds a slot to the list of free ones.
    fn link(&mut self, handle: u32) {
        let next = std::mem::replace(&mut self.free, handle);
        if let Some(next) = self.slots.get_mut(next as usize) {
            next.used = handle;
        }
        if let Some(slot) = self.slots.get_mut(handle as usize) {
            (slot.path.slot, slot.stamp, slot.used) = (FREE, next, NONE);
        }
    }

    /// Takes a slot out of the list of free ones.
    fn unlink(&mut self, handle: u32) {
        let Some(&Slot { stamp: next, used: previous, .. }) = self.slots.get(handle as usize) else { return };
        match self.slots.get_mut(previous as usize) {
            Some(previous) => previous.stamp = next,
            None => self.free = next,
        }
        if let Some(next) = self.slots.get_mut(next as usize) {
            next.used = previous;
        }
    }

    /// Removes the least recently used of a few slots.
    fn displace_oldest(&mut self) {
        let from = self.hand;
        let candidates = (0..WAYS).map(|distance| (from + 1 + distance) % self.slots.len().max(1));
        let oldest = candidates.min_by_key(|at| self.slots.get(*at).map_or(u32::MAX, |slot| slot.used));
        self.hand = (from + WAYS) % self.slots.len().max(1);
        if let Some(oldest) = oldest {
            self.evicted += 1;
            self.remove(oldest as u32);
        }
    }
}

/// Compares keys without a branch for each word, and without a call.
#[inline(always)]
pub(crate) fn is_equal<const N: usize>(one: &[u64; N], other: &[u64; N]) -> bool {
    one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle_index::{LOAD, MIN_BUCKETS, SPLITS, buckets};

    fn slot(number: u64) -> Slot<5> {
        let path = PathId { slot: number as u32, generation: 0 };
        Slot { key: [number; 5], notes: [], path, stamp: 0, used: 0 }
    }

    /// The paths of these keys, and of those in between that were never added or are gone.
    fn check(table: &ExactTable<5>, keys: impl Iterator<Item = u64>, are_there: bool) {
        for key in keys {
            let found = table.find(table.hash(&[key; 5]), &[key; 5]).and_then(|handle| table.slot(handle));
            assert_eq!(found.map(|slot| slot.path.slot), are_there.then_some(key as u32), "key {key}");
        }
    }

    #[test]
    fn keys_are_found_while_buckets_are_split() {
        let capacity = 20 * MIN_BUCKETS;
        let mut table = ExactTable::<5>::new(capacity, 7);
        for number in 0..capacity as u64 {
            table.insert(table.hash(&[number; 5]), slot(number));
            if number % 1499 == 0 {
                check(&table, 0..=number, true);
                check(&table, number + 1..number + 9, false);
            }
            let (buckets, split) = table.index.size();
            assert!(split < buckets && table.len() <= (buckets + SPLITS) * (LOAD + 1));
        }
        // Each doubling is over before the next one, and none is displaced.
        assert_eq!(table.index.size(), (buckets(capacity), 0));
        assert_eq!((table.len(), table.evicted), (capacity, 0));
        check(&table, 0..capacity as u64, true);
        table.sweep(capacity, |slot| slot.key[0] % 3 == 0);
        check(&table, (0..capacity as u64).filter(|key| key % 3 == 0), false);
        check(&table, (0..capacity as u64).filter(|key| key % 3 != 0), true);
        // What is full loses no more than it gets.
        for number in 0..capacity as u64 {
            table.insert(table.hash(&[number + (1 << 32); 5]), slot(number + (1 << 32)));
        }
        assert_eq!(table.len(), capacity);
        table.clear();
        assert!(table.len() == 0 && table.index.is_zero());
        table.insert(table.hash(&[5; 5]), slot(5));
        check(&table, 5..6, true);
    }

    #[test]
    fn a_table_that_has_become_sparse_shrinks_and_grows_again() {
        let capacity = 64 * MIN_BUCKETS;
        let mut table = ExactTable::<5>::new(capacity, 7);
        let fill = |table: &mut ExactTable<5>, keys: Range<u64>| {
            keys.for_each(|key| table.insert(table.hash(&[key; 5]), slot(key)));
        };
        let idle = |table: &mut ExactTable<5>| {
            table.take_idle_memory(usize::MAX).map(|memory| memory.end.addr() - memory.start.addr())
        };
        fill(&mut table, 0..capacity as u64);
        let full = table.index.size().0;
        assert_eq!((full, table.slots.len()), (buckets(capacity), capacity));
        assert_eq!(idle(&mut table), [0, 0]);
        // Enough keys to need what there is.
        table.sweep(capacity, |slot| slot.key[0] % 7 != 0);
        table.shrink();
        assert_eq!((table.index.size().0, table.slots.len()), (full, capacity));
        table.sweep(capacity, |slot| slot.key[0] % 32 != 0);
        let kept = |key: &u64| *key < capacity as u64 && key.is_multiple_of(7 * 32);
        let count = (0..capacity as u64).filter(kept).count();
        let mut steps = 0u32;
        while table.wanted.is_some() || table.is_sparse() || table.index.is_sparse(table.keys) {
            assert_eq!((table.care(), idle(&mut table)), (Some(Care::Soon), [0, 0]));
            let before = (table.index.used(), table.slots.len());
            table.shrink();
            let after = (table.index.used(), table.slots.len());
            assert!(before.0 - after.0 <= JOINS && before.1 - after.1 <= MOVES, "{before:?} {after:?}");
            steps += 1;
            assert!(steps < 1000, "{} buckets, {} slots", after.0, after.1);
            // What is added or removed meanwhile stays so.
            if steps == 100 {
                fill(&mut table, capacity as u64..capacity as u64 + 50);
                table.sweep(capacity, |slot| slot.key[0] >= capacity as u64 + 30);
            }
        }
        assert_eq!((table.index.size().0, table.len()), (MIN_BUCKETS, count + 30));
        assert!((MIN_SLOTS..=MIN_SLOTS + 50).contains(&table.slots.len()), "{}", table.slots.len());
        check(&table, (0..capacity as u64).filter(kept), true);
        check(&table, capacity as u64..capacity as u64 + 30, true);
        check(&table, (0..capacity as u64).filter(|key| !kept(key)), false);
        check(&table, capacity as u64 + 30..capacity as u64 + 99, false);
        assert_eq!(table.evicted, 0);
        // All that was cut off, and nothing else, is idle, and only once.
        let slots = (capacity - table.slots.len()) * size_of::<Slot<5>>();
        assert_eq!(idle(&mut table), [(full - MIN_BUCKETS) * BUCKET * 4, slots]);
        assert!(table.index.is_clean());
        assert_eq!((table.care(), idle(&mut table)), (None, [0, 0]));
        // Each slot is in use or in the list of free ones.
        let mut free = 0;
        let mut handle = table.free;
        while let Some(slot) = table.slot(handle) {
            assert_eq!(slot.path.slot, FREE);
            (free, handle) = (free + 1, slot.stamp);
        }
        assert_eq!(free + table.len(), table.slots.len());
        let present = table.len() as u64;
        fill(&mut table, 1 << 32..(1 << 32) + capacity as u64 - present);
        assert_eq!((table.index.size().0, table.len(), table.evicted), (full, capacity, 0));
        check(&table, (0..capacity as u64).filter(kept), true);
        check(&table, 1 << 32..(1 << 32) + capacity as u64 - present, true);
        table.clear();
        let mut bytes = [0; 2];
        while table.care().is_some() {
            let some = table.take_idle_memory(1 << 18).map(|memory| memory.end.addr() - memory.start.addr());
            assert!(some.iter().all(|some| *some <= 1 << 18));
            bytes = [bytes[0] + some[0], bytes[1] + some[1]];
        }
        assert_eq!(bytes, [(full - MIN_BUCKETS) * BUCKET * 4, capacity * size_of::<Slot<5>>()]);
    }
}
