//! Which instance each flow is assigned to, at each hop of its chain.
//!
//! An index leads from the hash of a flow to its record. The records lie close together, in the order in which flows came: a packet's
//! identity says which one it is, so that a hop reads nothing else, and few flows take few pages of memory.

use super::plan::MAX_HOPS;
use crate::forward::PortKey;
use crate::huge_pages;
use flow_table::{FlowTuple, HandleIndex};

/// Words of a record, as many as those of a cache line. A large table begins 16 bytes behind the start of one, so the words that
/// each packet needs come first: hash, version and use, the two that follow here, and the instances of the first sixteen hops.
const WORDS: usize = 8;

/// The word that says whether the flow is the outside of a translated one, and between the bits of this where packets of the
/// reverse direction leave.
const OUTSIDE: usize = 2;

/// The part of that word that says where they leave: a mark, and the key of the port.
const BACK_MASK: u64 = 0x1ff_ff00;
const BACK_PRESENT: u64 = 1 << 24;
const BACK_SHIFT: u32 = 8;

/// The word that says which translator sent the first packet, and in its upper half which chain the flow takes instead.
const LEARNT: usize = 3;

/// The first word with instances: a byte for each hop.
const ASSIGNED: usize = 4;

/// The part of that word that concerns the translator.
const LEARNT_MASK: u64 = (1 << 33) - 1;

/// The fewest records of a table.
const MIN_RECORDS: usize = 4;

/// Records among which the one is chosen that another flow gets, if all are in use and none is near it in the index.
const CHOICES: usize = 8;

/// Seconds without packets after which a flow is forgotten.
const MAX_IDLE: u32 = 120;

/// No instance is assigned.
pub(super) const UNASSIGNED: u8 = u8::MAX;

/// The hop whose translator has the outside of a flow in its range, and a hash of the flow's other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outside {
    pub(super) hop: u8,
    pub(super) far: u32,
}

impl Outside {
    fn to_word(this: Option<Self>) -> u64 {
        this.map_or(0, |outside| u64::from(outside.far) << 32 | (u64::from(outside.hop) + 1))
    }

    fn from_word(word: u64) -> Option<Self> {
        let hop = (word as u8).checked_sub(1)?;
        Some(Self { hop, far: (word >> 32) as u32 })
    }
}

/// The instance of a translator that sent the first packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Learnt {
    pub(super) service: u16,
    pub(super) slot: u8,
}

impl Learnt {
    fn to_word(this: Option<Self>) -> u64 {
        this.map_or(0, |learnt| 1 << 32 | u64::from(learnt.service) << 8 | u64::from(learnt.slot))
    }

    fn from_word(word: u64) -> Option<Self> {
        (word & LEARNT_MASK != 0).then_some(Self { service: (word >> 8) as u16, slot: word as u8 })
    }
}

/// The chain that a flow takes instead of the one that it enters, because a function said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) chain: u16,
    /// Which of the chains that had this number one after the other: below [`GENERATIONS`](Self::GENERATIONS).
    pub(super) generation: u16,
}

impl Redirect {
    /// How many chains of one number are told apart.
    pub(super) const GENERATIONS: u16 = 1 << 14;

    const PRESENT: u64 = 1 << 33;
    const CHAIN_SHIFT: u32 = 34;
    const GENERATION_SHIFT: u32 = 50;

    fn to_word(this: Option<Self>) -> u64 {
        this.map_or(0, |Self { chain, generation }| {
            Self::PRESENT
                | u64::from(chain) << Self::CHAIN_SHIFT
                | u64::from(generation) << Self::GENERATION_SHIFT
        })
    }

    #[inline(always)]
    fn from_word(word: u64) -> Option<Self> {
        (word & Self::PRESENT != 0).then_some(Self {
            chain: (word >> Self::CHAIN_SHIFT) as u16,
            generation: (word >> Self::GENERATION_SHIFT) as u16,
        })
    }
}

/// The assignment of one flow in one version of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowRecord {
    /// The hash of the flow in this version of the chain; never zero.
    pub(super) hash: u64,
    /// The version of the chain.
    pub(super) version: u32,
    /// The instance at each hop.
    pub(super) slots: [u8; MAX_HOPS],
    /// Set if the flow is the outside of a translated one. The hop's instance does not count it among its flows.
    pub(super) outside: Option<Outside>,
    /// Set if the output of a translator made the record.
    pub(super) learnt: Option<Learnt>,
    /// Set if the flow takes another chain.
    pub(super) redirect: Option<Redirect>,
}

