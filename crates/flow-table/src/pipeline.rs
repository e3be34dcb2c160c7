//! The pipeline of flow tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use flow::{Key as _, Seed};

use crate::path::{Hot, NO_ENTRY, Paths, Step};
use crate::table::{Entries, StoredEntry, Table};
use crate::{
    Action, ActionSet, Change, Command, EntryFlags, Field, FlowModError, FlowRemoved, Instructions, Key,
    Match, Operation, Owner, Path, PathId, Performer, Program, RemovalReason, Resume, Summary,
};

/// Tables of a pipeline.
pub const TABLES: usize = 64;

/// Memory of an entry: itself, twice because the list of entries doubles; its share of a tuple's index; a link to a path.
const ENTRY_BYTES: usize = 2 * size_of::<StoredEntry>() + 128;

/// Memory of a tuple: its index starts with 16 KB.
const TUPLE_BYTES: usize = 18 << 10;

/// Paths that a pipeline can always hold, a few times those of one batch of lookups.
const MIN_PATHS: usize = 128;

/// Limits of a pipeline. Reaching one makes a change fail, and never drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of all tables.
    pub entries: usize,
    /// Different masks of one table. Each costs a hash lookup for packets that the cache does not know, so that a
    /// controller could otherwise make lookups arbitrarily slow.
    pub masks: usize,
    /// Memory of the entries, in bytes.
    pub bytes: usize,
    /// Different sequences of entries that packets match. The least used ones are forgotten, which costs cache misses.
    pub paths: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 1 << 20, masks: 512, bytes: 1 << 30, paths: 1 << 17 }
    }
}

/// Counters of a table (OpenFlow 1.3.5, 5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableCounters {
    /// Entries.
    pub active: usize,
    /// Packets that were looked up.
    pub lookups: u64,
    /// Packets that matched an entry.
    pub matches: u64,
}

/// An entry and its counters.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Who added it.
    pub owner: Owner,
    /// Its table.
    pub table: u8,
    /// Its match.
    pub matching: &'a Match,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Its idle timeout.
    pub idle_timeout: Option<Duration>,
    /// Its hard timeout.
    pub hard_timeout: Option<Duration>,
    /// The time when it was added.
    pub created: Duration,
    /// The time when a packet last matched it, or when it was added.
    pub used: Duration,
    /// Its flags.
    pub flags: EntryFlags,
    /// Its instructions.
    pub instructions: &'a Instructions,
    /// Packets that it matched; [`NOT_COUNTED`](crate::NOT_COUNTED) if its flags say so.
    pub packets: u64,
    /// Bytes of those packets, or the same.
    pub bytes: u64,
}

impl<'a> Entry<'a> {
    fn of(entry: &'a StoredEntry) -> Self {
        let (packets, bytes) = entry.flags.counters(entry.packets, entry.bytes);
        Self {
            owner: entry.owner,
            table: entry.table,
            matching: &entry.matching,
            priority: entry.priority,
            cookie: entry.cookie,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            created: entry.created,
            used: entry.used,
            flags: entry.flags,
            instructions: &entry.instructions,
            packets,
            bytes,
        }
    }
}

/// A pipeline of 64 flow tables (OpenFlow 1.3.5, 5.1).
///
/// Each table finds entries by tuple space search: one hash table for each mask, in the order of their highest priority.
/// Of two entries with the same priority that match the same packet, the one that was added first is used.
///
/// Times are durations since any fixed moment. They must not decrease.
pub struct Pipeline {
    limits: Limits,
    tables: Vec<Table>,
    entries: Entries,
    paths: Paths,
    /// Deadlines: nanoseconds, the entry's rank, its slot. The deadline of an entry that was used is later.
    deadlines: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Number of the next entry.
    order: u64,
    /// Number of additions of entries.
    added: u32,
    /// Memory of the entries, in bytes.
    bytes: usize,
    seed: u64,
    /// Scratch memory of lookups.
    steps: Vec<Step>,
}

