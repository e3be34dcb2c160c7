//! Flows that are found by the key of either direction, for rewriters.

use crate::index::{BucketLookup, Candidate};
use crate::{Index, Key, Seed, Slab};

/// Maximum flows: index handles hold the direction in the lowest bit.
const MAX_FLOWS: u32 = u32::MAX >> 1;

/// One direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDirection {
    /// The flow's handle.
    pub flow: u32,
    /// Whether this is the reply direction.
    pub reply: bool,
}

impl FlowDirection {
    fn packed(self) -> u32 {
        self.flow << 1 | u32::from(self.reply)
    }

    #[inline]
    fn unpacked(packed: u32) -> Self {
        Self { flow: packed >> 1, reply: packed & 1 != 0 }
    }
}

/// A flow with the keys of its two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BidirectionalFlow<K, F> {
    /// The key of the original direction, and that of replies.
    pub keys: [K; 2],
    /// The owner's data.
    pub flow: F,
}

/// Flows, found by the keys of both directions.
///
/// A lookup costs two cache misses, one for a bucket of the index and one for the flow with its keys, if the pair fits
/// in a cache line: with 12-byte keys the owner's data may have up to 40 bytes.
pub struct BidirectionalTable<K, F> {
    index: Index,
    flows: Slab<BidirectionalFlow<K, F>>,
    seed: Seed,
}

/// The reason why a flow can't be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// This flow already has one of the keys.
    Known(FlowDirection),
    /// There are already 2^31 flows.
    Full,
}

/// One of many lookups that have begun, between its two cache misses.
pub struct FlowLookup<'a, K, F> {
    table: &'a BidirectionalTable<K, F>,
    bucket: BucketLookup<'a>,
}

impl<K: Key, F> FlowLookup<'_, K, F> {
    /// The likely result of `find`, whose flow is prefetched. In rare cases it is another flow with the same hash: compare the
    /// key of the flow, and call `find_again` if it differs. `None` is certain.
    #[inline(always)]
    pub fn likely(&self) -> Option<FlowDirection> {
        let direction = FlowDirection::unpacked(self.table.index.likely(self.bucket)?);
        self.table.flows.prefetch(direction.flow);
        Some(direction)
    }
}

impl<K: Key, F> BidirectionalTable<K, F> {
    /// Creates an empty table. The seed comes from the environment's random numbers.
    pub fn new(seed: Seed) -> Self {
        Self { index: Index::new(), flows: Slab::new(), seed }
    }

    /// Creates an empty table that allocates nothing until it holds more than `flows`.
    pub fn with_capacity(seed: Seed, flows: usize) -> Self {
        Self { index: Index::with_capacity(flows.saturating_mul(2)), flows: Slab::with_capacity(flows), seed }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The flow and direction of a key.
    #[inline]
    pub fn find(&self, key: K) -> Option<FlowDirection> {
        let hash = key.hash(self.seed);
        self.resolve_candidate(hash, self.index.candidate(hash), key)
    }

    /// The flow and direction of a key that was looked up before, by `begin_lookup` or `find`. Flows may have been added or
    /// removed since.
    #[inline]
    pub fn find_again(&self, key: K, before: Option<FlowDirection>) -> Option<FlowDirection> {
        before.filter(|before| self.is(before.packed(), key)).or_else(|| self.find(key))
    }

    /// The flow and direction of a key, given the result of reading its first bucket.
    #[inline(always)]
    fn resolve_candidate(&self, hash: u64, candidate: Candidate, key: K) -> Option<FlowDirection> {
        match candidate {
            Candidate::Handle(packed) if self.is(packed, key) => Some(FlowDirection::unpacked(packed)),
            Candidate::None => None,
            _ => self.search(hash, key),
        }
    }

    /// The flow and direction of a key, by a full search.
    #[inline(never)]
    fn search(&self, hash: u64, key: K) -> Option<FlowDirection> {
        self.index.find(hash, |packed| self.is(packed, key)).map(FlowDirection::unpacked)
    }

    /// Begins to look up one of many keys. To let their cache misses overlap, begin some lookups, and then take the results.
    #[inline(always)]
    pub fn begin_lookup(&self, key: K) -> FlowLookup<'_, K, F> {
        FlowLookup { table: self, bucket: self.index.begin_lookup(key.hash(self.seed)) }
    }

    /// A flow with its keys.
    #[inline]
    pub fn get(&self, flow: u32) -> Option<&BidirectionalFlow<K, F>> {
        self.flows.get(flow)
    }

    /// A flow's data, mutable.
    #[inline]
    pub fn get_mut(&mut self, flow: u32) -> Option<&mut F> {
        self.flows.get_mut(flow).map(|pair| &mut pair.flow)
    }

    /// A flow's keys, and its data, mutable.
    #[inline]
    pub fn parts_mut(&mut self, flow: u32) -> Option<(&[K; 2], &mut F)> {
        self.flows.get_mut(flow).map(|pair| (&pair.keys, &mut pair.flow))
    }