/// What the records of flows that go the same way have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment {
    pub(super) version: u32,
    /// The slots at two hops.
    pub(super) places: [(usize, u8); 2],
}

/// Records of flows by hash, at most as many as there is room for. Two flows with one hash share a record, which harms neither: it only
/// assigns instances, and says which chain they take. A record stays at its place until its flow is forgotten.
///
/// The memory is taken from the system as it is used.
#[derive(Debug)]
pub(super) struct FlowRecords {
    /// The place of each flow's record.
    index: HandleIndex,
    /// Of each record: the hash, the version and the second of the last use, the slots, what concerns translators, and the chain
    /// that the flow takes instead.
    records: Vec<[u64; WORDS]>,
    /// The addresses of each flow in the forward direction, at chains with translators: see [`hosts`](Self::hosts).
    hosts: Vec<[u32; 2]>,
    /// Places of records that no flow has.
    free: Vec<u32>,
    /// The most records.
    capacity: usize,
    /// Where forgetting goes on.
    sweep: usize,
    /// Living flows that were displaced by others.
    pub(super) displaced: u64,
}

/// Packs version and time into one word.
fn stamp(version: u32, seconds: u32) -> u64 {
    u64::from(version) << 32 | u64::from(seconds)
}

/// Notes the second of a use. Most packets change nothing, so that their cache line need not be written back to memory.
#[inline(always)]
fn note_use(words: &mut [u64; WORDS], version: u32, seconds: u32) {
    let stamp = stamp(version, seconds);
    if words[1] != stamp {
        words[1] = stamp;
    }
}

/// Whether a record was not used for long.
fn is_idle(words: &[u64; WORDS], seconds: u32) -> bool {
    seconds.saturating_sub(words[1] as u32) > MAX_IDLE
}

