//! Allocation of a free number, such as a port or the host part of an address, from a range.
//!
//! A rewriter with a range takes the first number from some start, wrapping around, that no flow of the same peer uses.
//! The flow table answers whether a number is used, which is fast while few are. For a peer that has taken most of a
//! range, the numbers known to be taken are kept in a hierarchical bitmap. A choice then takes a few steps even if
//! 64,511 of 64,512 numbers are taken, and a failure costs no more.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Probes of the flow table before a set of taken numbers is built for the peer.
const MAX_PROBES: u32 = 32;

/// Maximum peers with a set of taken numbers: 8 KB each for a range of ports. Bounds the memory that a flood of flows
/// can claim. Beyond it, the set of the lowest peer is discarded, and rebuilt when needed.
const MAX_SETS: usize = 1_024;

/// The largest range with a set: 2 MB of bits. Larger ranges are only probed.
const MAX_SET_SIZE: u32 = 1 << 24;

/// A set of numbers below a limit, as a hierarchy of bitmaps. A bit of a higher level is set if the word below it is
/// full.
#[derive(Clone)]
pub struct NumberSet {
    limit: u32,
    levels: Vec<Vec<u64>>,
}

impl NumberSet {
    /// Creates an empty set of numbers below `limit`.
    pub fn new(limit: u32) -> Self {
        let mut levels = Vec::new();
        let mut bits = limit.max(1) as usize;
        loop {
            let mut words = alloc::vec![0u64; bits.div_ceil(64)];
            // Bits beyond the limit count as taken.
            if let (Some(last), part @ 1..) = (words.last_mut(), bits % 64) {
                *last = u64::MAX << part;
            }
            bits = words.len();
            levels.push(words);
            if bits == 1 {
                break;
            }
        }
        let mut set = Self { limit, levels };
        if limit == 0 {
            set.add(0);
        }
        set
    }

    /// Whether a number is in the set; true for those beyond the limit.
    pub fn contains(&self, number: u32) -> bool {
        let word = self.levels[0].get(number as usize / 64).copied().unwrap_or(u64::MAX);
        word >> (number % 64) & 1 != 0
    }

    /// Adds a number.
    pub fn add(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(at / 64) else { return };
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                return;
            }
            at /= 64;
        }
    }

    /// Removes a number.
    pub fn remove(&mut self, number: u32) {
        if number >= self.limit {
            return;
        }
        let mut at = number as usize;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(at / 64) else { return };
            let was_full = *word == u64::MAX;
            *word &= !(1 << (at % 64));
            if !was_full {
                return;
            }
            at /= 64;
        }
    }

    /// The first number at or after `from` that is not in the set.
    pub fn next_free(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        let mut height = 0;
        // Go up until a word has a free bit at or after the index ...
        let mut found = loop {
            let words = self.levels.get(height)?;
            let free = words.get(at / 64).map_or(0, |word| !word & u64::MAX << (at % 64));
            if free != 0 {
                break at / 64 * 64 + free.trailing_zeros() as usize;
            }
            at = at / 64 + 1;
            height += 1;
        };
        // ... then down along the first words that are not full.
        for words in self.levels[..height].iter().rev() {
            found = found * 64 + words.get(found)?.trailing_ones() as usize;
        }
        u32::try_from(found).ok()
    }

    /// The first number that is not in the set, searching from `from` to the limit and then from 0.
    pub fn next_free_around(&self, from: u32) -> Option<u32> {
        self.next_free(from).or_else(|| self.next_free(0))
    }
}

/// A range of numbers to choose from, and how to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberPool {
    /// The first number.
    pub base: u32,
    /// The last number, relative to `base`; 0 for a range of one number, which leaves no choice.
    pub top: u32,
    /// Whether each search starts after the previous choice rather than at a random number.
    pub sequential: bool,
    /// Whether a flow keeps its number if that is free and in the range.
    pub same_first: bool,
}