impl Pipeline {
    /// An empty pipeline. The seed comes from the environment's random numbers.
    #[must_use]
    pub fn new(limits: Limits, seed: Seed) -> Self {
        Self {
            limits: Limits { paths: limits.paths.max(MIN_PATHS), ..limits },
            tables: (0..TABLES).map(|_| Table::default()).collect(),
            entries: Entries::default(),
            paths: Paths::default(),
            deadlines: BinaryHeap::new(),
            order: 0,
            added: 0,
            bytes: 0,
            seed: 0u64.hash(seed),
            steps: Vec::with_capacity(TABLES),
        }
    }

    /// Performs a change (OpenFlow 1.3.5, 6.4).
    ///
    /// # Errors
    /// See [`FlowModError`]. Nothing is changed then.
    pub fn apply(&mut self, change: &Change, now: Duration) -> Result<Summary, FlowModError> {
        if change.table.is_some_and(|table| usize::from(table) >= TABLES) {
            return Err(FlowModError::BadTable);
        }
        match change.command {
            Command::Add => {
                self.add(change, change.table.ok_or(FlowModError::BadTable)?, now)?;
                Ok(Summary { added: true, ..Summary::default() })
            }
            Command::Modify | Command::ModifyStrict => {
                let table = change.table.ok_or(FlowModError::BadTable)?;
                check_goto(change, table)?;
                let slots = self.selected(change);
                for &slot in &slots {
                    // The entry's own match decides which fields actions may set.
                    let entry = self.entries.get(slot);
                    entry.map_or(Ok(()), |entry| change.instructions.check(&entry.matching))?;
                }
                self.check_bytes(slots.len().saturating_mul(change.instructions.heap_bytes()))?;
                slots.iter().for_each(|&slot| self.modify(slot, change));
                Ok(Summary { modified: slots.len(), ..Summary::default() })
            }
            Command::Delete | Command::DeleteStrict => {
                let slots = self.selected(change);
                let removed = slots.iter().filter_map(|&slot| self.remove(slot, RemovalReason::Delete, now));
                Ok(Summary { removed: removed.collect(), ..Summary::default() })
            }
        }
    }

    /// Removes at most `limit` entries whose timeouts have passed.
    pub fn expire(&mut self, now: Duration, limit: usize) -> Vec<FlowRemoved> {
        Self::expire_all(&mut [self], now, limit)
    }

    /// As [`expire`](Self::expire), of pipelines that have got the same changes: an entry is idle if it is in all of them. It ends in
    /// all of them, with the sums of its counters. The first one knows the deadlines.
    pub fn expire_all(pipelines: &mut [&mut Self], now: Duration, limit: usize) -> Vec<FlowRemoved> {
        let mut removed = Vec::new();
        let Some((first, others)) = pipelines.split_first_mut() else { return removed };
        while removed.len() < limit
            && let Some(&Reverse((deadline, rank, slot))) = first.deadlines.peek()
            && Duration::from_nanos(deadline) <= now
        {
            first.deadlines.pop();
            if first.entries.get(slot).is_none_or(|entry| entry.rank != rank) {
                continue;
            }
            first.settle_entry(slot);
            let Some(entry) = first.entries.get_mut(slot) else { continue };
            let (table, matching, priority) = (entry.table, entry.matching, entry.priority);
            for other in others.iter_mut() {
                let used = other.entry(table, &matching, priority).map(|entry| entry.used);
                entry.used = entry.used.max(used.unwrap_or_default());
            }
            let hard = entry.hard_timeout.map(|timeout| entry.created.saturating_add(timeout));
            let idle = entry.idle_timeout.map(|timeout| entry.used.saturating_add(timeout));
            let reason = if hard.is_some_and(|deadline| deadline <= now) {
                RemovalReason::HardTimeout
            } else if idle.is_some_and(|deadline| deadline <= now) {
                RemovalReason::IdleTimeout
            } else {
                first.schedule(slot);
                continue;
            };
            let Some(mut sum) = first.remove(slot, reason, now) else { continue };
            for other in others.iter_mut() {
                let slot = other.slot(table, &matching, priority);
                let found = slot.and_then(|slot| other.remove(slot, reason, now));
                found.iter().for_each(|found| sum.add_counters(found));
            }
            removed.push(sum);
        }
        removed
    }