fn record_of(words: &[u64; WORDS]) -> FlowRecord {
    let mut slots = [0; MAX_HOPS];
    for (bytes, word) in slots.chunks_exact_mut(8).zip(&words[ASSIGNED..]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    FlowRecord {
        hash: words[0],
        version: (words[1] >> 32) as u32,
        slots,
        outside: Outside::from_word(words[OUTSIDE]),
        learnt: Learnt::from_word(words[LEARNT]),
        redirect: Redirect::from_word(words[LEARNT]),
    }
}

/// The words of a record that is used now.
fn words_of(record: &FlowRecord, seconds: u32) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[0] = record.hash;
    words[1] = stamp(record.version, seconds);
    for (word, bytes) in words[ASSIGNED..].iter_mut().zip(record.slots.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    words[OUTSIDE] = Outside::to_word(record.outside);
    words[LEARNT] = Learnt::to_word(record.learnt) | Redirect::to_word(record.redirect);
    words
}

impl FlowRecords {
    /// A table for at least `flows` flows.
    pub(super) fn new(flows: usize) -> Self {
        let capacity = flows.max(MIN_RECORDS);
        let (records, index) = (Vec::with_capacity(capacity), HandleIndex::new(capacity));
        let start: *const [u64; WORDS] = records.as_ptr();
        huge_pages::prefer(&(start..start.wrapping_add(capacity)));
        huge_pages::prefer(&index.memory());
        let (hosts, free) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Self { index, records, hosts, free, capacity, sweep: 0, displaced: 0 }
    }

    /// The number of records that there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of places that ever had a record.
    pub(super) fn places(&self) -> usize {
        self.records.len()
    }

    /// The number of flows.
    pub(super) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Prefetches what leads to a flow's record.
    #[inline(always)]
    pub(super) fn prefetch_index(&self, hash: u64) {
        self.index.prefetch(HandleIndex::tag(hash));
    }

    /// Prefetches the record that mostly is a flow's.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(at) = self.index.candidate(HandleIndex::tag(hash)) {
            self.prefetch_at(at);
        }
    }

    /// Prefetches a record.
    #[inline(always)]
    pub(super) fn prefetch_at(&self, at: u32) {
        if let Some(record) = self.records.get(at as usize) {
            packet::prefetch(record);
        }
    }

    /// The place of a flow's record, if it has one. The flow counts as used.
    #[inline(always)]
    pub(super) fn find(&mut self, hash: u64, version: u32, seconds: u32) -> Option<u32> {
        let at = self.peek(hash, version)?;
        note_use(self.records.get_mut(at as usize)?, version, seconds);
        Some(at)
    }

    /// As [`find`](Self::find), with the slot at a hop, if nothing else says where packets of the flow go.
    #[inline(always)]
    pub(super) fn find_plain(
        &mut self,
        hash: u64,
        version: u32,
        hop: usize,
        seconds: u32,
    ) -> Option<(u32, u8)> {
        self.use_plain(self.peek(hash, version)?, version, hop, seconds)
    }

    /// As [`find_plain`](Self::find_plain), for the flow with this [note](Self::note). Returns `None` also if the flow has been
    /// forgotten, or if the note is of another version.
    #[inline(always)]
    pub(super) fn find_noted(
        &mut self,
        note: u64,
        version: u32,
        hop: usize,
        seconds: u32,
    ) -> Option<(u32, u8)> {
        let at = note as u32;
        let words = self.records.get(at as usize)?;
        let is_it = words[0] != 0 && words[0] >> 32 == note >> 32 && (words[1] >> 32) as u32 == version;
        if is_it { self.use_plain(at, version, hop, seconds) } else { None }
    }

    /// A word that leads to the record at a place as long as it is that of the flow with this hash: the upper half of the hash, and
    /// the place. Two flows with one note share a record, as those with one hash do.
    pub(super) fn note(at: u32, hash: u64) -> u64 {
        hash >> 32 << 32 | u64::from(at)
    }

    /// The place and the slot at a hop, if nothing else says where packets of the flow go, which counts as used then.
    #[inline(always)]
    fn use_plain(&mut self, at: u32, version: u32, hop: usize, seconds: u32) -> Option<(u32, u8)> {
        let words = self.records.get_mut(at as usize)?;
        let slot = (words.get(ASSIGNED + hop / 8)? >> (hop % 8 * 8)) as u8;
        if words[LEARNT] & Redirect::PRESENT != 0 || words[OUTSIDE] & BACK_MASK != 0 {
            return None;
        }
        note_use(words, version, seconds);
        Some((at, slot))
    }

    /// Puts a record in a place that is free, or else in place of one that was used least recently. Returns its place, and the record
    /// that it replaces.
    pub(super) fn insert(&mut self, record: FlowRecord, seconds: u32) -> (u32, Option<FlowRecord>) {
        if let Some(at) = self.add(&record, seconds) {
            return (at, None);
        }
        let used = |at: &u32| self.records.get(*at as usize).map_or(0, |words| words[1] as u32);
        let (sweep, count) = (self.sweep, self.records.len().max(1));
        let others = (1..=CHOICES).map(|step| ((sweep + step) % count) as u32);
        let rival = self.index.rivals(HandleIndex::tag(record.hash)).min_by_key(used);
        let at = rival.or_else(|| others.min_by_key(used)).unwrap_or(0);
        let old = self.replace(at, &record, seconds);
        (at, old)
    }

    /// Puts a record that a translator's output makes where none is, or one that is idle, or another that the same instance
    /// made. Returns `None`, and changes nothing, if all others live.
    pub(super) fn insert_learnt(
        &mut self,
        record: FlowRecord,
        seconds: u32,
    ) -> Option<(u32, Option<FlowRecord>)> {
        if let Some(at) = self.add(&record, seconds) {
            return Some((at, None));
        }
        let own = Learnt::to_word(record.learnt);
        let rank = |words: &[u64; WORDS]| match words {
            words if is_idle(words, seconds) => Some(0),
            words if words[LEARNT] & LEARNT_MASK == own && own != 0 => Some(1 + u64::from(words[1] as u32)),
            _ => None,
        };
        let rivals = self.index.rivals(HandleIndex::tag(record.hash));
        let ranked = rivals.filter_map(|at| Some((rank(self.records.get(at as usize)?)?, at)));
        let (_, at) = ranked.min_by_key(|(rank, _)| *rank)?;
        let old = self.replace(at, &record, seconds);
        Some((at, old))
    }

    /// Puts a record in a place that is free. Returns `None`, and changes nothing, if there is none, or no room in the index.
    fn add(&mut self, record: &FlowRecord, seconds: u32) -> Option<u32> {
        self.index.grow(self.len());
        let new = (self.records.len() < self.capacity).then_some(self.records.len() as u32);
        let at = self.free.last().copied().or(new)?;
        if !self.index.insert(HandleIndex::tag(record.hash), at) {
            return None;
        }
        let words = words_of(record, seconds);
        match self.free.pop() {
            Some(_) => *self.records.get_mut(at as usize)? = words,
            None => self.records.push(words),
        }
        Some(at)
    }

    /// Replaces the record of another flow, which is near this one in the index if any is.
    fn replace(&mut self, at: u32, record: &FlowRecord, seconds: u32) -> Option<FlowRecord> {
        let words = self.records.get_mut(at as usize)?;
        self.displaced += u64::from(!is_idle(words, seconds));
        let old = record_of(words);
        *words = words_of(record, seconds);
        self.index.remove(HandleIndex::tag(old.hash), at);
        self.index.insert(HandleIndex::tag(record.hash), at);
        Some(old)
    }

    /// The place of a flow's record, if it has one. The flow does not count as used.
    #[inline(always)]
    pub(super) fn peek(&self, hash: u64, version: u32) -> Option<u32> {
        // Mostly one comparison, with the record that was prefetched.
        let first = self.index.candidate(HandleIndex::tag(hash));
        first.filter(|at| self.has(*at, hash, version)).or_else(|| self.search(hash, version))
    }

    #[cold]
    #[inline(never)]
    fn search(&self, hash: u64, version: u32) -> Option<u32> {
        self.index.find(HandleIndex::tag(hash), |at| self.has(at, hash, version))
    }

    #[inline(always)]
    fn has(&self, at: u32, hash: u64, version: u32) -> bool {
        let words = self.records.get(at as usize);
        words.is_some_and(|words| words[0] == hash && (words[1] >> 32) as u32 == version)
    }

    /// Source and destination of the flow at a place, in the forward direction of its chain. They are known of flows over IPv4 that
    /// began when there were translators.
    pub(super) fn hosts(&self, at: u32) -> Option<[u32; 2]> {
        let hosts = self.hosts.get(at as usize).filter(|hosts| **hosts != [0; 2]);
        hosts.filter(|_| self.flow(at).0 != 0).copied()
    }

    /// Forgets the addresses of all flows: those of new ones are not noted any more.
    pub(super) fn forget_hosts(&mut self) {
        self.hosts.clear();
    }

    /// Notes source and destination of the flow that has just got a record.
    #[cold]
    pub(super) fn set_hosts(&mut self, at: u32, tuple: &FlowTuple, reverse: bool) {
        let [source, destination] = tuple.ends.unwrap_or_default().map(|end| end.address);
        let hosts = if reverse { [destination, source] } else { [source, destination] };
        let at = at as usize;
        if self.hosts.len() <= at {
            self.hosts.resize(self.records.len(), [0; 2]);
        }
        self.hosts.get_mut(at).into_iter().for_each(|place| *place = hosts);
    }

    /// Which translator made the record at a place.
    pub(super) fn learnt(&self, at: u32) -> Option<Learnt> {
        self.records.get(at as usize).and_then(|words| Learnt::from_word(words[LEARNT]))
    }

    /// Whether the flow at a place is the outside of a translated one.
    pub(super) fn outside(&self, at: u32) -> Option<Outside> {
        self.records.get(at as usize).and_then(|words| Outside::from_word(words[OUTSIDE]))
    }

    /// Notes that the flow at a place is the outside of a translated one, or that it is not.
    pub(super) fn set_outside(&mut self, at: u32, outside: Option<Outside>) {
        if let Some(words) = self.records.get_mut(at as usize) {
            words[OUTSIDE] = words[OUTSIDE] & BACK_MASK | Outside::to_word(outside);
        }
    }

    /// Where packets of the reverse direction leave, if the chain of the flow does not say it.
    #[inline(always)]
    pub(super) fn back(&self, at: u32) -> Option<PortKey> {
        let word = self.records.get(at as usize).map_or(0, |words| words[OUTSIDE]);
        (word & BACK_PRESENT != 0).then_some(PortKey((word >> BACK_SHIFT) as u16))
    }

    /// Changes where they leave.
    pub(super) fn set_back(&mut self, at: u32, back: Option<PortKey>) {
        if let Some(words) = self.records.get_mut(at as usize) {
            let back = back.map_or(0, |PortKey(key)| BACK_PRESENT | u64::from(key) << BACK_SHIFT);
            words[OUTSIDE] = words[OUTSIDE] & !BACK_MASK | back;
        }
    }

    /// Notes which translator made the record at a place.
    pub(super) fn set_learnt(&mut self, at: u32, learnt: Option<Learnt>) {
        if let Some(words) = self.records.get_mut(at as usize) {
            words[LEARNT] = words[LEARNT] & !LEARNT_MASK | Learnt::to_word(learnt);
        }
    }

    /// The chain that the flow at a place takes instead.
    #[inline(always)]
    pub(super) fn redirect(&self, at: u32) -> Option<Redirect> {
        self.records.get(at as usize).and_then(|words| Redirect::from_word(words[LEARNT]))
    }

    /// Changes the chain that the flow at a place takes instead.
    pub(super) fn set_redirect(&mut self, at: u32, redirect: Option<Redirect>) {
        if let Some(words) = self.records.get_mut(at as usize) {
            words[LEARNT] = words[LEARNT] & LEARNT_MASK | Redirect::to_word(redirect);
        }
    }

    /// The hash and the version of the flow at a place; zero for none.
    #[inline(always)]
    pub(super) fn flow(&self, at: u32) -> (u64, u32) {
        self.records.get(at as usize).map_or((0, 0), |words| (words[0], (words[1] >> 32) as u32))
    }

    /// Whether the record at a place belongs to the flow whose hash has these upper bits, and is assigned so.
    #[inline(always)]
    pub(super) fn is_assigned(&self, at: u32, check: u16, assignment: &Assignment) -> bool {
        let Some(words) = self.records.get(at as usize) else { return false };
        let has = |(hop, slot): (usize, u8)| {
            words.get(ASSIGNED + hop / 8).is_some_and(|word| (word >> (hop % 8 * 8)) as u8 == slot)
        };
        words[0] != 0
            && (words[0] >> 48) as u16 == check
            && (words[1] >> 32) as u32 == assignment.version
            && assignment.places.into_iter().all(has)
    }

    /// The slot at a hop of the record at a place.
    #[inline(always)]
    pub(super) fn slot(&self, at: u32, hop: usize) -> u8 {
        let word = self.records.get(at as usize).and_then(|words| words.get(ASSIGNED + hop / 8));
        word.map_or(UNASSIGNED, |word| (word >> (hop % 8 * 8)) as u8)
    }

    /// Changes the slot at a hop.
    pub(super) fn set_slot(&mut self, at: u32, hop: usize, slot: u8) {
        if let Some(word) =
            self.records.get_mut(at as usize).and_then(|words| words.get_mut(ASSIGNED + hop / 8))
        {
            let shift = hop % 8 * 8;
            *word = *word & !(0xff << shift) | u64::from(slot) << shift;
        }
    }

    /// The record at a place.
    pub(super) fn get(&self, at: u32) -> Option<FlowRecord> {
        self.records.get(at as usize).filter(|words| words[0] != 0).map(record_of)
    }

    /// Looks at some records, and takes out those that were not used for long, or that `is_dead`.
    pub(super) fn forget(
        &mut self,
        count: usize,
        seconds: u32,
        is_dead: impl Fn(u32) -> bool,
        mut forgotten: impl FnMut(FlowRecord),
    ) {
        for _ in 0..count.min(self.records.len()) {
            self.sweep = (self.sweep + 1) % self.records.len().max(1);
            let Some(words) = self.records.get_mut(self.sweep).filter(|words| words[0] != 0) else {
                continue;
            };
            if is_idle(words, seconds) || is_dead((words[1] >> 32) as u32) {
                let old = record_of(words);
                words[0] = 0;
                self.index.remove(HandleIndex::tag(old.hash), self.sweep as u32);
                self.free.push(self.sweep as u32);
                forgotten(old);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;
    use std::collections::BTreeMap;

    fn record(hash: u64) -> FlowRecord {
        let mut slots = [UNASSIGNED; MAX_HOPS];
        slots[0] = hash as u8;
        slots[31] = 7;
        FlowRecord { hash, version: 3, slots, outside: None, learnt: None, redirect: None }
    }

    #[test]
    fn records_are_found_until_they_are_idle() {
        let mut records = FlowRecords::new(64);
        let hash = |number: u64| number << 33 | number;
        for number in 1..=40 {
            let (at, old) = records.insert(record(hash(number)), 5);
            assert_eq!((records.get(at), old), (Some(record(hash(number))), None));
        }
        let nine = hash(9);
        assert_eq!((records.len(), records.find(nine, 2, 5)), (40, None));
        let at = records.find(nine, 3, 100).unwrap();
        assert_eq!((records.slot(at, 0), records.slot(at, 1), records.slot(at, 31)), (9, UNASSIGNED, 7));
        records.set_slot(at, 1, 4);
        assert_eq!((records.slot(at, 0), records.slot(at, 1), records.flow(at)), (9, 4, (nine, 3)));
        let mut gone = 0;
        records.forget(64, 5 + MAX_IDLE + 1, |_| false, |_| gone += 1);
        assert_eq!((gone, records.len(), records.find(nine, 3, 0)), (39, 1, Some(at)));
        records.forget(64, 100, |version| version == 3, |_| gone += 1);
        assert_eq!((gone, records.len()), (40, 0));
    }

    /// The flows that are there, and no others, have records, whatever comes and goes.
    #[test]
    fn records_are_those_of_a_map() {
        let (mut random, mut records) = (Random::new(5), FlowRecords::new(2000));
        let mut map: BTreeMap<(u64, u32), (u32, FlowRecord)> = BTreeMap::new();
        let mut displaced = 0;
        for round in 0..40_000u32 {
            // More flows than there is room for, some with equal tags, or with equal hashes in two versions.
            let hash = (random.below_u64(900) + 1) << 32 | random.below_u64(4) | 1;
            let version = random.below(2);
            let key = (hash, version);
            let found = records.peek(hash, version);
            assert_eq!(found, map.get(&key).map(|(at, _)| *at), "round {round}");
            if found.is_none() {
                let wanted = FlowRecord { version, ..record(hash) };
                let (at, old) = records.insert(wanted, round / 400);
                assert_eq!(records.get(at), Some(wanted));
                if let Some(old) = old {
                    displaced += 1;
                    assert_eq!(map.remove(&(old.hash, old.version)), Some((at, old)));
                }
                assert_eq!(map.insert(key, (at, wanted)), None);
            }
            if round % 1000 == 999 {
                let dead = random.below(2);
                let count = random.below(900) as usize;
                records.forget(
                    count,
                    round / 400,
                    |version| version == dead,
                    |old| {
                        assert_eq!(map.remove(&(old.hash, old.version)).map(|(_, record)| record), Some(old));
                    },
                );
            }
            assert_eq!((records.len(), records.displaced), (map.len(), displaced));
        }
        assert!(displaced > 0 && map.len() > 1000, "{displaced} displaced, {} there", map.len());
        for ((hash, version), (at, wanted)) in map {
            assert_eq!((records.peek(hash, version), records.get(at)), (Some(at), Some(wanted)));
        }
    }

    /// As many flows as there is room for have records, close together.
    #[test]
    fn all_records_are_used() {
        let (mut random, mut records) = (Random::new(6), FlowRecords::new(20_000));
        let hashes: Vec<u64> = (0..20_000).map(|_| random.next()).collect();
        for (hash, expected) in hashes.iter().zip(0..) {
            let (at, old) = records.insert(record(*hash), 5);
            assert_eq!((at, old, records.places()), (expected, None, expected as usize + 1));
        }
        assert_eq!((records.len(), records.displaced), (20_000, 0));
        for (hash, expected) in hashes.iter().zip(0..) {
            assert_eq!(records.peek(*hash, 3), Some(expected));
        }
        // A place is used again.
        records.forget(1, 7, |_| true, |_| {});
        let (at, old) = records.insert(record(77), 5);
        assert_eq!((at, old, records.peek(hashes[1], 3), records.len()), (1, None, None, 20_000));
        let (_, old) = records.insert(record(78), 6);
        assert_eq!((old.is_some(), records.len(), records.displaced), (true, 20_000, 1));
    }

    #[test]
    fn addresses_are_those_of_the_flow_that_has_the_record() {
        let tuple = |addresses: [u32; 2]| {
            let ends = addresses.map(|address| flow_table::FlowEnd { address, port: 7 });
            FlowTuple { ends: Some(ends), ..FlowTuple::default() }
        };
        let mut records = FlowRecords::new(MIN_RECORDS);
        let (before, _) = records.insert(record(1), 5);
        let (at, _) = records.insert(record(2), 5);
        records.set_hosts(at, &tuple([1, 2]), true);
        assert_eq!((records.hosts(before), records.hosts(at)), (None, Some([2, 1])));
        records.forget(9, 5 + MAX_IDLE + 1, |_| false, |_| ());
        assert_eq!(records.hosts(at), None);
        // Over IPv6, there are none.
        let both = [3, 4].map(|hash| records.insert(record(hash), 300).0);
        both.into_iter().for_each(|at| records.set_hosts(at, &FlowTuple::default(), false));
        assert_eq!(both.map(|at| records.hosts(at)), [None; 2]);
        records.set_hosts(at, &tuple([1, 2]), false);
        assert_eq!(records.hosts(at), Some([1, 2]));
        records.forget_hosts();
        assert_eq!(records.hosts(at), None);
    }

    #[test]
    fn a_full_table_loses_the_flow_that_was_used_least_recently() {
        let mut records = FlowRecords::new(MIN_RECORDS);
        for (hash, seconds) in [(1, 10), (2, 11), (3, 12), (4, 13)] {
            records.insert(record(hash), seconds);
        }
        records.find(1, 3, 14);
        let (_, old) = records.insert(record(5), 15);
        assert_eq!((old, records.len(), records.displaced), (Some(record(2)), 4, 1));
        let (_, old) = records.insert(record(6), 15 + MAX_IDLE);
        assert_eq!((old, records.displaced), (Some(record(3)), 1));
    }

    #[test]
    fn a_translator_displaces_no_living_flow_of_others() {
        let mut records = FlowRecords::new(MIN_RECORDS);
        let learnt = |hash: u64, slot: u8| FlowRecord {
            learnt: Some(Learnt { service: 300, slot }),
            outside: Some(Outside { hop: 31, far: u32::MAX }),
            ..record(hash)
        };
        for (hash, seconds) in [(1, 10), (2, 11), (3, 12)] {
            records.insert(record(hash), seconds);
        }
        let (at, old) = records.insert_learnt(learnt(4, 7), 13).unwrap();
        assert_eq!((records.get(at), old), (Some(learnt(4, 7)), None));
        // Another instance has no place; the same one replaces its own record.
        assert_eq!(records.insert_learnt(learnt(5, 8), 14), None);
        assert_eq!(records.insert_learnt(learnt(6, 7), 14), Some((at, Some(learnt(4, 7)))));
        assert_eq!((records.len(), records.displaced), (4, 1));
        // An idle record may go.
        let (_, old) = records.insert_learnt(learnt(7, 8), 11 + MAX_IDLE).unwrap();
        assert_eq!((old, records.displaced), (Some(record(1)), 1));
        records.set_outside(at, None);
        assert_eq!(records.outside(at), None);
        // Nothing of it stays for the next one.
        let (at, _) = records.insert(record(9), 400);
        assert_eq!(records.get(at), Some(record(9)));
    }

    /// What concerns translators, the chain that a flow takes, and where it leaves in reverse share words.
    #[test]
    fn parts_of_a_record_change_by_themselves() {
        let mut records = FlowRecords::new(MIN_RECORDS);
        let redirect = Some(Redirect { chain: u16::MAX, generation: Redirect::GENERATIONS - 1 });
        let (learnt, outside) =
            (Some(Learnt { service: u16::MAX, slot: 127 }), Some(Outside { hop: 31, far: u32::MAX }));
        let (at, _) = records.insert(FlowRecord { redirect, ..record(1) }, 1);
        assert_eq!((records.redirect(at), records.learnt(at), records.back(at)), (redirect, None, None));
        records.set_learnt(at, learnt);
        records.set_outside(at, outside);
        records.set_back(at, Some(PortKey(u16::MAX)));
        assert_eq!(records.get(at), Some(FlowRecord { learnt, outside, redirect, ..record(1) }));
        assert_eq!(records.back(at), Some(PortKey(u16::MAX)));
        records.set_redirect(at, None);
        records.set_back(at, Some(PortKey(0)));
        assert_eq!(records.get(at), Some(FlowRecord { learnt, outside, ..record(1) }));
        let other = Some(Redirect { chain: 0, generation: 0 });
        records.set_redirect(at, other);
        records.set_learnt(at, None);
        records.set_outside(at, None);
        assert_eq!(records.get(at), Some(FlowRecord { redirect: other, ..record(1) }));
        assert_eq!(records.back(at), Some(PortKey(0)));
        records.set_back(at, None);
        assert_eq!(records.back(at), None);
    }
}
