//! Flows that are found by the key of either direction, as a rewriter needs them.

use crate::index::{Candidate, RESIDENT};
use crate::{Index, Key, Seed, Slab};

/// Keys that are looked up side by side, so that their cache misses overlap.
const LANES: usize = 32;

/// Handles in the index have the direction in the lowest bit, so that there are at most so many flows.
const MOST: u32 = u32::MAX >> 1;

/// One direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The flow's handle.
    pub flow: u32,
    /// Whether it is the direction of the replies.
    pub reply: bool,
}

impl Side {
    fn packed(self) -> u32 {
        self.flow << 1 | u32::from(self.reply)
    }

    #[inline]
    fn unpacked(packed: u32) -> Self {
        Self { flow: packed >> 1, reply: packed & 1 != 0 }
    }
}

/// A flow with the keys by which packets of its two directions find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<K, F> {
    /// The key of packets as they were sent first, and that of replies.
    pub keys: [K; 2],
    /// What its owner keeps.
    pub flow: F,
}

/// Flows found by the keys of both directions.
///
/// A look-up costs two cache misses, a bucket of the index and the flow with its keys, if the pair fits a cache line:
/// with keys of 12 bytes the flow's own part may have up to 40.
pub struct Pairs<K, F> {
    index: Index,
    pairs: Slab<Pair<K, F>>,
    seed: Seed,
}

/// Why a flow is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairError {
    /// This flow has one of its keys already.
    Known(Side),
    /// There are 2^31 flows.
    Full,
}

impl<K: Key, F> Pairs<K, F> {
    /// No flows. The seed comes from the environment's random numbers.
    pub fn new(seed: Seed) -> Self {
        Self { index: Index::new(), pairs: Slab::new(), seed }
    }

    /// No flows; nothing is allocated until there are more than `flows`.
    pub fn with_capacity(seed: Seed, flows: usize) -> Self {
        Self { index: Index::with_capacity(flows.saturating_mul(2)), pairs: Slab::with_capacity(flows), seed }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The flow and direction of a packet's key.
    #[inline]
    pub fn find(&self, key: K) -> Option<Side> {
        let hash = key.hash(self.seed);
        self.settle(hash, self.index.candidate(hash), key)
    }

    /// The flow and direction of a key, of whose hash the first bucket says this.
    #[inline(always)]
    fn settle(&self, hash: u64, candidate: Candidate, key: K) -> Option<Side> {
        match candidate {
            Candidate::Handle(packed) if self.is(packed, key) => Some(Side::unpacked(packed)),
            Candidate::None => None,
            _ => self.search(hash, key),
        }
    }

    /// The flow and direction of a key that is not the first candidate, if any.
    #[inline(never)]
    fn search(&self, hash: u64, key: K) -> Option<Side> {
        self.index.find(hash, |packed| self.is(packed, key)).map(Side::unpacked)
    }

    /// Looks many keys up: `sides[i]` becomes what `find(keys[i])` returns. Stops at the end of the shorter slice.
    pub fn find_batch(&self, keys: &[K], sides: &mut [Option<Side>]) {
        if self.index.bytes() + self.pairs.bytes() <= RESIDENT {
            for (&key, side) in keys.iter().zip(sides) {
                *side = self.find(key);
            }
        } else {
            self.find_overlapped(keys, sides);
        }
    }

    fn find_overlapped(&self, keys: &[K], sides: &mut [Option<Side>]) {
        let mut hashes = [0; LANES];
        let mut candidates = [Candidate::None; LANES];
        for (keys, sides) in keys.chunks(LANES).zip(sides.chunks_mut(LANES)) {
            let lanes = keys.len().min(sides.len());
            let (keys, sides) = (&keys[..lanes], &mut sides[..lanes]);
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash(self.seed);
                self.index.prefetch(*hash);
            }
            for (candidate, &hash) in candidates.iter_mut().zip(&hashes[..lanes]) {
                *candidate = self.index.candidate(hash);
                if let Candidate::Handle(packed) = *candidate {
                    self.pairs.prefetch(packed >> 1);
                }
            }
            for (((side, &key), &candidate), &hash) in
                sides.iter_mut().zip(keys).zip(&candidates).zip(&hashes)
            {
                *side = self.settle(hash, candidate, key);
            }
        }
    }

    /// A flow with its keys.
    #[inline]
    pub fn get(&self, flow: u32) -> Option<&Pair<K, F>> {
        self.pairs.get(flow)
    }

