//! A longest-prefix-match table: a trie with one byte per level.
//!
//! The first two levels are arrays, the second allocated only where there are routes; the deeper levels are compressed
//! nodes (`node`). A level holds the routes whose last bit lies in its byte, and a lookup keeps the deepest route on
//! its path. A change therefore rewrites one block of 256 slots and nothing below it, whatever the size of the table.
//! The routes themselves are in an ordered map, from which a block is rewritten when one of its routes changes.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use crate::deferred::{Deferred, LEVELS_A_STEP, Next, NodeCount};
use crate::flat::Flat;
use crate::key::Key;
use crate::node::{CHILD, Nodes, SLOTS, copy_some, with_room};
use crate::{Address, Prefix};

/// The largest valid hop.
pub const MAX_HOP: u32 = CHILD - 2;

/// The result of `lookup_batch` for an address that no route matches.
pub const NO_HOP: u32 = u32::MAX;
/// It follows from the value 0 without a branch.
const _: () = assert!(NO_HOP == 0u32.wrapping_sub(1));

/// Addresses that are looked up together, so that their cache misses overlap.
const LOOKUP_GROUP: usize = 32;

/// Table size in bytes below which lookups are assumed to hit the cache, so that overlapping them gains nothing.
const CACHED_BYTES: usize = 1 << 20;

/// Routes from which on a table gets a flat form. Smaller ones take few different ways through the trie.
const FLAT_ROUTES: usize = 32;

/// Routes up to which a table gets a flat form. With more it would leave the caches, and their blocks take long to count.
const MAX_FLAT_ROUTES: usize = 10_000;

/// Lookups without a change after which a table gets a flat form. It takes about as long to build.
const FLAT_LOOKUPS: u32 = 1 << 16;

/// Routes that are added to the flat form in one call of `lookup_batch`, which then takes a few microseconds longer.
const FLAT_STEP: usize = 32;

/// Routes that are freed in a step.
const ROUTES_FREED_A_STEP: usize = 128;

/// The data of a route besides its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The result of a lookup; at most `MAX_HOP`.
    pub hop: u32,
    /// The owner's data, not used by lookups.
    pub tag: u32,
}

/// The error for a hop above `MAX_HOP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHopTooLarge;

/// A slot of the first two levels: the route that ends here (0 for none, else hop + 1) and the next level.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Slot {
    value: u32,
    child: u32,
}

/// Finds the longest prefix of an address.
#[derive(Clone)]
pub struct PrefixTable<A> {
    trie: Trie,
    routes: BTreeMap<Key<A>, Entry>,
    /// While changes are deferred.
    deferred: Option<Deferred<A, Trie>>,
    form: Form<A>,
}

/// What lookups read.
#[derive(Clone)]
struct Trie {
    top: Box<[Slot; SLOTS]>,
    /// The second level, 256 slots per block. Block 0 stays empty.
    blocks: Vec<Slot>,
    free_blocks: Vec<u32>,
    nodes: Nodes,
}

/// How batches are looked up.
#[derive(Clone)]
enum Form<A> {
    /// In the trie, and for so many lookups more. Then a flat form is tried.
    Changed(u32),
    /// In the trie, while the flat form is built. It has the routes up to this one.
    Building(Flat, Option<Key<A>>),
    /// In the flat form.
    Flat(Flat),
    /// In the trie: these routes have no flat form.
    Trie,
}

impl<A: Address> Default for PrefixTable<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address> PrefixTable<A> {
    /// A table without routes.
    pub fn new() -> Self {
        Self { trie: Trie::new(), routes: BTreeMap::new(), deferred: None, form: Form::Changed(FLAT_LOOKUPS) }
    }