    /// When [`Pipeline::expire`] may remove the next entry.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.peek().map(|Reverse((deadline, ..))| Duration::from_nanos(*deadline))
    }

    /// The path of a packet, by a search of the tables. [`Pipeline::count`] counts the packet.
    pub fn look_up(&mut self, key: &Key) -> PathId {
        self.make_room(1);
        self.look_up_from(key, None)
    }

    /// The path of a packet after the operations of a path that ends with [`Path::resume`]. `key` is the new key.
    ///
    /// Returns `None` if the path no longer exists or does not end so.
    pub fn resume(&mut self, path: PathId, key: &Key) -> Option<PathId> {
        let resume = self.path(path)?.resume()?;
        let mut key = *key;
        key.write_metadata(resume.metadata, resume.metadata_mask);
        // The path itself must not be the one that makes room.
        if let Some(hot) = self.paths.hot.get_mut(path.slot as usize) {
            hot.is_used = true;
        }
        self.make_room(1);
        self.path(path)?;
        Some(self.look_up_from(&key, Some(path)))
    }

    /// A path; `None` if it no longer exists.
    #[must_use]
    pub fn path(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id)
    }

    /// Counts packets of a path, in its entries and tables.
    #[inline(always)]
    pub fn count(&mut self, id: PathId, packets: u64, bytes: u64, now: Duration) {
        self.count_at(id.slot, packets, bytes, nanoseconds(now));
    }

    /// All entries with their counters, in no particular order.
    pub fn entries(&mut self) -> impl Iterator<Item = Entry<'_>> {
        self.settle_all();
        self.entries.iter().map(|(_, entry)| Entry::of(entry))
    }

    /// A part of the entries with their counters: those in `count` places from the place `from`, in no particular order.
    /// Returns the place where the next part begins; `None` after the last one. Entries that are added or removed
    /// between the parts may be left out.
    pub fn entries_from(&mut self, from: u32, count: u32, mut visit: impl FnMut(Entry<'_>)) -> Option<u32> {
        let end = from.saturating_add(count).min(self.entries.places());
        for slot in from..end {
            if self.entries.get(slot).is_some() {
                self.settle_entry(slot);
            }
            if let Some(entry) = self.entries.get(slot) {
                visit(Entry::of(entry));
            }
        }
        (end < self.entries.places()).then_some(end)
    }

    /// The entry with this match and priority, with its counters.
    pub fn entry(&mut self, table: u8, matching: &Match, priority: u16) -> Option<Entry<'_>> {
        let slot = self.slot(table, matching, priority)?;
        self.settle_entry(slot);
        self.entries.get(slot).map(Entry::of)
    }

    fn slot(&self, table: u8, matching: &Match, priority: u16) -> Option<u32> {
        self.tables.get(usize::from(table))?.find_strict(&self.entries, matching, priority, self.seed)
    }

    /// Number of entries of all tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of the entries as the limit counts it, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counters of a table; `None` if there is no such table.
    pub fn table_counters(&mut self, table: u8) -> Option<TableCounters> {
        self.settle_all();
        let counters = self.tables.get(usize::from(table))?;
        let active = self.entries.iter().filter(|(_, entry)| entry.table == table).count();
        Some(TableCounters { active, lookups: counters.lookups, matches: counters.matches })
    }

    /// Counters of all tables, in their order.
    pub fn counters(&mut self) -> Vec<TableCounters> {
        self.settle_all();
        let counters =
            |table: &Table| TableCounters { active: 0, lookups: table.lookups, matches: table.matches };
        let mut list: Vec<TableCounters> = self.tables.iter().map(counters).collect();
        for (_, entry) in self.entries.iter() {
            if let Some(counters) = list.get_mut(usize::from(entry.table)) {
                counters.active += 1;
            }
        }
        list
    }

    /// Number of different masks in a table: the hash lookups that a search of it takes at most.
    #[must_use]
    pub fn masks(&self, table: u8) -> usize {
        self.tables.get(usize::from(table)).map_or(0, Table::masks)
    }

    /// The number of the latest addition, with which cached decisions are stamped.
    #[inline(always)]
    pub(crate) fn stamp(&self) -> u32 {
        self.added
    }

    /// Whether a path exists.
    #[inline(always)]
    pub(crate) fn is_alive(&self, id: PathId) -> bool {
        self.paths.is_alive(id)
    }

    /// The counters of a slot, for a prefetch.
    #[inline(always)]
    pub(crate) fn hot(&self, slot: u32) -> Option<&Hot> {
        self.paths.hot.get(slot as usize)
    }

    #[inline(always)]
    pub(crate) fn count_at(&mut self, slot: u32, packets: u64, bytes: u64, now: u64) {
        if let Some(hot) = self.paths.hot.get_mut(slot as usize) {
            hot.packets += packets;
            hot.bytes += bytes;
            hot.used = now;
            hot.is_used = true;
        }
    }

    /// Whether a decision that was right at the addition numbered `stamp` still is, given that its path still exists.
    pub(crate) fn is_current(&self, id: PathId, key: &Key, stamp: u32) -> bool {
        let Some(path) = self.path(id) else { return false };
        if path.start.is_some() {
            return false;
        }
        let mut key = *key;
        for (at, step) in path.steps.iter().enumerate() {
            let Some(table) = self.tables.get(usize::from(step.table)) else { return false };
            if table.is_superseded(&self.entries, &key, self.seed, step.entry, stamp) {
                return false;
            }
            if at + 1 < path.steps.len()
                && let Some(entry) = self.entries.get(step.entry)
            {
                rewrite(&mut key, &entry.instructions);
            }
        }
        true
    }

    /// Ends paths until `count` more can be created.
    pub(crate) fn make_room(&mut self, count: usize) {
        while self.paths.len() + count > self.limits.paths {
            let Some(slot) = self.paths.next_unused() else { return };
            self.end_path(slot);
        }
    }

    /// The path of a packet, from the first table or from the end of another path. There is room for it.
    pub(crate) fn look_up_from(&mut self, key: &Key, start: Option<PathId>) -> PathId {
        let mut steps = std::mem::take(&mut self.steps);
        let first = start.and_then(|start| self.path(start)?.resume()).map_or(0, |resume| resume.table);
        self.walk(first, *key, &mut steps);
        let identity = (start, Box::from(steps.as_slice()));
        self.steps = steps;
        if let Some(id) = self.paths.find(&identity) {
            return id;
        }
        let path = self.build(start, identity.1);
        let entries: Vec<u32> = path.steps.iter().map(|step| step.entry).collect();
        let id = self.paths.insert(path);
        for slot in entries {
            let Some(entry) = self.entries.get_mut(slot) else { continue };
            if entry.paths.len() == entry.paths.capacity() {
                entry.paths.retain(|path| self.paths.is_alive(*path));
            }
            entry.paths.push(id);
        }
        id
    }

    /// The tables that a packet visits, and the entries that it matches.
    fn walk(&self, first: u8, mut key: Key, steps: &mut Vec<Step>) {
        steps.clear();
        let mut number = first;
        while let Some(table) = self.tables.get(usize::from(number)) {
            let slot = table.find(&self.entries, &key, self.seed);
            steps.push(Step { table: number, entry: slot });
            let Some(entry) = self.entries.get(slot) else { return };
            let Some(next) = entry.instructions.goto else { return };
            if rewrite(&mut key, &entry.instructions) {
                return;
            }
            number = next;
        }
    }

    /// Collects the operations of a path.
    fn build(&self, start: Option<PathId>, steps: Box<[Step]>) -> Path {
        let (mut operations, mut ends) = (Vec::new(), Vec::new());
        let start_resume = start.and_then(|start| self.path(start)?.resume());
        let mut set = start_resume.map_or_else(ActionSet::default, |resume| resume.set.clone());
        let (mut metadata, mut metadata_mask) =
            start_resume.map_or((0, 0), |resume| (resume.metadata, resume.metadata_mask));
        let (mut resume, mut writer) = (None, start_resume.and_then(|resume| resume.writer));
        for (at, step) in steps.iter().enumerate() {
            let Some(entry) = self.entries.get(step.entry) else {
                // Dropped in a table without a table-miss entry (5.4): the action set is not performed.
                break;
            };
            let instructions = &entry.instructions;
            operations.extend(instructions.meter.map(Operation::Meter));
            operations.extend(instructions.apply.iter().copied().map(Operation::Action));
            let is_table_miss = entry.priority == 0 && entry.matching == Match::any();
            let performer = Performer { table: entry.table, cookie: entry.cookie, is_table_miss, metadata };
            ends.push((operations.len(), performer));
            if instructions.clear {
                set.clear();
                writer = None;
            }
            instructions.write.iter().for_each(|action| set.write(*action));
            let sends = |action: &Action| matches!(action, Action::Output(_) | Action::Group(_));
            if instructions.write.iter().any(sends) {
                writer = Some(performer);
            }
            if let Some((value, mask)) = instructions.metadata {
                metadata = metadata & !mask | value & mask;
                metadata_mask |= mask;
            }
            if at + 1 == steps.len() {
                match instructions.goto {
                    None => {
                        operations.extend(set.actions().map(Operation::Action));
                        let performer = writer.unwrap_or(performer);
                        ends.push((operations.len(), Performer { metadata, ..performer }));
                    }
                    Some(table) => {
                        let set = std::mem::take(&mut set);
                        resume = Some(Resume { table, metadata, metadata_mask, set, writer });
                    }
                }
            }
        }
        Path::new(start, steps, Program::new(operations, ends), resume)
    }

    fn add(&mut self, change: &Change, table: u8, now: Duration) -> Result<(), FlowModError> {
        check_goto(change, table)?;
        change.instructions.check(&change.matching)?;
        if [change.idle_timeout, change.hard_timeout].contains(&Some(Duration::ZERO)) {
            return Err(FlowModError::BadTimeout);
        }
        let Some(place) = self.tables.get(usize::from(table)) else { return Err(FlowModError::BadTable) };
        let replaced = place.find_strict(&self.entries, &change.matching, change.priority, self.seed);
        if replaced.and_then(|slot| self.entries.get(slot)).is_some_and(|entry| entry.owner != change.owner) {
            return Err(FlowModError::OtherOwner);
        }
        if change.flags.check_overlap
            && place.has_overlap(&self.entries, table, &change.matching, change.priority)
        {
            return Err(FlowModError::Overlap);
        }
        let mut bytes = ENTRY_BYTES + change.instructions.heap_bytes();
        if !place.has_mask(&change.matching) {
            if place.masks() >= self.limits.masks {
                return Err(FlowModError::TooManyMasks { limit: self.limits.masks });
            }
            bytes += TUPLE_BYTES;
        }
        if replaced.is_none() && self.entries.len() >= self.limits.entries.min(NO_ENTRY as usize) {
            return Err(FlowModError::TooManyEntries { limit: self.limits.entries });
        }
        self.check_bytes(bytes)?;

        let mut entry = StoredEntry::new(change, table, self.order, now);
        self.order += 1;
        if let Some(old) = replaced.and_then(|slot| self.take(slot))
            && !change.flags.reset_counts
        {
            (entry.packets, entry.bytes) = (old.packets, old.bytes);
        }
        if self.added == u32::MAX {
            self.forget_additions();
        }
        self.added += 1;
        let slot = self.entries.insert(entry);
        let place = &mut self.tables[usize::from(table)];
        let masks = place.masks();
        place.insert(&mut self.entries, slot, self.added, self.seed);
        self.bytes += ENTRY_BYTES + change.instructions.heap_bytes();
        self.bytes += TUPLE_BYTES * (place.masks() - masks);
        self.schedule(slot);
        Ok(())
    }

    /// Starts the numbers of additions again. All paths end, so that no cached decision has an old number.
    fn forget_additions(&mut self) {
        (0..self.paths.hot.len() as u32).for_each(|slot| self.end_path(slot));
        self.tables.iter_mut().for_each(Table::forget_additions);
        self.added = 0;
    }

    fn modify(&mut self, slot: u32, change: &Change) {
        self.end_paths_of(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        self.bytes -= entry.instructions.heap_bytes();
        entry.instructions = change.instructions.clone();
        self.bytes += entry.instructions.heap_bytes();
        if change.flags.reset_counts {
            (entry.packets, entry.bytes) = (0, 0);
        }
    }

    fn remove(&mut self, slot: u32, reason: RemovalReason, now: Duration) -> Option<FlowRemoved> {
        let entry = self.take(slot)?;
        let (packets, bytes) = entry.flags.counters(entry.packets, entry.bytes);
        Some(FlowRemoved {
            reason,
            table: entry.table,
            matching: entry.matching,
            priority: entry.priority,
            cookie: entry.cookie,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            age: now.saturating_sub(entry.created),
            packets,
            bytes,
            send_removed: entry.flags.send_removed,
        })
    }

    /// Takes an entry out, with its last counters.
    fn take(&mut self, slot: u32) -> Option<StoredEntry> {
        self.end_paths_of(slot);
        let table = self.tables.get_mut(usize::from(self.entries.get(slot)?.table))?;
        let masks = table.masks();
        table.remove(&mut self.entries, slot, self.seed);
        self.bytes -= TUPLE_BYTES * (masks - table.masks());
        let entry = self.entries.remove(slot)?;
        self.bytes -= ENTRY_BYTES + entry.instructions.heap_bytes();
        Some(entry)
    }

    /// The entries that a modification or deletion concerns.
    fn selected(&self, change: &Change) -> Vec<u32> {
        let fits = |entry: &StoredEntry| {
            entry.owner == change.owner
                && (entry.cookie ^ change.cookie) & change.cookie_mask == 0
                && (!matches!(change.command, Command::Delete | Command::DeleteStrict)
                    || (change.out_port.is_none_or(|port| entry.instructions.has_output(port))
                        && change.out_group.is_none_or(|group| entry.instructions.has_group(group))))
        };
        let tables = self.tables.iter().enumerate();
        let tables =
            tables.filter(|(number, _)| change.table.is_none_or(|table| usize::from(table) == *number));
        if matches!(change.command, Command::ModifyStrict | Command::DeleteStrict) {
            let find = |table: &Table| {
                table.find_strict(&self.entries, &change.matching, change.priority, self.seed)
            };
            let found = tables.filter_map(|(_, table)| find(table));
            return found.filter(|slot| self.entries.get(*slot).is_some_and(fits)).collect();
        }
        let entries = self.entries.iter().filter(|(_, entry)| {
            change.table.is_none_or(|table| entry.table == table)
                && change.matching.contains(&entry.matching)
                && fits(entry)
        });
        entries.map(|(slot, _)| slot).collect()
    }

    fn check_bytes(&self, more: usize) -> Result<(), FlowModError> {
        match self.bytes.saturating_add(more) > self.limits.bytes {
            true => Err(FlowModError::TooManyBytes { limit: self.limits.bytes }),
            false => Ok(()),
        }
    }

    /// Notes the next deadline of an entry.
    fn schedule(&mut self, slot: u32) {
        let Some(entry) = self.entries.get(slot) else { return };
        let hard = entry.hard_timeout.map(|timeout| entry.created.saturating_add(timeout));
        let idle = entry.idle_timeout.map(|timeout| entry.used.saturating_add(timeout));
        let Some(deadline) = [hard, idle].into_iter().flatten().min() else { return };
        self.deadlines.push(Reverse((nanoseconds(deadline), entry.rank, slot)));
        // Deadlines of removed entries stay until they pass, unless they become the majority.
        if self.deadlines.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.deadlines.retain(|Reverse((_, rank, slot))| {
                entries.get(*slot).is_some_and(|entry| entry.rank == *rank)
            });
        }
    }

    /// Moves the counters of the paths through an entry to their entries.
    fn settle_entry(&mut self, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let paths = std::mem::take(&mut entry.paths);
        for path in &paths {
            if self.paths.is_alive(*path) {
                settle(&mut self.paths, &mut self.entries, &mut self.tables, path.slot);
            }
        }
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.paths = paths;
        }
    }

    fn settle_all(&mut self) {
        for slot in 0..self.paths.hot.len() as u32 {
            settle(&mut self.paths, &mut self.entries, &mut self.tables, slot);
        }
    }

    /// Ends all paths through an entry.
    fn end_paths_of(&mut self, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        for path in std::mem::take(&mut entry.paths) {
            if self.paths.is_alive(path) {
                self.end_path(path.slot);
            }
        }
    }

    fn end_path(&mut self, slot: u32) {
        settle(&mut self.paths, &mut self.entries, &mut self.tables, slot);
        self.paths.remove(slot);
    }
}

