//! A hash index: maps hashes to handles of entries that are stored elsewhere.
//!
//! A bucket is one cache line: seven handles, each with 32 bits of its hash. The index grows by linear hashing: an
//! insertion splits at most two buckets, and reads no entry, because the hash bits are in the bucket. Buckets live in
//! chunks that never move. So growth causes no pause, and removal leaves no tombstones.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{Key, Seed};

/// Handles per bucket.
const WAYS: usize = 7;

/// Buckets per allocation: 16 KB.
const CHUNK_BUCKETS: usize = 256;

/// Average number of handles per bucket above which a bucket is added. Buckets not yet split hold up to twice as many.
const MAX_LOAD: usize = 3;

/// The number of lookups to begin before the first one ends, so that their cache misses overlap.
pub const LOOKUP_GROUP: usize = 32;

/// No next bucket, or no handle.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket {
    /// Hash bits of the handles; the last lane is the number of used handles.
    tags: [u32; WAYS + 1],
    handles: [u32; WAYS],
    /// The overflow bucket, an index into `spill`.
    next: u32,
}

impl Bucket {
    const EMPTY: Self = Self { tags: [0; WAYS + 1], handles: [NONE; WAYS], next: NONE };

    #[inline]
    fn len(&self) -> usize {
        (self.tags[WAYS] as usize).min(WAYS)
    }

    /// Bitmap of the ways that have `tag`, or had it before a removal.
    ///
    /// The count in the last lane is compared too, so that all lanes are treated alike; a match is only a candidate.
    #[inline(always)]
    fn matches(&self, tag: u32) -> u32 {
        packet::equal_lanes(&self.tags, tag)
    }

    /// The handle of the lowest way in `matches`; `None` if there is no handle.
    #[inline(always)]
    fn lowest(&self, matches: u32) -> Option<u32> {
        let handle = self.handles.get(matches.trailing_zeros() as usize);
        handle.copied().filter(|handle| *handle != NONE)
    }

    /// The result of reading this bucket, as the first one of a hash.
    #[inline(always)]
    fn candidate(&self, tag: u32) -> Candidate {
        let equal = self.matches(tag);
        if equal != 0 {
            self.lowest(equal).map_or(Candidate::Unknown, Candidate::Handle)
        } else if self.next == NONE {
            Candidate::None
        } else {
            Candidate::Unknown
        }
    }

    fn push(&mut self, tag: u32, handle: u32) {
        let len = self.len();
        self.tags[len] = tag;
        self.handles[len] = handle;
        self.tags[WAYS] = len as u32 + 1;
    }

    fn swap_remove(&mut self, way: usize) {
        let last = self.len().saturating_sub(1);
        self.tags[way] = self.tags[last];
        self.handles[way] = self.handles[last];
        self.handles[last] = NONE;
        self.tags[WAYS] = last as u32;
    }
}

/// The result of reading a hash's first bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// This handle may be the one; otherwise another may.
    Handle(u32),
    /// No handle has this hash.
    None,
    /// Undecided: the bucket has an overflow bucket.
    Unknown,
}

/// A lookup whose first bucket is on its way to the cache.
#[derive(Clone, Copy)]
pub(crate) struct BucketLookup<'a> {
    bucket: &'a Bucket,
    tag: u32,
}

/// Maps hashes to handles (`u32` except `u32::MAX`), whose meaning the caller defines.
pub struct Index {
    chunks: Vec<Box<[Bucket; CHUNK_BUCKETS]>>,
    /// Buckets in use, at least 1.
    buckets: usize,
    /// The smallest power of two that is at least `buckets`, minus one.
    mask: u32,
    len: usize,
    /// Overflow buckets.
    spill: Vec<Box<[Bucket; CHUNK_BUCKETS]>>,
    /// Number of overflow buckets ever used.
    spilled: usize,
    free_spill: Vec<u32>,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates an empty index with room for `handles`, apart from overflow buckets.
    pub fn with_capacity(handles: usize) -> Self {
        let buckets = (handles / MAX_LOAD + 1).next_power_of_two().clamp(16, 1 << 31);
        Self {
            chunks: (0..buckets.div_ceil(CHUNK_BUCKETS))
                .map(|_| Box::new([Bucket::EMPTY; CHUNK_BUCKETS]))
                .collect(),
            buckets,
            mask: (buckets - 1) as u32,
            len: 0,
            spill: Vec::new(),
            spilled: 0,
            free_spill: Vec::new(),
        }
    }