    /// Builds a table of many routes, faster than inserting one by one. Of two routes with the same prefix the later
    /// one is kept.
    pub fn build(routes: impl IntoIterator<Item = (Prefix<A>, Entry)>) -> Result<Self, NextHopTooLarge> {
        let keyed =
            routes.into_iter().map(|(prefix, entry)| check(entry).map(|entry| (Key::new(prefix), entry)));
        let mut table = Self { routes: keyed.collect::<Result<_, _>>()?, ..Self::new() };
        let blocks = sorting::collect(table.routes.keys().map(|key| (key.level, key.block())));
        table.deferred = Some(Deferred { blocks, next: Next::None });
        table.apply_updates();
        Ok(table)
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Memory of the lookup structure in bytes, without the map of routes.
    pub fn bytes(&self) -> usize {
        let flat = match &self.form {
            Form::Building(flat, _) | Form::Flat(flat) => flat.bytes(),
            Form::Changed(_) | Form::Trie => 0,
        };
        self.trie.bytes() + flat
    }

    /// All routes, ordered by group of eight prefix lengths, then by address.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, Entry)> {
        self.routes.iter().filter_map(|(key, &entry)| Some((Prefix::new(key.address, key.length)?, entry)))
    }

    /// The route of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<Entry> {
        self.routes.get(&Key::new(prefix)).copied()
    }

    /// Adds or replaces a route and returns the replaced one.
    pub fn insert(&mut self, prefix: Prefix<A>, entry: Entry) -> Result<Option<Entry>, NextHopTooLarge> {
        let key = Key::new(prefix);
        let old = self.routes.insert(key, check(entry)?);
        if old.is_none_or(|old| old.hop != entry.hop) {
            self.changed(key);
        }
        Ok(old)
    }

    /// Removes a route and returns it.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<Entry> {
        let key = Key::new(prefix);
        let old = self.routes.remove(&key)?;
        self.changed(key);
        Some(old)
    }

    /// Defers changes: lookups don't see them until they are applied, and bulk changes cost less.
    pub fn defer_updates(&mut self) {
        self.deferred.get_or_insert_with(Deferred::new);
    }

    /// Whether changes are deferred.
    pub fn is_deferring(&self) -> bool {
        self.deferred.is_some()
    }

    /// Applies the deferred changes.
    pub fn apply_updates(&mut self) {
        if let Some(deferred) = self.deferred.take_if(|deferred| matches!(deferred.next, Next::None)) {
            for (level, block) in deferred.blocks {
                self.form = Form::Changed(FLAT_LOOKUPS);
                self.trie.rewrite(&self.routes, level, block);
            }
        }
        while !self.apply_some_updates() {}
    }

    /// Performs a step of applying the deferred changes, of about ten microseconds. Returns whether it was the last, after
    /// which lookups see all changes. Until then they see none, unless there is no memory for a second trie: then they see those
    /// that are made. Further changes are deferred too.
    pub fn apply_some_updates(&mut self) -> bool {
        let Some(deferred) = &mut self.deferred else { return true };
        match &mut deferred.next {
            Next::None => {
                if deferred.are_few(self.trie.bytes()) {
                    self.apply_updates();
                    return true;
                }
                deferred.next = Next::Counting(NodeCount::new());
                return self.apply_some_updates();
            }
            Next::Counting(count) => {
                if count.go_on(&deferred.blocks, &self.routes) {
                    deferred.next = self.trie.begin_copy(count).map_or(Next::InPlace, Next::Copying);
                }
            }
            Next::Copying(copy) => {
                if copy.copy_some(&self.trie)
                    && let Next::Copying(copy) = core::mem::replace(&mut deferred.next, Next::None)
                {
                    deferred.next = Next::Changing(copy);
                }
            }
            Next::Changing(next) => {
                if next.rewrite_some(&self.routes, &mut deferred.blocks) {
                    core::mem::swap(&mut self.trie, next);
                    self.form = Form::Changed(FLAT_LOOKUPS);
                    self.deferred = None;
                    return true;
                }
            }
            Next::InPlace => {
                self.form = Form::Changed(FLAT_LOOKUPS);
                if self.trie.rewrite_some(&self.routes, &mut deferred.blocks) {
                    self.deferred = None;
                    return true;
                }
            }
        }
        false
    }

    /// Removes all routes.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Frees some routes of a table that is no longer used. Returns whether all are free.
    pub fn free_some(&mut self) -> bool {
        let mut blocks = self.deferred.as_mut().map(|deferred| &mut deferred.blocks);
        (0..ROUTES_FREED_A_STEP).any(|_| {
            let block = blocks.as_mut().and_then(|blocks| blocks.pop_first());
            block.is_none() && self.routes.pop_first().is_none()
        })
    }

    /// The hop of the longest prefix of `address`.
    #[inline(always)]
    pub fn lookup(&self, address: A) -> Option<u32> {
        self.trie.lookup(address)
    }

    /// Looks up many addresses: `hops[i]` becomes the hop of `addresses[i]`, or `NO_HOP`.
    ///
    /// Stops at the end of the shorter slice.
    pub fn lookup_batch(&mut self, addresses: &[A], hops: &mut [u32]) {
        if let Form::Flat(flat) = &self.form {
            return flat.lookup_batch(addresses, hops);
        }
        self.trie.lookup_batch(addresses, hops);
        match &mut self.form {
            Form::Changed(0) => self.begin_flat(),
            Form::Changed(left) => *left = left.saturating_sub(addresses.len() as u32),
            Form::Building(..) => self.build_flat(),
            Form::Flat(_) | Form::Trie => {}
        }
    }

    /// Begins the flat form, if the routes can have one.
    #[cold]
    fn begin_flat(&mut self) {
        // Deferred changes are in the map, and lookups must not see them yet.
        if self.deferred.is_some() {
            return;
        }
        self.form = Form::Trie;
        let is_deep = self.routes.keys().next_back().is_some_and(|key| key.level >= 2);
        if is_deep && (FLAT_ROUTES..=MAX_FLAT_ROUTES).contains(&self.routes.len()) {
            let blocks = Flat::blocks_of(self.iter().map(|(prefix, _)| prefix));
            self.form = Flat::with_room(blocks).map_or(Form::Trie, |flat| Form::Building(flat, None));
        }
    }

    /// Adds the next routes to the flat form.
    #[cold]
    fn build_flat(&mut self) {
        let Form::Building(flat, last) = &mut self.form else { return };
        if self.deferred.is_some() {
            return;
        }
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, entry) in self.routes.range((after, Bound::Unbounded)).take(FLAT_STEP) {
            let prefix = Prefix::new(key.address, key.length);
            if prefix.and_then(|prefix| flat.add(prefix, entry.hop)).is_none() {
                self.form = Form::Trie;
                return;
            }
            *last = Some(*key);
        }
        if last.as_ref() == self.routes.keys().next_back()
            && let Form::Building(flat, _) = core::mem::replace(&mut self.form, Form::Trie)
        {
            self.form = Form::Flat(flat);
        }
    }

    fn changed(&mut self, key: Key<A>) {
        match &mut self.deferred {
            Some(deferred) => {
                deferred.blocks.insert((key.level, key.block()));
            }
            None => {
                self.form = Form::Changed(FLAT_LOOKUPS);
                self.trie.rewrite(&self.routes, key.level, key.block());
            }
        }
    }
}