    /// A flow, to be changed.
    #[inline]
    pub fn get_mut(&mut self, flow: u32) -> Option<&mut F> {
        self.pairs.get_mut(flow).map(|pair| &mut pair.flow)
    }

    /// A flow, to be changed, with its keys.
    #[inline]
    pub fn parts_mut(&mut self, flow: u32) -> Option<(&[K; 2], &mut F)> {
        self.pairs.get_mut(flow).map(|pair| (&pair.keys, &mut pair.flow))
    }

    /// Stores a flow and returns its handle. Neither key may be known. If both keys are equal, packets find the
    /// direction of replies.
    pub fn insert(&mut self, pair: Pair<K, F>) -> Result<u32, PairError> {
        let [forward, reply] = pair.keys;
        if let Some(known) = self.find(forward).or_else(|| self.find(reply)) {
            return Err(PairError::Known(known));
        }
        if self.pairs.len() >= MOST as usize {
            return Err(PairError::Full);
        }
        let flow = self.pairs.insert(pair).map_err(|_| PairError::Full)?;
        if forward != reply {
            self.index.insert(forward.hash(self.seed), Side { flow, reply: false }.packed());
        }
        self.index.insert(reply.hash(self.seed), Side { flow, reply: true }.packed());
        Ok(flow)
    }

    /// Removes a flow and returns it.
    pub fn remove(&mut self, flow: u32) -> Option<Pair<K, F>> {
        let pair = self.pairs.remove(flow)?;
        let [forward, reply] = pair.keys;
        if forward != reply {
            self.index.remove(forward.hash(self.seed), Side { flow, reply: false }.packed());
        }
        self.index.remove(reply.hash(self.seed), Side { flow, reply: true }.packed());
        Some(pair)
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        *self = Self::new(self.seed);
    }

    /// All flows with their handles, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Pair<K, F>)> {
        self.pairs.iter()
    }

    #[inline(always)]
    fn is(&self, packed: u32, key: K) -> bool {
        let Side { flow, reply } = Side::unpacked(packed);
        self.pairs.get(flow).is_some_and(|pair| key == pair.keys[usize::from(reply)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ip4Flow;
    use alloc::collections::BTreeMap;
    use alloc::vec;
    use alloc::vec::Vec;
    use random::Random;

    /// One of a few flows, so that keys meet.
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
        let mut pairs = Pairs::new(Seed::new(1, 2));
        let mut model: BTreeMap<Ip4Flow, Side> = BTreeMap::new();
        for step in 0..20_000u32 {
            let (forward, reply) = (key(&mut random), key(&mut random));
            if random.below(2) == 0 {
                let known = model.get(&forward).or(model.get(&reply)).copied();
                match pairs.insert(Pair { keys: [forward, reply], flow: step }) {
                    Err(error) => assert_eq!(Some(error), known.map(PairError::Known)),
                    Ok(flow) => {
                        assert_eq!(known, None);
                        model.insert(forward, Side { flow, reply: false });
                        model.insert(reply, Side { flow, reply: true });
                        assert_eq!(pairs.get_mut(flow), Some(&mut step.clone()));
                    }
                }
            } else if let Some(Side { flow, .. }) = pairs.find(forward) {
                let pair = pairs.remove(flow).unwrap();
                pair.keys.iter().for_each(|key| _ = model.remove(key));
                assert_eq!(pairs.remove(flow), None);
            }
        }
        let keys: Vec<_> = (0..1_000).map(|_| key(&mut random)).collect();
        let mut sides = vec![None; keys.len()];
        pairs.find_batch(&keys, &mut sides);
        let mut overlapped = vec![None; keys.len()];
        pairs.find_overlapped(&keys, &mut overlapped);
        assert_eq!(sides, overlapped);
        for (key, side) in keys.iter().zip(&sides) {
            assert_eq!((*side, pairs.find(*key)), (model.get(key).copied(), *side));
        }
        assert!(
            pairs.iter().all(|(flow, pair)| model.get(&pair.keys[1]).map(|side| side.flow) == Some(flow))
        );
        pairs.clear();
        assert!(pairs.is_empty() && pairs.find(keys[0]).is_none());
    }

    #[test]
    fn a_rewriter_s_flow_fits_a_cache_line() {
        assert_eq!(size_of::<Option<Pair<Ip4Flow, ([u64; 4], u32, u16, bool)>>>(), 64);
    }
}
