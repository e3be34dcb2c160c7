//! One flow table: its tuples, and the search for the entry that a key matches.

use std::collections::HashMap;
use std::time::Duration;

use crate::key::Key;
use crate::layout::Words;
use crate::path::{NO_ENTRY, PathId};
use crate::tuple::Tuple;
use crate::{EntryFlags, Instructions, Match};

/// An entry as it is stored.
pub(crate) struct StoredEntry {
    pub(crate) matching: Match,
    /// Orders the entries of a table: by priority, then the earlier addition first. Unique.
    pub(crate) rank: u64,
    /// The entry of the same match and next lower priority.
    next: u32,
    pub(crate) owner: crate::Owner,
    pub(crate) table: u8,
    pub(crate) priority: u16,
    pub(crate) cookie: u64,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) hard_timeout: Option<Duration>,
    pub(crate) created: Duration,
    /// When a packet matched it last.
    pub(crate) used: Duration,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) flags: EntryFlags,
    pub(crate) instructions: Instructions,
    /// Paths through the entry, some of which may have ended.
    pub(crate) paths: Vec<PathId>,
}

impl StoredEntry {
    pub(crate) fn new(change: &crate::Change, table: u8, order: u64, now: Duration) -> Self {
        Self {
            matching: change.matching,
            rank: u64::from(change.priority) << 48 | (u64::MAX >> 16) & !order,
            next: NO_ENTRY,
            owner: change.owner,
            table,
            priority: change.priority,
            cookie: change.cookie,
            idle_timeout: change.idle_timeout,
            hard_timeout: change.hard_timeout,
            created: now,
            used: now,
            packets: 0,
            bytes: 0,
            flags: change.flags,
            instructions: change.instructions.clone(),
            paths: Vec::new(),
        }
    }
}

/// All entries of a pipeline, by slot.
#[derive(Default)]
pub(crate) struct Entries {
    slots: Vec<Option<StoredEntry>>,
    free: Vec<u32>,
}

impl Entries {
    pub(crate) fn insert(&mut self, entry: StoredEntry) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(entry);
            return slot;
        }
        self.slots.push(Some(entry));
        (self.slots.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<StoredEntry> {
        let entry = self.slots.get_mut(slot as usize)?.take();
        if entry.is_some() {
            self.free.push(slot);
        }
        entry
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&StoredEntry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut StoredEntry> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &StoredEntry)> {
        self.slots.iter().enumerate().filter_map(|(slot, entry)| Some((slot as u32, entry.as_ref()?)))
    }

    /// Number of slots, used or not.
    pub(crate) fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The rank of an entry; zero, which is below all, for `NO_ENTRY`.
    fn rank(&self, slot: u32) -> u64 {
        self.get(slot).map_or(0, |entry| entry.rank)
    }
}

/// A flow table (OpenFlow 1.3.5, 5.2).
#[derive(Default)]
pub(crate) struct Table {
    tuples: Vec<Option<Tuple>>,
    free: Vec<u32>,
    by_mask: HashMap<Words, u32>,
    /// Tuples by descending highest priority.
    by_priority: Vec<u32>,
    /// Tuples by descending number of their latest addition.
    by_addition: Vec<u32>,
    /// Packets that were looked up.
    pub(crate) lookups: u64,
    /// Packets that matched an entry.
    pub(crate) matches: u64,
}

impl Table {
    /// The entry that a key matches, or `NO_ENTRY`.
    pub(crate) fn find(&self, entries: &Entries, key: &Key, seed: u64) -> u32 {
        let (mut best, mut best_rank) = (NO_ENTRY, 0);
        for tuple in self.by_priority.iter().filter_map(|&at| self.tuple(at)) {
            // An entry of the same priority may have been added before.
            if tuple.max_priority.is_none_or(|priority| u64::from(priority) < best_rank >> 48) {
                break;
            }
            if let Some((slot, rank)) = find_in(tuple, entries, key, seed)
                && (best == NO_ENTRY || rank > best_rank)
            {
                (best, best_rank) = (slot, rank);
            }
        }
        best
    }

    /// Whether an entry that was added after the addition numbered `stamp` takes the key from the entry `decided`.
    pub(crate) fn is_superseded(
        &self,
        entries: &Entries,
        key: &Key,
        seed: u64,
        decided: u32,
        stamp: u32,
    ) -> bool {
        let rank = entries.rank(decided);
        for tuple in self.by_addition.iter().filter_map(|&at| self.tuple(at)) {
            if tuple.added <= stamp {
                return false;
            }
            if tuple.max_priority.is_some_and(|priority| u64::from(priority) >= rank >> 48)
                && find_in(tuple, entries, key, seed)
                    .is_some_and(|(_, found)| decided == NO_ENTRY || found > rank)
            {
                return true;
            }
        }
        false
    }

    /// Whether the table has entries with the mask of this match.
    pub(crate) fn has_mask(&self, matching: &Match) -> bool {
        self.by_mask.contains_key(&matching.mask)
    }

    /// Number of different masks.
    pub(crate) fn masks(&self) -> usize {
        self.by_mask.len()
    }

    /// The entry with this match and priority.
    pub(crate) fn find_strict(
        &self,
        entries: &Entries,
        matching: &Match,
        priority: u16,
        seed: u64,
    ) -> Option<u32> {
        let tuple = self.tuple(*self.by_mask.get(&matching.mask)?)?;
        let mut slot = head(tuple, entries, matching, seed)?;
        loop {
            let entry = entries.get(slot)?;
            if entry.priority == priority {
                return Some(slot);
            }
            slot = entry.next;
        }
    }