    /// Stores a flow and returns its handle. Fails if either key is already present. If both keys are equal, packets
    /// find the reply direction.
    pub fn insert(&mut self, pair: BidirectionalFlow<K, F>) -> Result<u32, InsertError> {
        let [forward, reply] = pair.keys;
        if let Some(known) = self.find(forward).or_else(|| self.find(reply)) {
            return Err(InsertError::Known(known));
        }
        if self.flows.len() >= MAX_FLOWS as usize {
            return Err(InsertError::Full);
        }
        let flow = self.flows.insert(pair).map_err(|_| InsertError::Full)?;
        if forward != reply {
            self.index.insert(forward.hash(self.seed), FlowDirection { flow, reply: false }.packed());
        }
        self.index.insert(reply.hash(self.seed), FlowDirection { flow, reply: true }.packed());
        Ok(flow)
    }

    /// Removes a flow and returns it.
    pub fn remove(&mut self, flow: u32) -> Option<BidirectionalFlow<K, F>> {
        let pair = self.flows.remove(flow)?;
        let [forward, reply] = pair.keys;
        if forward != reply {
            self.index.remove(forward.hash(self.seed), FlowDirection { flow, reply: false }.packed());
        }
        self.index.remove(reply.hash(self.seed), FlowDirection { flow, reply: true }.packed());
        Some(pair)
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        *self = Self::new(self.seed);
    }

    /// The flow with the lowest handle that is not below this one, with its handle.
    pub fn at_or_after(&self, handle: u32) -> Option<(u32, &BidirectionalFlow<K, F>)> {
        self.flows.at_or_after(handle)
    }

    /// All flows with their handles, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &BidirectionalFlow<K, F>)> {
        self.flows.iter()
    }

    #[inline(always)]
    fn is(&self, packed: u32, key: K) -> bool {
        let FlowDirection { flow, reply } = FlowDirection::unpacked(packed);
        self.flows.get(flow).is_some_and(|pair| key == pair.keys[usize::from(reply)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ip4Flow;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use random::Random;

    /// One of a few flows, so that keys collide.
    fn key(random: &mut Random) -> Ip4Flow {
        let [source, destination, source_port, destination_port] = core::array::from_fn(|_| random.below(4));
        Ip4Flow {
            source,
            destination,
            source_port: source_port as u16,
            destination_port: destination_port as u16,
        }
    }

    #[test]
    fn agrees_with_an_ordered_map() {
        let mut random = Random::new(4);
        let mut table = BidirectionalTable::new(Seed::new(1, 2));
        let mut model: BTreeMap<Ip4Flow, FlowDirection> = BTreeMap::new();
        for step in 0..20_000u32 {
            let (forward, reply) = (key(&mut random), key(&mut random));
            if random.below(2) == 0 {
                let known = model.get(&forward).or(model.get(&reply)).copied();
                match table.insert(BidirectionalFlow { keys: [forward, reply], flow: step }) {
                    Err(error) => assert_eq!(Some(error), known.map(InsertError::Known)),
                    Ok(flow) => {
                        assert_eq!(known, None);
                        model.insert(forward, FlowDirection { flow, reply: false });
                        model.insert(reply, FlowDirection { flow, reply: true });
                        assert_eq!(table.get_mut(flow), Some(&mut step.clone()));
                    }
                }
            } else if let Some(FlowDirection { flow, .. }) = table.find(forward) {
                let pair = table.remove(flow).unwrap();
                pair.keys.iter().for_each(|key| _ = model.remove(key));
                assert_eq!(table.remove(flow), None);
            }
        }
        let keys: Vec<_> = (0..1_000).map(|_| key(&mut random)).collect();
        let lookups: Vec<_> = keys.iter().map(|key| table.begin_lookup(*key)).collect();
        let directions: Vec<_> = lookups.iter().map(FlowLookup::likely).collect();
        for (key, likely) in keys.iter().zip(&directions) {
            let known = model.get(key).copied();
            assert_eq!((table.find(*key), table.find_again(*key, *likely)), (known, known));
            assert_eq!(*likely, known, "no other key has the hash of {key}");
            // What was found before may belong to another key by now, or to none.
            assert_eq!(table.find_again(*key, directions[0]), known);
            assert_eq!(
                table.find_again(*key, Some(FlowDirection { flow: u32::MAX >> 1, reply: true })),
                known
            );
        }
        assert!(
            table.iter().all(|(flow, pair)| model.get(&pair.keys[1]).map(|side| side.flow) == Some(flow))
        );
        table.clear();
        assert!(table.is_empty() && table.find(keys[0]).is_none());
    }

    #[test]
    fn a_rewriter_s_flow_fits_a_cache_line() {
        assert_eq!(size_of::<Option<BidirectionalFlow<Ip4Flow, ([u64; 4], u32, u16, bool)>>>(), 64);
    }
}