/// Chooses numbers from a range for successive flows.
#[derive(Clone, Debug)]
pub struct NumberChooser {
    pool: NumberPool,
    /// The start of the next sequential search, relative to `base`.
    next: u32,
}

impl NumberChooser {
    /// Starts at the first number of the range.
    pub fn new(pool: NumberPool) -> Self {
        Self { pool, next: 0 }
    }

    /// The range.
    pub fn pool(&self) -> NumberPool {
        self.pool
    }

    /// Chooses a number for a flow of `peer` whose current number is `current`; `None` if all are taken.
    ///
    /// `random(top)` returns a number from 0 to `top`, and `is_taken(number)` asks the flow table. The owner must
    /// report every released number to `known.release`.
    pub fn choose(
        &mut self,
        peer: u128,
        current: u32,
        known: &mut TakenNumbers,
        random: impl FnOnce(u32) -> u32,
        is_taken: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let NumberPool { base, top, sequential, same_first } = self.pool;
        let mut is_taken = is_taken;
        let same = current.wrapping_sub(base);
        let kept = (same_first && same <= top && !is_taken(current)).then_some(same);
        let found = kept.or_else(|| {
            let start = match sequential {
                true => self.next,
                false => random(top),
            };
            let start = if start > top { 0 } else { start };
            known.search(peer, base, top, start, |distance| is_taken(base.wrapping_add(distance)))
        })?;
        self.next = found.wrapping_add(1);
        Some(base.wrapping_add(found))
    }
}

/// The numbers known to be taken, for peers that have taken many.
///
/// A peer is what a number must be unique for, packed into one key: the remote address and port, and the local address.
/// A set holds only those taken numbers that a search has found.
#[derive(Default)]
pub struct TakenNumbers {
    sets: BTreeMap<(u128, u32, u32), NumberSet>,
}

impl TakenNumbers {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of peers with a set.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Whether no peer has a set.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Reports that no flow of `peer` uses `number` any more.
    pub fn release(&mut self, peer: u128, number: u32) {
        if self.sets.is_empty() {
            return;
        }
        for (&(_, base, _), set) in self.sets.range_mut((peer, 0, 0)..=(peer, u32::MAX, u32::MAX)) {
            if let Some(distance) = number.checked_sub(base) {
                set.remove(distance);
            }
        }
    }

    /// Removes all sets.
    pub fn clear(&mut self) {
        self.sets.clear();
    }