/// Moves the counters of a path to its entries and tables.
fn settle(paths: &mut Paths, entries: &mut Entries, tables: &mut [Table], slot: u32) {
    let Some((hot, path)) = paths.hot.get_mut(slot as usize).zip(paths.paths.get(slot as usize)) else {
        return;
    };
    let Some(path) = path else { return };
    if hot.packets == 0 {
        return;
    }
    let (packets, bytes) = (std::mem::take(&mut hot.packets), std::mem::take(&mut hot.bytes));
    for step in &path.steps {
        if let Some(table) = tables.get_mut(usize::from(step.table)) {
            table.lookups += packets;
            table.matches += if step.entry == NO_ENTRY { 0 } else { packets };
        }
        if let Some(entry) = entries.get_mut(step.entry) {
            entry.packets += packets;
            entry.bytes += bytes;
            entry.used = entry.used.max(Duration::from_nanos(hot.used));
        }
    }
}

/// Changes a key as the instructions change the packet, for the next table. Returns true if they reveal headers that are
/// not in the key.
fn rewrite(key: &mut Key, instructions: &Instructions) -> bool {
    let mut reveals = false;
    for action in &instructions.apply {
        reveals |= action.reveals();
        match *action {
            Action::SetField(Field::VlanVid, value) | Action::SetIfPresent(Field::VlanVid, value)
                if key.has_vlan() =>
            {
                key.set(Field::VlanVid, value | 0x1000);
            }
            Action::SetField(Field::VlanVid, _) | Action::SetIfPresent(Field::VlanVid, _) => {}
            Action::TagVlanVid(vid) => {
                key.push_vlan();
                key.set(Field::VlanVid, u128::from(vid) | 0x1000);
            }
            Action::TagVlanPcp(pcp) => {
                key.push_vlan();
                key.set(Field::VlanPcp, pcp.into());
            }
            Action::SetField(field, value) | Action::SetIfPresent(field, value) => {
                key.set(field, value);
            }
            Action::PushVlan(_) => key.push_vlan(),
            Action::PushMpls(eth_type) => key.push_mpls(eth_type),
            Action::PushPbb(eth_type) => key.push_pbb(eth_type),
            _ => {}
        }
    }
    if let Some((value, mask)) = instructions.metadata {
        key.write_metadata(value, mask);
    }
    reveals
}

fn check_goto(change: &Change, from: u8) -> Result<(), FlowModError> {
    match change.instructions.goto {
        Some(to) if to <= from || usize::from(to) >= TABLES => Err(FlowModError::BadGoto { from, to }),
        _ => Ok(()),
    }
}

/// Nanoseconds of a time; times after 584 years count as that.
#[inline(always)]
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().min(u128::from(u64::MAX)) as u64
}