    /// Whether an entry of this priority can match the same packet.
    pub(crate) fn has_overlap(&self, entries: &Entries, table: u8, matching: &Match, priority: u16) -> bool {
        let has_priority = self.tuples.iter().flatten().any(|tuple| tuple.has_priority(priority));
        has_priority
            && entries.iter().any(|(_, entry)| {
                entry.table == table && entry.priority == priority && entry.matching.overlaps(matching)
            })
    }

    /// Enters the entry in `slot`, whose match and priority no other entry has, as the addition numbered `added`.
    pub(crate) fn insert(&mut self, entries: &mut Entries, slot: u32, added: u32, seed: u64) {
        let Some(entry) = entries.get(slot) else { return };
        let (matching, priority, rank) = (entry.matching, entry.priority, entry.rank);
        let at = self.by_mask.get(&matching.mask).copied().unwrap_or_else(|| self.add_tuple(&matching.mask));
        let Some(tuple) = self.tuples.get_mut(at as usize).and_then(Option::as_mut) else { return };
        let hash = tuple.hash(&matching.value, seed);
        match head(tuple, entries, &matching, seed) {
            Some(first) if entries.rank(first) > rank => {
                let mut before = first;
                let mut next = entries.get(before).map_or(NO_ENTRY, |entry| entry.next);
                while entries.rank(next) > rank {
                    before = next;
                    next = entries.get(before).map_or(NO_ENTRY, |entry| entry.next);
                }
                set_next(entries, before, slot);
                set_next(entries, slot, next);
            }
            first => {
                if let Some(first) = first {
                    tuple.index.remove(hash, first);
                }
                tuple.index.insert(hash, slot);
                set_next(entries, slot, first.unwrap_or(NO_ENTRY));
            }
        }
        let before = tuple.max_priority;
        tuple.enter(priority);
        tuple.added = added;
        let max_priority = tuple.max_priority;
        if let Some(position) = self.by_addition.iter().position(|&other| other == at) {
            self.by_addition[..=position].rotate_right(1);
        }
        if max_priority != before {
            self.reorder(at);
        }
    }

    /// Takes out the entry in `slot`, which is still in `entries`.
    pub(crate) fn remove(&mut self, entries: &mut Entries, slot: u32, seed: u64) {
        let Some(entry) = entries.get(slot) else { return };
        let (matching, priority, next) = (entry.matching, entry.priority, entry.next);
        let Some(&at) = self.by_mask.get(&matching.mask) else { return };
        let Some(tuple) = self.tuples.get_mut(at as usize).and_then(Option::as_mut) else { return };
        let hash = tuple.hash(&matching.value, seed);
        match head(tuple, entries, &matching, seed) {
            Some(first) if first == slot => {
                tuple.index.remove(hash, slot);
                if next != NO_ENTRY {
                    tuple.index.insert(hash, next);
                }
            }
            Some(mut before) => {
                while let Some(entry) = entries.get(before)
                    && entry.next != slot
                    && entry.next != NO_ENTRY
                {
                    before = entry.next;
                }
                set_next(entries, before, next);
            }
            None => {}
        }
        let before = tuple.max_priority;
        tuple.leave(priority);
        match tuple.max_priority {
            None => {
                self.by_mask.remove(&matching.mask);
                self.by_priority.retain(|&other| other != at);
                self.by_addition.retain(|&other| other != at);
                self.tuples[at as usize] = None;
                self.free.push(at);
            }
            after if after != before => self.reorder(at),
            _ => {}
        }
    }

    /// Forgets the numbers of all additions.
    pub(crate) fn forget_additions(&mut self) {
        self.tuples.iter_mut().flatten().for_each(|tuple| tuple.added = 0);
    }

    fn tuple(&self, at: u32) -> Option<&Tuple> {
        self.tuples.get(at as usize)?.as_ref()
    }

    fn add_tuple(&mut self, mask: &Words) -> u32 {
        let tuple = Some(Tuple::new(mask));
        let at = match self.free.pop() {
            Some(at) => {
                self.tuples[at as usize] = tuple;
                at
            }
            None => {
                self.tuples.push(tuple);
                (self.tuples.len() - 1) as u32
            }
        };
        self.by_mask.insert(*mask, at);
        self.by_priority.push(at);
        self.by_addition.push(at);
        at
    }

    /// Moves a tuple to its place by highest priority.
    fn reorder(&mut self, at: u32) {
        self.by_priority.retain(|&other| other != at);
        let priority = |at: u32| self.tuple(at).and_then(|tuple| tuple.max_priority);
        let own = priority(at);
        let position = self.by_priority.partition_point(|&other| priority(other) >= own);
        self.by_priority.insert(position, at);
    }
}

/// The entry of highest priority in a tuple that a key matches, and its rank.
#[inline]
fn find_in(tuple: &Tuple, entries: &Entries, key: &Key, seed: u64) -> Option<(u32, u64)> {
    let hash = tuple.hash(&key.words, seed);
    let mut rank = 0;
    let slot = tuple.index.find(hash, |slot| {
        entries.get(slot).is_some_and(|entry| {
            rank = entry.rank;
            tuple.matches(&key.words, &entry.matching.value)
        })
    })?;
    Some((slot, rank))
}

/// The entry of highest priority with this match.
fn head(tuple: &Tuple, entries: &Entries, matching: &Match, seed: u64) -> Option<u32> {
    let hash = tuple.hash(&matching.value, seed);
    tuple
        .index
        .find(hash, |slot| entries.get(slot).is_some_and(|entry| entry.matching.value == matching.value))
}

fn set_next(entries: &mut Entries, slot: u32, next: u32) {
    if let Some(entry) = entries.get_mut(slot) {
        entry.next = next;
    }
}