    /// The first free distance from `start`, wrapping around after `top`.
    fn search(
        &mut self,
        peer: u128,
        base: u32,
        top: u32,
        start: u32,
        mut is_taken: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let key = (peer, base, top);
        if !self.sets.contains_key(&key) {
            let probes = if top < MAX_SET_SIZE { MAX_PROBES.min(top) } else { top };
            let found =
                (start..=top).chain(0..start).take(probes as usize + 1).find(|&distance| !is_taken(distance));
            if found.is_some() || probes == top {
                return found;
            }
            if self.sets.len() >= MAX_SETS {
                self.sets.pop_first();
            }
            self.sets.insert(key, NumberSet::new(top + 1));
        }
        let set = self.sets.get_mut(&key)?;
        loop {
            let distance = set.next_free_around(start)?;
            if !is_taken(distance) {
                return Some(distance);
            }
            set.add(distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use random::Random;

    #[test]
    fn sets_agree_with_an_ordered_set() {
        for limit in [0, 1, 63, 64, 65, 4_096, 4_097, 70_000] {
            let mut random = Random::new(u64::from(limit) + 1);
            let mut set = NumberSet::new(limit);
            let mut model = BTreeSet::new();
            let check = |set: &NumberSet, model: &BTreeSet<u32>, from: u32| {
                assert_eq!(set.next_free(from), (from..limit).find(|number| !model.contains(number)));
            };
            // Nearly full, so that searches use the upper levels.
            for number in 0..limit {
                if random.below(50) > 0 {
                    set.add(number);
                    model.insert(number);
                }
            }
            for _ in 0..500 {
                let number = random.below(limit + 2);
                if random.below(2) == 0 && number < limit {
                    set.add(number);
                    model.insert(number);
                } else {
                    set.remove(number);
                    model.remove(&number);
                }
                assert_eq!(set.contains(number), number >= limit || model.contains(&number));
                check(&set, &model, random.below(limit + 2));
            }
            (0..limit).for_each(|number| set.add(number));
            assert_eq!(set.next_free_around(limit / 2), None);
        }
    }

    /// Allocates and releases numbers for a few peers. Each choice must equal that of plain probing.
    #[track_caller]
    fn check(pool: NumberPool, peers: u32, gives_up: u32) {
        let mut random = Random::new(u64::from(pool.top) + 9);
        let mut choice = NumberChooser::new(pool);
        let mut known = TakenNumbers::new();
        let mut taken: BTreeSet<(u128, u32)> = BTreeSet::new();
        let mut next = 0;
        for _ in 0..4_000 {
            let peer = u128::from(random.below(peers));
            if random.below(100) < gives_up {
                let from = (peer, random.below(70_000));
                if let Some(&gone) = taken.range(from..).next() {
                    taken.remove(&gone);
                    known.release(gone.0, gone.1);
                }
                continue;
            }
            let current = random.below(70_000);
            let start = random.below(pool.top + 1);
            let begin = if pool.sequential { next } else { start };
            let begin = if begin > pool.top { 0 } else { begin };
            let own = current.wrapping_sub(pool.base);
            let same = (pool.same_first && own <= pool.top).then_some(own);
            let expected = same
                .into_iter()
                .chain(begin..=pool.top)
                .chain(0..begin)
                .find(|distance| !taken.contains(&(peer, pool.base + distance)));
            let chosen =
                choice.choose(peer, current, &mut known, |_| start, |number| taken.contains(&(peer, number)));
            assert_eq!(chosen, expected.map(|distance| pool.base + distance));
            if let Some(number) = chosen {
                next = number - pool.base + 1;
                taken.insert((peer, number));
            }
        }
    }

    #[test]
    fn choices_are_those_of_plain_probing() {
        let pool = NumberPool { base: 1_024, top: 400, sequential: false, same_first: false };
        check(pool, 3, 45);
        check(pool, 3, 5);
        check(NumberPool { sequential: true, ..pool }, 2, 10);
        check(NumberPool { same_first: true, ..pool }, 2, 10);
        check(NumberPool { same_first: true, base: 60_000, top: 1, ..pool }, 4, 20);
        check(NumberPool { top: 20, ..pool }, 1, 30);
    }

    #[test]
    fn a_peer_that_takes_all_ports_costs_a_few_steps_each() {
        let pool = NumberPool { base: 1_024, top: 64_511, sequential: false, same_first: true };
        let mut choice = NumberChooser::new(pool);
        let mut known = TakenNumbers::new();
        let mut random = Random::new(2);
        let mut taken = NumberSet::new(65_536);
        let mut probes = 0u32;
        let mut choose = |random: &mut Random, taken: &NumberSet, known: &mut TakenNumbers| {
            choice.choose(
                7,
                80,
                known,
                |top| random.below(top + 1),
                |number| {
                    probes += 1;
                    taken.contains(number)
                },
            )
        };
        for _ in 0..64_512 {
            let number = choose(&mut random, &taken, &mut known).unwrap();
            assert!(!taken.contains(number));
            taken.add(number);
        }
        for _ in 0..1_000 {
            assert_eq!(choose(&mut random, &taken, &mut known), None);
        }
        taken.remove(5_000);
        known.release(7, 5_000);
        assert_eq!(choose(&mut random, &taken, &mut known), Some(5_000));
        assert!(probes < 500_000, "{probes} probes");
    }
}
