//! Which instance each flow is assigned to, at each hop of its chain.

use super::plan::MAX_HOPS;
use crate::forward::PortKey;
use crate::huge_pages;

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

/// Records of a set. A flow is in one of two sets: mostly in the first one, and in the second one if that was full.
const WAYS: usize = 4;

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

/// Records of flows by hash, in a table of a fixed size. Two flows with one hash share a record, which harms neither: it only
/// assigns instances, and says which chain they take.
///
/// The memory is taken from the system as it is used.
#[derive(Debug)]
pub(super) struct FlowRecords {
    /// Of each record: the hash, the version and the second of the last use, the slots, what concerns translators, and the chain
    /// that the flow takes instead.
    records: Vec<[u64; WORDS]>,
    mask: usize,
    /// Where forgetting goes on.
    sweep: usize,
    len: usize,
    /// Living flows that were displaced by others.
    pub(super) displaced: u64,
}

/// The way of its sets that a flow takes if it is free. So few flows have to be looked for at a second place, as long as the table is
/// not nearly full.
#[inline(always)]
fn home(hash: u64) -> usize {
    (hash >> 62) as usize % WAYS
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

impl FlowRecords {
    /// A table for at least `flows` flows.
    pub(super) fn new(flows: usize) -> Self {
        let count = flows.next_power_of_two().max(WAYS);
        let records = vec![[0; WORDS]; count];
        huge_pages::prefer(&records.as_ptr_range());
        Self { records, mask: count / WAYS - 1, sweep: 0, len: 0, displaced: 0 }
    }

    /// The number of records that there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.records.len()
    }

    /// The number of flows.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first records of the sets in which a flow can be.
    fn sets(&self, hash: u64) -> [usize; 2] {
        [hash, hash >> 32].map(|bits| (bits as usize & self.mask) * WAYS)
    }

    /// The records in which a flow can be, with their places. The first one is where it mostly is.
    fn candidates(&self, hash: u64) -> impl Iterator<Item = (usize, &[u64; WORDS])> {
        let ways = move |set| (0..WAYS).map(move |way| set + (way ^ home(hash)));
        let places = self.sets(hash).into_iter().flat_map(ways);
        places.filter_map(|at| Some((at, self.records.get(at)?)))
    }

    /// Prefetches the record in which a flow mostly is.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let [set, _] = self.sets(hash);
        if let Some(record) = self.records.get(set + home(hash)) {
            packet::prefetch(record);
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
        let at = self.peek(hash, version)?;
        let words = self.records.get_mut(at as usize)?;
        let slot = (words.get(ASSIGNED + hop / 8)? >> (hop % 8 * 8)) as u8;
        if words[LEARNT] & Redirect::PRESENT != 0 || words[OUTSIDE] & BACK_MASK != 0 {
            return None;
        }
        note_use(words, version, seconds);
        Some((at, slot))
    }

    /// Puts a record in the first place that is free, or else in place of the one that was used least recently.
    /// Returns its place, and the record that it replaces.
    pub(super) fn insert(&mut self, record: FlowRecord, seconds: u32) -> (u32, Option<FlowRecord>) {
        let used = |words: &[u64; WORDS]| if words[0] == 0 { 0 } else { 1 + u64::from(words[1] as u32) };
        match self.candidates(record.hash).min_by_key(|(_, words)| used(words)) {
            Some((at, _)) => self.put(at, record, seconds),
            None => (0, None),
        }
    }

    /// Puts a record that a translator's output makes where none is, or one that is idle, or another that the same instance
    /// made. Returns `None`, and changes nothing, if all others live.
    pub(super) fn insert_learnt(
        &mut self,
        record: FlowRecord,
        seconds: u32,
    ) -> Option<(u32, Option<FlowRecord>)> {
        let own = Learnt::to_word(record.learnt);
        let rank = |words: &[u64; WORDS]| match words {
            [0, ..] => Some(0),
            words if is_idle(words, seconds) => Some(1),
            words if words[LEARNT] & LEARNT_MASK == own && own != 0 => Some(2 + u64::from(words[1] as u32)),
            _ => None,
        };
        let ranked = self.candidates(record.hash).filter_map(|(at, words)| Some((rank(words)?, at)));
        let (_, at) = ranked.min_by_key(|(rank, _)| *rank)?;
        Some(self.put(at, record, seconds))
    }

    /// Replaces what is at a place.
    fn put(&mut self, at: usize, record: FlowRecord, seconds: u32) -> (u32, Option<FlowRecord>) {
        let Some(words) = self.records.get_mut(at) else { return (0, None) };
        let old = (words[0] != 0).then(|| record_of(words));
        match old {
            None => self.len += 1,
            Some(_) => self.displaced += u64::from(!is_idle(words, seconds)),
        }
        words[0] = record.hash;
        words[1] = stamp(record.version, seconds);
        for (word, bytes) in words[ASSIGNED..].iter_mut().zip(record.slots.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        words[OUTSIDE] = Outside::to_word(record.outside);
        words[LEARNT] = Learnt::to_word(record.learnt) | Redirect::to_word(record.redirect);
        (at as u32, old)
    }

    /// The place of a flow's record, if it has one. The flow does not count as used.
    #[inline(always)]
    pub(super) fn peek(&self, hash: u64, version: u32) -> Option<u32> {
        let is_it = |words: &[u64; WORDS]| words[0] == hash && (words[1] >> 32) as u32 == version;
        // Mostly one comparison, with the record that was prefetched.
        let [set, _] = self.sets(hash);
        let first = set + home(hash);
        if is_it(self.records.get(first)?) {
            return Some(first as u32);
        }
        self.candidates(hash).find(|(_, words)| is_it(words)).map(|(at, _)| at as u32)
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
                forgotten(record_of(words));
                words[0] = 0;
                self.len -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(hash: u64) -> FlowRecord {
        let mut slots = [UNASSIGNED; MAX_HOPS];
        slots[0] = hash as u8;
        slots[31] = 7;
        FlowRecord { hash, version: 3, slots, outside: None, learnt: None, redirect: None }
    }

    #[test]
    fn records_are_found_until_they_are_idle() {
        let mut records = FlowRecords::new(64);
        for hash in 1..=40 {
            let (at, old) = records.insert(record(hash), 5);
            assert_eq!((records.get(at), old), (Some(record(hash)), None));
        }
        assert_eq!((records.len(), records.find(9, 2, 5)), (40, None));
        let at = records.find(9, 3, 100).unwrap();
        assert_eq!((records.slot(at, 0), records.slot(at, 1), records.slot(at, 31)), (9, UNASSIGNED, 7));
        records.set_slot(at, 1, 4);
        assert_eq!((records.slot(at, 0), records.slot(at, 1), records.flow(at)), (9, 4, (9, 3)));
        let mut gone = 0;
        records.forget(64, 5 + MAX_IDLE + 1, |_| false, |_| gone += 1);
        assert_eq!((gone, records.len(), records.find(9, 3, 0)), (39, 1, Some(at)));
        records.forget(64, 100, |version| version == 3, |_| gone += 1);
        assert_eq!((gone, records.len()), (40, 0));
    }

    #[test]
    fn a_flow_finds_room_in_its_second_set() {
        let mut records = FlowRecords::new(4 * WAYS);
        // All prefer the first set. Each has another one besides.
        let hashes: Vec<u64> = (1..=8).map(|number| number << 34 | (number % 3 + 1) << 32).collect();
        for hash in &hashes {
            let (at, old) = records.insert(record(*hash), 5);
            assert_eq!((records.get(at), old), (Some(record(*hash)), None));
        }
        let places: Vec<_> = hashes.iter().map(|hash| records.find(*hash, 3, 6).unwrap()).collect();
        assert!(places[..4].iter().all(|at| *at < 4) && places[4..].iter().all(|at| *at >= 4), "{places:?}");
        // One that ends does not hide those that came after it.
        records.forget(1, 7, |_| true, |_| {});
        assert_eq!((records.len(), records.peek(hashes[1], 3)), (7, None));
        assert!(places[4..].iter().zip(&hashes[4..]).all(|(at, hash)| records.peek(*hash, 3) == Some(*at)));
        assert_eq!(records.displaced, 0);
    }

    #[test]
    fn a_full_set_loses_the_flow_that_was_used_least_recently() {
        let mut records = FlowRecords::new(WAYS);
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
        let mut records = FlowRecords::new(WAYS);
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
        let mut records = FlowRecords::new(WAYS);
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