impl Trie {
    fn new() -> Trie {
        Trie {
            top: Box::new([Slot::default(); SLOTS]),
            blocks: alloc::vec![Slot::default(); SLOTS],
            free_blocks: Vec::new(),
            nodes: Nodes::new(),
        }
    }

    /// Begins to copy this trie, with room for more nodes, if there is memory. The copy is of no use before it is complete.
    fn begin_copy<A: Address>(&self, more: &NodeCount<A>) -> Option<Trie> {
        Some(Trie {
            top: self.top.clone(),
            blocks: with_room(self.blocks.capacity())?,
            free_blocks: with_room(self.free_blocks.capacity())?,
            nodes: self.nodes.begin_copy(more.nodes, more.values)?,
        })
    }

    /// Copies some more of a trie, which must not have changed. Returns whether the copy is complete.
    fn copy_some(&mut self, from: &Trie) -> bool {
        copy_some(&mut self.blocks, &from.blocks)
            && copy_some(&mut self.free_blocks, &from.free_blocks)
            && self.nodes.copy_some(&from.nodes)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.top) + self.blocks.capacity() * size_of::<Slot>() + self.nodes.bytes()
    }

    /// The hop of the longest prefix of `address`.
    #[inline(always)]
    fn lookup<A: Address>(&self, address: A) -> Option<u32> {
        self.value(address).checked_sub(1)
    }

    /// The hop of the longest prefix of `address` plus one; 0 if there is none.
    #[inline(always)]
    fn value<A: Address>(&self, address: A) -> u32 {
        let (best, node) = self.begin(address);
        if node == 0 { best } else { self.descend(address, best, node) }
    }

    /// The value of an address, searching from a third-level node on; `best` is the result of the first two levels.
    #[inline(never)]
    fn descend<A: Address>(&self, address: A, mut best: u32, mut node: u32) -> u32 {
        let mut level = 2;
        loop {
            let value = self.nodes.value(self.nodes.position(node, address.byte(level)));
            if value & CHILD == 0 {
                return choose(value, best);
            }
            node = value & !CHILD;
            best = choose(self.nodes.base(node), best);
            level += 1;
        }
    }

    fn lookup_batch<A: Address>(&self, addresses: &[A], hops: &mut [u32]) {
        if self.bytes() <= CACHED_BYTES {
            for (&address, hop) in addresses.iter().zip(hops) {
                *hop = self.value(address).wrapping_sub(1);
            }
        } else {
            self.lookup_overlapped(addresses, hops);
        }
    }

    fn lookup_overlapped<A: Address>(&self, addresses: &[A], hops: &mut [u32]) {
        for (addresses, hops) in addresses.chunks(LOOKUP_GROUP).zip(hops.chunks_mut(LOOKUP_GROUP)) {
            self.lookup_lanes(addresses, hops);
        }
    }

    fn lookup_lanes<A: Address>(&self, addresses: &[A], hops: &mut [u32]) {
        let mut nodes = [0; LOOKUP_GROUP];
        let mut positions = [0; LOOKUP_GROUP];
        let mut deeper = [0u8; LOOKUP_GROUP];
        let mut left = 0;
        for (lane, (&address, (hop, node))) in
            addresses.iter().zip(hops.iter_mut().zip(&mut nodes)).enumerate()
        {
            (*hop, *node) = self.begin(address);
            self.nodes.prefetch(*node);
            deeper[left] = lane as u8;
            left += 1;
        }
        let mut level = 2;
        while left > 0 {
            for &lane in &deeper[..left] {
                let lane = usize::from(lane) % LOOKUP_GROUP;
                positions[lane] = self.nodes.position(nodes[lane], addresses[lane].byte(level));
                self.nodes.prefetch_value(positions[lane]);
            }
            let lanes = left;
            left = 0;
            for at in 0..lanes {
                let lane = usize::from(deeper[at]) % LOOKUP_GROUP;
                let value = self.nodes.value(positions[lane]);
                if value & CHILD == 0 {
                    hops[lane] = choose(value, hops[lane]).wrapping_sub(1);
                } else {
                    nodes[lane] = value & !CHILD;
                    self.nodes.prefetch(nodes[lane]);
                    hops[lane] = choose(self.nodes.base(nodes[lane]), hops[lane]);
                    deeper[left] = lane as u8;
                    left += 1;
                }
            }
            level += 1;
        }
    }

    /// Reads the first two levels. Returns the best value so far and the next node.
    #[inline(always)]
    fn begin<A: Address>(&self, address: A) -> (u32, u32) {
        let top = self.top[address.byte(0)];
        let slot = self.blocks[top.child as usize * SLOTS + address.byte(1)];
        (choose(slot.value, top.value), slot.child)
    }

    /// Writes the routes of some of these blocks into their slots, and removes the blocks. Returns whether none are left.
    fn rewrite_some<A: Address>(
        &mut self,
        routes: &BTreeMap<Key<A>, Entry>,
        blocks: &mut BTreeSet<(u8, A)>,
    ) -> bool {
        let mut levels = 0;
        while levels < LEVELS_A_STEP {
            let Some((level, block)) = blocks.pop_first() else { return true };
            self.rewrite(routes, level, block);
            levels += usize::from(level).max(1);
        }
        false
    }

    /// Writes the routes of one block into its slots.
    fn rewrite<A: Address>(&mut self, routes: &BTreeMap<Key<A>, Entry>, level: u8, block: A) {
        let mut slots = [0; SLOTS];
        for (key, entry) in Key::routes_of(routes, level, block) {
            let start = key.address.byte(usize::from(level));
            let span = 1 << (8 * (usize::from(level) + 1)).saturating_sub(usize::from(key.length));
            for slot in slots.iter_mut().skip(start).take(span) {
                *slot = entry.hop + 1;
            }
        }
        match level {
            0 => self.top.iter_mut().zip(slots).for_each(|(slot, value)| slot.value = value),
            1 => self.store_block(block, &slots),
            _ => self.store_node(usize::from(level), block, &slots),
        }
    }

    fn store_block<A: Address>(&mut self, block: A, values: &[u32; SLOTS]) {
        let first = self.block_of(block);
        for (slot, value) in self.blocks[first..first + SLOTS].iter_mut().zip(values) {
            slot.value = *value;
        }
        self.prune_block(block);
    }

    fn store_node<A: Address>(&mut self, level: usize, block: A, values: &[u32; SLOTS]) {
        // The nodes on the way down; the last one is rewritten.
        let mut path = Vec::with_capacity(level - 1);
        let at = self.block_of(block) + block.byte(1);
        if self.blocks[at].child == 0 {
            self.blocks[at].child = self.nodes.allocate(0);
        }
        path.push(self.blocks[at].child);
        for above in 2..level {
            let parent = path[above - 2];
            let mut slots = self.nodes.expand(parent);
            let slot = &mut slots[block.byte(above)];
            if *slot & CHILD == 0 {
                *slot = CHILD | self.nodes.allocate(*slot);
                path.push(*slot & !CHILD);
                self.nodes.store(parent, &slots);
            } else {
                path.push(*slot & !CHILD);
            }
        }

        let mut slots = self.nodes.expand(path[level - 2]);
        for (slot, &value) in slots.iter_mut().zip(values) {
            if *slot & CHILD == 0 {
                *slot = value;
            } else {
                self.nodes.set_base(*slot & !CHILD, value);
            }
        }
        self.nodes.store(path[level - 2], &slots);

        // Free empty nodes from the bottom up.
        while let Some(node) = path.pop() {
            if slots.iter().any(|&slot| slot != 0) {
                return;
            }
            let base = self.nodes.base(node);
            self.nodes.release(node);
            match path.last() {
                Some(&parent) => {
                    slots = self.nodes.expand(parent);
                    slots[block.byte(path.len() + 1)] = base;
                    self.nodes.store(parent, &slots);
                }
                None => {
                    self.blocks[at].child = 0;
                    self.prune_block(block);
                }
            }
        }
    }

    /// Index of the first slot of an address's second-level block, which is created if necessary.
    fn block_of<A: Address>(&mut self, address: A) -> usize {
        let top = &mut self.top[address.byte(0)];
        if top.child == 0 {
            top.child = self.free_blocks.pop().unwrap_or_else(|| {
                let fresh = self.blocks.len() / SLOTS;
                self.blocks.resize((fresh + 1) * SLOTS, Slot::default());
                fresh as u32
            });
        }
        top.child as usize * SLOTS
    }

    fn prune_block<A: Address>(&mut self, address: A) {
        let top = &mut self.top[address.byte(0)];
        let first = top.child as usize * SLOTS;
        if first != 0 && self.blocks[first..first + SLOTS].iter().all(|&slot| slot == Slot::default()) {
            self.free_blocks.push(top.child);
            top.child = 0;
        }
    }
}

fn check(entry: Entry) -> Result<Entry, NextHopTooLarge> {
    if entry.hop <= MAX_HOP { Ok(entry) } else { Err(NextHopTooLarge) }
}

/// The value of the deeper level, unless it is none.
#[inline]
fn choose(deeper: u32, best: u32) -> u32 {
    if deeper != 0 { deeper } else { best }
}

#[cfg(test)]
mod tests;
