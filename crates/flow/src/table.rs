//! A hash table whose entries have stable handles.

use crate::index::Candidate;
use crate::{Index, Key, Seed, Slab};

/// The result of `find_likely` for a missing key; never a handle.
pub const NO_ENTRY: u32 = u32::MAX;

/// Maps keys to values. A lookup costs two cache misses: a bucket of the index, and the entry.
///
/// An entry's handle stays the same as long as the entry exists. Timeouts and other tables use it to refer to the
/// entry.
pub struct Table<K, V> {
    index: Index,
    entries: Slab<(K, V)>,
    seed: Seed,
}

impl<K: Key, V> Table<K, V> {
    /// Creates an empty table. The seed comes from the environment's random numbers.
    pub fn new(seed: Seed) -> Self {
        Self { index: Index::new(), entries: Slab::new(), seed }
    }

    /// Creates an empty table that allocates nothing until it holds more than `entries`.
    pub fn with_capacity(seed: Seed, entries: usize) -> Self {
        Self { index: Index::with_capacity(entries), entries: Slab::with_capacity(entries), seed }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The handle of a key's entry.
    #[inline]
    pub fn find(&self, key: K) -> Option<u32> {
        let hash = key.hash(self.seed);
        self.resolve_candidate(hash, self.index.candidate(hash), key)
    }

    /// The handle of a key, given the result of reading its first bucket.
    #[inline(always)]
    fn resolve_candidate(&self, hash: u64, candidate: Candidate, key: K) -> Option<u32> {
        match candidate {
            Candidate::Handle(candidate) if self.is(candidate, key) => Some(candidate),
            Candidate::None => None,
            _ => self.search(hash, key),
        }
    }

    /// The handle of a key, by a full search.
    #[inline(never)]
    fn search(&self, hash: u64, key: K) -> Option<u32> {
        self.index.find(hash, |handle| self.is(handle, key))
    }

    /// Looks up many keys together, so that their cache misses overlap: `handles[i]` becomes the likely handle of `keys[i]`, or
    /// `NO_ENTRY`, which is certain. In rare cases it is another entry with the same hash: compare the key of the entry, and call
    /// `find` if it differs. Stops at the end of the shorter slice.
    pub fn find_likely(&self, keys: &[K], handles: &mut [u32]) {
        self.index.find_likely(
            self.seed,
            (keys, handles),
            |handle| self.entries.prefetch(handle),
            |likely| likely.unwrap_or(NO_ENTRY),
        );
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        self.value(self.find(key)?)
    }

    /// The value of a key, mutable.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.value_mut(self.find(key)?)
    }

    /// The key and value of an entry.
    #[inline]
    pub fn entry(&self, handle: u32) -> Option<(K, &V)> {
        self.entries.get(handle).map(|(key, value)| (*key, value))
    }

    /// The key of an entry, and its value, mutable.
    #[inline]
    pub fn entry_mut(&mut self, handle: u32) -> Option<(K, &mut V)> {
        self.entries.get_mut(handle).map(|(key, value)| (*key, value))
    }

    /// The value of an entry.
    #[inline]
    pub fn value(&self, handle: u32) -> Option<&V> {
        self.entries.get(handle).map(|(_, value)| value)
    }

    /// The value of an entry, mutable.
    #[inline]
    pub fn value_mut(&mut self, handle: u32) -> Option<&mut V> {
        self.entries.get_mut(handle).map(|(_, value)| value)
    }

    /// Sets a key's value. Returns the entry's handle and the replaced value. Returns the new value as an error if no
    /// handle is left (after 2^32 entries).
    pub fn insert(&mut self, key: K, value: V) -> Result<(u32, Option<V>), V> {
        let hash = key.hash(self.seed);
        if let Some(handle) = self.index.find(hash, |handle| self.is(handle, key))
            && let Some(old) = self.value_mut(handle)
        {
            return Ok((handle, Some(core::mem::replace(old, value))));
        }
        let handle = self.entries.insert((key, value)).map_err(|(_, value)| value)?;
        self.index.insert(hash, handle);
        Ok((handle, None))
    }

