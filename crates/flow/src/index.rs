//! A hash index: from a hash to the handles of entries that are stored elsewhere.
//!
//! A bucket is one cache line: seven handles, each with 32 bits of its hash. The index grows by linear hashing: an
//! insertion splits at most two buckets, and because their entries' hash bits are at hand, no entry is touched.
//! Buckets live in chunks that never move. So growth has no pause, and removal leaves nothing behind.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Handles in a bucket.
const WAYS: usize = 7;

/// Buckets that are allocated together: 16 KB.
const CHUNK: usize = 256;

/// Handles per bucket on average before another bucket is made. Buckets not yet split hold up to twice as many.
const LOAD: usize = 3;

/// Bytes of a table up to which its look-ups are taken to hit the cache, so that nothing is gained side by side.
pub(crate) const RESIDENT: usize = 1 << 18;

/// No next bucket; no handle.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket {
    /// Hash bits of the handles; the last lane is the number of handles in use.
    tags: [u32; WAYS + 1],
    handles: [u32; WAYS],
    /// Where the handles go on that didn't fit: an index into `spill`.
    next: u32,
}

impl Bucket {
    const EMPTY: Self = Self { tags: [0; WAYS + 1], handles: [NONE; WAYS], next: NONE };

    #[inline]
    fn len(&self) -> usize {
        (self.tags[WAYS] as usize).min(WAYS)
    }

    /// The ways that have `tag`, or had it: a bit for each, from the lowest on.
    ///
    /// The number of handles counts as a tag too, so that all lanes are compared alike: what is found is a candidate
    /// only.
    #[inline(always)]
    fn matches(&self, tag: u32) -> u32 {
        packet::equal_lanes(&self.tags, tag)
    }

    /// The handle of the lowest way in `matches`; none if nothing is there.
    #[inline(always)]
    fn lowest(&self, matches: u32) -> Option<u32> {
        let handle = self.handles.get(matches.trailing_zeros() as usize);
        handle.copied().filter(|handle| *handle != NONE)
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

/// What a look at a hash's first bucket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// This handle may be the one; if not, another may.
    Handle(u32),
    /// No handle has this hash.
    None,
    /// The bucket goes on elsewhere.
    Unknown,
}

/// Maps hashes to handles (`u32`, all but `u32::MAX`). What the handles stand for is its user's.
pub struct Index {
    chunks: Vec<Box<[Bucket; CHUNK]>>,
    /// Buckets in use, at least 1.
    buckets: usize,
    /// One less than the power of two at or above `buckets`.
    mask: u32,
    len: usize,
    /// Buckets that others go on in.
    spill: Vec<Box<[Bucket; CHUNK]>>,
    /// How many of them have ever been used.
    spilled: usize,
    free_spill: Vec<u32>,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty index with room for `handles` before it needs more memory (apart from full buckets' spill).
    pub fn with_capacity(handles: usize) -> Self {
        let buckets = (handles / LOAD + 1).next_power_of_two().clamp(16, 1 << 31);
        Self {
            chunks: (0..buckets.div_ceil(CHUNK)).map(|_| Box::new([Bucket::EMPTY; CHUNK])).collect(),
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

    /// Memory in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        (self.chunks.len() + self.spill.len()) * CHUNK * size_of::<Bucket>()
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
            bucket = self.spill.get(bucket.next as usize / CHUNK)?.get(bucket.next as usize % CHUNK)?;
        }
    }

    /// Adds a handle. The same handle or hash may be there already.
    pub fn insert(&mut self, hash: u64, handle: u32) {
        let tag = hash as u32;
        self.push(self.home(tag), tag, handle);
        self.len += 1;
        while self.len > self.buckets * LOAD && self.buckets < 1 << 31 {
            self.split();
        }
    }

    /// Removes a handle that was inserted with `hash`; false if there is none.
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

    /// Removes all handles; the memory of the first chunk stays.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Asks for the first bucket of a hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        packet::prefetch(self.bucket(self.home(hash as u32)));
    }

    /// What the first bucket of a hash says.
    #[inline(always)]
    pub(crate) fn candidate(&self, hash: u64) -> Candidate {
        let tag = hash as u32;
        let bucket = self.bucket(self.home(tag));
        let equal = bucket.matches(tag);
        if equal != 0 {
            bucket.lowest(equal).map_or(Candidate::Unknown, Candidate::Handle)
        } else if bucket.next == NONE {
            Candidate::None
        } else {
            Candidate::Unknown
        }
    }

    /// The bucket that a tag belongs in.
    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        let wide = (tag & self.mask) as usize;
        if wide < self.buckets { wide } else { (tag & (self.mask >> 1)) as usize }
    }

    #[inline]
    fn bucket(&self, at: usize) -> &Bucket {
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    /// A bucket of the chain that begins at `home`: the first one, or one in `spill`.
    fn link(&mut self, home: usize, spill: Option<u32>) -> &mut Bucket {
        match spill {
            Some(at) => &mut self.spill[at as usize / CHUNK][at as usize % CHUNK],
            None => &mut self.chunks[home / CHUNK][home % CHUNK],
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
            if self.spilled / CHUNK == self.spill.len() {
                self.spill.push(Box::new([Bucket::EMPTY; CHUNK]));
            }
            self.spilled += 1;
            (self.spilled - 1) as u32
        });
        let fresh = self.link(home, Some(at));
        *fresh = Bucket::EMPTY;
        fresh.push(tag, handle);
        self.link(home, here).next = at;
    }

    /// Makes one more bucket and moves those handles there that belong in it.
    fn split(&mut self) {
        if self.buckets > self.mask as usize {
            self.mask = (self.mask << 1) | 1;
        }
        let from = self.buckets & (self.mask >> 1) as usize;
        if self.buckets / CHUNK == self.chunks.len() {
            self.chunks.push(Box::new([Bucket::EMPTY; CHUNK]));
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
    fn room_that_was_asked_for_is_there() {
        let mut index = Index::with_capacity(10_000);
        let buckets = index.buckets;
        let mut random = Random::new(5);
        (0..10_000).for_each(|handle| index.insert(random.next(), handle));
        assert_eq!(index.buckets, buckets);
    }
}