    /// Number of handles.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no handle.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory used, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        (self.chunks.len() + self.spill.len()) * CHUNK_BUCKETS * size_of::<Bucket>()
    }

    /// The first handle inserted with `hash` for which `is` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = hash as u32;
        let mut bucket = self.bucket(self.home(tag));
        loop {
            let mut equal = bucket.matches(tag);
            while equal != 0 {
                if let Some(handle) = bucket.lowest(equal)
                    && is(handle)
                {
                    return Some(handle);
                }
                equal &= equal - 1;
            }
            bucket = self
                .spill
                .get(bucket.next as usize / CHUNK_BUCKETS)?
                .get(bucket.next as usize % CHUNK_BUCKETS)?;
        }
    }

    /// Adds a handle. Equal handles and hashes may already be present.
    pub fn insert(&mut self, hash: u64, handle: u32) {
        let tag = hash as u32;
        self.push(self.home(tag), tag, handle);
        self.len += 1;
        while self.len > self.buckets * MAX_LOAD && self.buckets < 1 << 31 {
            self.split();
        }
    }

    /// Removes a handle that was inserted with `hash`; false if it is not found.
    pub fn remove(&mut self, hash: u64, handle: u32) -> bool {
        let tag = hash as u32;
        let home = self.home(tag);
        let mut before = None;
        let mut here = None;
        loop {
            let bucket = self.link(home, here);
            let way = (0..bucket.len()).find(|&way| bucket.handles[way] == handle && bucket.tags[way] == tag);
            let next = bucket.next;
            if let Some(way) = way {
                bucket.swap_remove(way);
                let empty = bucket.len() == 0;
                if let (true, Some(spill)) = (empty, here) {
                    self.link(home, before).next = next;
                    self.free_spill.push(spill);
                }
                self.len -= 1;
                return true;
            }
            if next == NONE {
                return false;
            }
            (before, here) = (here, Some(next));
        }
    }

    /// Removes all handles, and keeps the memory of the first chunk.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Looks up many keys: `found[i]` becomes the `result` for the first handle that was inserted with the hash of `keys[i]`. In rare
    /// cases that is the handle of another key: entries are only prefetched, by `prefetch`, and not read. Stops at the shorter end.
    #[inline(always)]
    pub(crate) fn find_likely<K: Key, T>(
        &self,
        seed: Seed,
        (keys, found): (&[K], &mut [T]),
        prefetch: impl Fn(u32),
        result: impl Fn(Option<u32>) -> T,
    ) {
        let mut lookups = [BucketLookup { bucket: self.bucket(0), tag: 0 }; LOOKUP_GROUP];
        for (keys, found) in keys.chunks(LOOKUP_GROUP).zip(found.chunks_mut(LOOKUP_GROUP)) {
            for (lookup, key) in lookups.iter_mut().zip(keys) {
                *lookup = self.begin_lookup(key.hash(seed));
            }
            for ((found, lookup), _) in found.iter_mut().zip(&lookups).zip(keys) {
                let likely = self.likely(*lookup);
                likely.map(&prefetch);
                *found = result(likely);
            }
        }
    }

    /// Begins a lookup: prefetches the first bucket of a hash.
    #[inline(always)]
    pub(crate) fn begin_lookup(&self, hash: u64) -> BucketLookup<'_> {
        let tag = hash as u32;
        let bucket = self.bucket(self.home(tag));
        packet::prefetch(bucket);
        BucketLookup { bucket, tag }
    }

    /// Ends a lookup: the first handle that was inserted with its hash.
    #[inline(always)]
    pub(crate) fn likely(&self, BucketLookup { bucket, tag }: BucketLookup) -> Option<u32> {
        match bucket.candidate(tag) {
            Candidate::Handle(handle) => Some(handle),
            Candidate::None => None,
            Candidate::Unknown => self.first(tag.into()),
        }
    }

    /// The first handle inserted with `hash`, by a full search.
    #[inline(never)]
    fn first(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The result of reading the first bucket of a hash.
    #[inline(always)]
    pub(crate) fn candidate(&self, hash: u64) -> Candidate {
        let tag = hash as u32;
        self.bucket(self.home(tag)).candidate(tag)
    }

    /// The bucket in which a tag belongs.
    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        let wide = (tag & self.mask) as usize;
        if wide < self.buckets { wide } else { (tag & (self.mask >> 1)) as usize }
    }

    #[inline]
    fn bucket(&self, at: usize) -> &Bucket {
        &self.chunks[at / CHUNK_BUCKETS][at % CHUNK_BUCKETS]
    }

    /// A bucket of the chain that starts at `home`: the first one, or an overflow bucket.
    fn link(&mut self, home: usize, spill: Option<u32>) -> &mut Bucket {
        match spill {
            Some(at) => &mut self.spill[at as usize / CHUNK_BUCKETS][at as usize % CHUNK_BUCKETS],
            None => &mut self.chunks[home / CHUNK_BUCKETS][home % CHUNK_BUCKETS],
        }
    }

    fn push(&mut self, home: usize, tag: u32, handle: u32) {
        let mut here = None;
        loop {
            let bucket = self.link(home, here);
            if bucket.len() < WAYS {
                return bucket.push(tag, handle);
            }
            if bucket.next == NONE {
                break;
            }
            here = Some(bucket.next);
        }
        let at = self.free_spill.pop().unwrap_or_else(|| {
            if self.spilled / CHUNK_BUCKETS == self.spill.len() {
                self.spill.push(Box::new([Bucket::EMPTY; CHUNK_BUCKETS]));
            }
            self.spilled += 1;
            (self.spilled - 1) as u32
        });
        let fresh = self.link(home, Some(at));
        *fresh = Bucket::EMPTY;
        fresh.push(tag, handle);
        self.link(home, here).next = at;
    }

    /// Adds a bucket and moves the handles that belong there.
    fn split(&mut self) {
        if self.buckets > self.mask as usize {
            self.mask = (self.mask << 1) | 1;
        }
        let from = self.buckets & (self.mask >> 1) as usize;
        if self.buckets / CHUNK_BUCKETS == self.chunks.len() {
            self.chunks.push(Box::new([Bucket::EMPTY; CHUNK_BUCKETS]));
        }
        self.buckets += 1;

        let mut bucket = core::mem::replace(self.link(from, None), Bucket::EMPTY);
        loop {
            for way in 0..bucket.len() {
                self.push(self.home(bucket.tags[way]), bucket.tags[way], bucket.handles[way]);
            }
            let next = bucket.next;
            if next == NONE {
                return;
            }
            bucket = core::mem::replace(self.link(from, Some(next)), Bucket::EMPTY);
            self.free_spill.push(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    #[test]
    fn handles_stay_findable_while_it_grows_and_shrinks() {
        let mut random = Random::new(3);
        let hashes: Vec<u64> = (0..20_000).map(|_| random.next()).collect();
        let mut index = Index::new();
        for (handle, &hash) in hashes.iter().enumerate() {
            index.insert(hash, handle as u32);
            if handle.is_multiple_of(997) {
                assert!(
                    (0..=handle as u32).all(|at| index.find(hashes[at as usize], |it| it == at) == Some(at))
                );
            }
        }
        assert_eq!(index.len(), hashes.len());
        let bytes = index.bytes();
        for round in 0..20 {
            for (handle, &hash) in hashes.iter().enumerate() {
                assert!(index.remove(hash, handle as u32));
                assert!(!index.remove(hash, handle as u32));
                assert_eq!(index.find(hash, |it| it == handle as u32), None);
            }
            assert!(index.is_empty(), "round {round}");
            hashes.iter().enumerate().for_each(|(handle, &hash)| index.insert(hash, handle as u32));
        }
        assert_eq!(index.bytes(), bytes, "churn takes no memory");
    }

    #[test]
    fn equal_hashes_only_make_a_chain() {
        let mut index = Index::new();
        (0..1_000).for_each(|handle| index.insert(42, handle));
        assert!((0..1_000).all(|handle| index.find(42, |it| it == handle) == Some(handle)));
        assert_eq!(index.find(43, |_| true), None);
        assert!((0..1_000).rev().all(|handle| index.remove(42, handle)));
        assert_eq!(index.free_spill.len(), index.spilled);
    }

    #[test]
    fn requested_capacity_is_reserved() {
        let mut index = Index::with_capacity(10_000);
        let buckets = index.buckets;
        let mut random = Random::new(5);
        (0..10_000).for_each(|handle| index.insert(random.next(), handle));
        assert_eq!(index.buckets, buckets);
    }
}