    /// Removes a key's entry and returns its value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.remove_handle(self.find(key)?).map(|(_, value)| value)
    }

    /// Removes the entry with this handle and returns it.
    pub fn remove_handle(&mut self, handle: u32) -> Option<(K, V)> {
        let (key, value) = self.entries.remove(handle)?;
        self.index.remove(key.hash(self.seed), handle);
        Some((key, value))
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = Self::new(self.seed);
    }

    /// The entry with the lowest handle that is not below this one, with its handle.
    pub fn at_or_after(&self, handle: u32) -> Option<(u32, K, &V)> {
        let (handle, (key, value)) = self.entries.at_or_after(handle)?;
        Some((handle, *key, value))
    }

    /// All entries with their handles, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, K, &V)> {
        self.entries.iter().map(|(handle, (key, value))| (handle, *key, value))
    }

    /// All entries with their handles and mutable values, in unspecified order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, K, &mut V)> {
        self.entries.iter_mut().map(|(handle, (key, value))| (handle, *key, value))
    }

    #[inline]
    fn is(&self, handle: u32, key: K) -> bool {
        self.entries.get(handle).is_some_and(|(other, _)| *other == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec;
    use alloc::vec::Vec;
    use random::Random;

    /// Random operations over `keys`, compared with an ordered map.
    fn check<K: Key + Ord + core::fmt::Debug>(keys: &[K]) {
        let mut random = Random::new(keys.len() as u64);
        let mut table = Table::new(Seed::new(random.next(), random.next()));
        let mut model = BTreeMap::new();
        for step in 0..30_000u32 {
            let key = keys[random.below(keys.len() as u32) as usize];
            match random.below(5) {
                0..3 => {
                    let (handle, old) = table.insert(key, step).unwrap();
                    assert_eq!(old, model.insert(key, step));
                    assert_eq!(table.entry(handle), Some((key, &step)));
                }
                3 => assert_eq!(table.remove(key), model.remove(&key)),
                _ => assert_eq!(table.get_mut(key), model.get_mut(&key)),
            }
            assert_eq!(table.len(), model.len());
        }
        let mut handles = vec![0; keys.len()];
        table.find_likely(keys, &mut handles);
        for (&key, &handle) in keys.iter().zip(&handles) {
            assert_eq!(table.get(key), model.get(&key));
            match table.entry(handle) {
                Some((found, value)) if found == key => assert_eq!(Some(value), model.get(&key)),
                Some((found, _)) => {
                    assert_eq!(found.hash(table.seed), key.hash(table.seed), "{found:?}, {key:?}")
                }
                None => assert_eq!((handle, model.get(&key)), (NO_ENTRY, None)),
            }
        }
        let mut listed: Vec<_> = table.iter().map(|(_, key, &value)| (key, value)).collect();
        listed.sort();
        assert_eq!(listed, Vec::from_iter(model));
        table.clear();
        assert!(table.is_empty() && keys.iter().all(|&key| table.get(key).is_none()));
    }

    #[test]
    fn agrees_with_an_ordered_map() {
        let mut random = Random::new(1);
        check(&(0..7u32).collect::<Vec<_>>());
        check(
            &(0..5_000)
                .map(|_| u128::from(random.next()) << 64 | u128::from(random.next()))
                .collect::<Vec<_>>(),
        );
        check(&(0..3_000u64).map(|at| at << 48).collect::<Vec<_>>());
        check(&(0..300u16).map(|at| [0, 0, 0, 1, (at >> 8) as u8, at as u8]).collect::<Vec<_>>());
        check(&(0..300u128).map(|at| [at, 1 << 90]).collect::<Vec<_>>());
    }

    /// A key whose hash the sender controls: all of them collide.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Flood(u32);

    impl Key for Flood {
        fn hash(self, _: Seed) -> u64 {
            u64::from(self.0 % 3)
        }
    }

    #[test]
    fn colliding_keys_are_distinguished() {
        check(&(0..500).map(Flood).collect::<Vec<_>>());
    }
}
