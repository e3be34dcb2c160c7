//! An index from hashes to handles. A handle leads to what the index's owner has of a key. One cache line is read for a key, mostly.
//!
//! A bucket is one cache line: eight tags (hash bits) and eight handles. A key is in one of two buckets, both of which its tag tells.
//!
//! Only as many buckets are used as the keys need, so that few keys take few cache lines. When there are more keys, the
//! buckets are doubled: each is split in two by one more bit, some of them for each key that is added. No insertion takes
//! long, and no key is read for it. An index with far fewer keys than before is made smaller in the same way.

use std::ops::Range;

/// Handles per bucket.
pub(crate) const WAYS: usize = 8;

/// Average number of handles per bucket at capacity. With two buckets to choose from, both are full for a few keys
/// in ten thousand.
pub(crate) const LOAD: usize = 4;

/// Buckets of an empty index: 64 KB.
pub(crate) const MIN_BUCKETS: usize = 1024;

/// Buckets that are split for each key that is added, while their number is doubled: all are, long before the load is too
/// high again.
pub(crate) const SPLITS: usize = 4;

/// An index is sparse when its keys need less than one part in this of the buckets.
pub(crate) const SPARSE: usize = 8;

/// Words of a bucket: tags, then handles plus one, so that zero means none and a new index needs no writes.
pub(crate) const BUCKET: usize = 2 * WAYS;

/// The handles of keys with a tag.
#[derive(Debug)]
pub struct HandleIndex {
    /// Buckets, after `skip` words that align them to cache lines.
    words: Vec<u32>,
    skip: usize,
    /// The number of buckets before they are doubled, minus one.
    mask: usize,
    /// Buckets that were split since the number was last doubled: the first ones.
    split: usize,
    /// The most buckets.
    most: usize,
}

impl HandleIndex {
    /// An empty index for at most `capacity` keys. The system provides its memory when it is first used.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let most = buckets(capacity);
        let words = vec![0u32; most * BUCKET + BUCKET];
        let skip = words.as_ptr().align_offset(64).min(BUCKET);
        Self { words, skip, mask: most.min(MIN_BUCKETS) - 1, split: 0, most }
    }

    /// The most memory that an index takes, in bytes.
    #[must_use]
    pub fn max_bytes(capacity: usize) -> usize {
        buckets(capacity).saturating_mul(BUCKET * size_of::<u32>())
    }

    /// The tag of a hash: its upper half, with the lowest bit set.
    #[inline(always)]
    #[must_use]
    pub fn tag(hash: u64) -> u32 {
        (hash >> 32) as u32 | 1
    }

    /// The memory of the index: large, and read at random places.
    #[must_use]
    pub fn memory(&self) -> Range<*const u8> {
        let Range { start, end } = self.words.as_ptr_range();
        start.cast()..end.cast()
    }

    /// Where the buckets begin.
    pub(crate) fn start(&self) -> *const u8 {
        self.words.as_ptr().wrapping_add(self.skip).cast()
    }

    /// The number of buckets that are used.
    pub(crate) fn used(&self) -> usize {
        self.mask + 1 + self.split
    }

    /// Prefetches the bucket in which a key mostly is.
    #[inline(always)]
    pub fn prefetch(&self, tag: u32) {
        if let Some(word) = self.words.get(self.skip + self.first(tag) * BUCKET) {
            packet::prefetch(word);
        }
    }

    /// The first handle in the first bucket of a tag, which mostly is that of the key.
    #[inline(always)]
    #[must_use]
    pub fn candidate(&self, tag: u32) -> Option<u32> {
        self.next_in(self.first(tag), tag, &mut { u32::MAX })
    }

    /// The handle with this tag for which `is_it` holds.
    #[inline(always)]
    pub fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        [self.first(tag), self.second(tag)].into_iter().find_map(|bucket| {
            let mut ways = u32::MAX;
            while let Some(handle) = self.next_in(bucket, tag, &mut ways) {
                if is_it(handle) {
                    return Some(handle);
                }
            }
            None
        })
    }

    /// Adds a handle. Returns false, and adds nothing, if both buckets of the tag are full.
    pub fn insert(&mut self, tag: u32, handle: u32) -> bool {
        let (first, second) = (self.first(tag), self.second(tag));
        let place = self.vacancy(first).or_else(|| self.vacancy(second)).or_else(|| self.make_vacancy(first));
        let Some((bucket, way)) = place else { return false };
        let at = self.skip + bucket * BUCKET + way;
        (self.words[at], self.words[at + WAYS]) = (tag, handle + 1);
        true
    }

    /// The handles in the first bucket of a tag, whatever their tags.
    pub(crate) fn neighbours(&self, tag: u32) -> impl Iterator<Item = u32> {
        self.handles(self.first(tag))
    }

    /// The handles in the two buckets of a tag, whatever their tags. If there are any, there is room for a handle with the tag as soon
    /// as one of them is removed.
    pub fn rivals(&self, tag: u32) -> impl Iterator<Item = u32> {
        self.handles(self.first(tag)).chain(self.handles(self.second(tag)))
    }

    /// Removes a handle. Returns false if it is not there.
    pub fn remove(&mut self, tag: u32, handle: u32) -> bool {
        let Some(at) = self.position(tag, handle) else { return false };
        (self.words[at], self.words[at + WAYS]) = (0, 0);
        true
    }

    /// Changes the handle of a key.
    pub(crate) fn replace(&mut self, tag: u32, old: u32, new: u32) {
        if let Some(at) = self.position(tag, old) {
            self.words[at + WAYS] = new + 1;
        }
    }

    /// Removes all handles.
    pub(crate) fn clear(&mut self) {
        let used = self.skip + self.used() * BUCKET;
        self.words.iter_mut().take(used).for_each(|word| *word = 0);
        (self.mask, self.split) = (self.most.min(MIN_BUCKETS) - 1, 0);
    }

    /// Splits some buckets, if there are too few for this number of keys. Call it before each key that is added.
    pub fn grow(&mut self, keys: usize) {
        // While the number is doubled, it stays full.
        let is_full = keys > (self.mask + 1) * LOAD;
        if !is_full || self.mask + 1 >= self.most {
            return;
        }
        for _ in 0..SPLITS {
            self.split_bucket();
            if self.split > self.mask {
                (self.mask, self.split) = (2 * self.mask + 1, 0);
                return;
            }
        }
    }

    /// Whether there are far more buckets than this number of keys needs.
    pub(crate) fn is_sparse(&self, keys: usize) -> bool {
        self.used() > self.most.min(MIN_BUCKETS) && keys * SPARSE < self.used() * LOAD
    }

    /// Joins the last bucket with the one that it was split from. Returns the handles of keys that have no room.
    pub(crate) fn join(&mut self) -> impl Iterator<Item = u32> + use<> {
        if self.split == 0 {
            self.mask /= 2;
            self.split = self.mask + 1;
        }
        self.split -= 1;
        let (to, from) = (self.split, self.split + self.mask + 1);
        let (tags, handles) =
            self.bucket(from).map_or(([0; WAYS], [0; WAYS]), |(tags, handles)| (*tags, *handles));
        let mut lost = [None; WAYS];
        for (way, handle) in handles.iter().enumerate().filter(|(_, handle)| **handle != 0) {
            match self.vacancy(to).or_else(|| self.make_vacancy(to)) {
                Some((bucket, free)) => {
                    let at = self.skip + bucket * BUCKET + free;
                    (self.words[at], self.words[at + WAYS]) = (tags[way], *handle);
                }
                None => lost[way] = Some(*handle - 1),
            }
            let old = self.skip + from * BUCKET + way;
            (self.words[old], self.words[old + WAYS]) = (0, 0);
        }
        lost.into_iter().flatten()
    }

    /// Splits the next bucket: keys for which the next bit of their place is set move to a new one.
    fn split_bucket(&mut self) {
        let (from, to) = (self.split, self.split + self.mask + 1);
        let Some((tags, handles)) = self.bucket(from) else { return };
        let (tags, handles) = (*tags, *handles);
        let is_first = |tag: u32| self.place(first_bits(tag)) == from;
        let bits = tags.map(|tag| if is_first(tag) { first_bits(tag) } else { second_bits(tag) });
        self.split += 1;
        let (from, to) = (self.skip + from * BUCKET, self.skip + to * BUCKET);
        for (way, bits) in bits.iter().enumerate().filter(|(way, _)| handles[*way] != 0) {
            if bits & (self.mask + 1) != 0 {
                (self.words[from + way], self.words[from + WAYS + way]) = (0, 0);
                (self.words[to + way], self.words[to + WAYS + way]) = (tags[way], handles[way]);
            }
        }
    }

    #[inline(always)]
    fn bucket(&self, bucket: usize) -> Option<(&[u32; WAYS], &[u32; WAYS])> {
        let at = self.skip + bucket * BUCKET;
        let (tags, handles) = self.words.get(at..at + BUCKET)?.split_at(WAYS);
        tags.first_chunk().zip(handles.first_chunk())
    }

    fn handles(&self, bucket: usize) -> impl Iterator<Item = u32> {
        let handles = self.bucket(bucket).map_or(&[0; WAYS], |(_, handles)| handles);
        handles.iter().filter_map(|handle| handle.checked_sub(1))
    }

    /// Where the tag of a handle is.
    fn position(&self, tag: u32, handle: u32) -> Option<usize> {
        [self.first(tag), self.second(tag)].into_iter().find_map(|bucket| {
            let (_, handles) = self.bucket(bucket)?;
            let way = handles.iter().position(|found| *found == handle + 1)?;
            Some(self.skip + bucket * BUCKET + way)
        })
    }

    fn vacancy(&self, bucket: usize) -> Option<(usize, usize)> {
        let (_, handles) = self.bucket(bucket)?;
        handles.iter().position(|handle| *handle == 0).map(|way| (bucket, way))
    }

    /// Moves a key of a full bucket to its other one, if one of them has room there. Returns the place that is free then.
    fn make_vacancy(&mut self, bucket: usize) -> Option<(usize, usize)> {
        let (tags, handles) = self.bucket(bucket)?;
        let (tags, handles) = (*tags, *handles);
        for (way, (tag, handle)) in tags.into_iter().zip(handles).enumerate() {
            let [first, second] = [first_bits(tag), second_bits(tag)].map(|bits| self.place(bits));
            if let Some((other, free)) = self.vacancy(if first == bucket { second } else { first }) {
                let [from, to] =
                    [(bucket, way), (other, free)].map(|(bucket, way)| self.skip + bucket * BUCKET + way);
                (self.words[from], self.words[from + WAYS]) = (0, 0);
                (self.words[to], self.words[to + WAYS]) = (tag, handle);
                return Some((bucket, way));
            }
        }
        None
    }

    /// The next handle in a bucket with this tag, among `ways`, from which it is removed.
    #[inline(always)]
    fn next_in(&self, bucket: usize, tag: u32, ways: &mut u32) -> Option<u32> {
        let (tags, handles) = self.bucket(bucket)?;
        let equal = packet::equal_lanes(tags, tag) & *ways;
        *ways = equal & equal.wrapping_sub(1);
        handles.get(equal.trailing_zeros() as usize)?.checked_sub(1)
    }

    #[inline(always)]
    fn first(&self, tag: u32) -> usize {
        self.place(first_bits(tag))
    }

    #[inline(always)]
    fn second(&self, tag: u32) -> usize {
        self.place(second_bits(tag))
    }

    /// The bucket that these bits select.
    #[inline(always)]
    fn place(&self, bits: usize) -> usize {
        let place = bits & self.mask;
        if place < self.split { bits & (2 * self.mask + 1) } else { place }
    }

    /// Whether all buckets are empty, the unused ones too.
    #[cfg(test)]
    pub(crate) fn is_zero(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether all buckets that are not used are empty.
    #[cfg(test)]
    pub(crate) fn is_clean(&self) -> bool {
        self.words[self.skip + self.used() * BUCKET..].iter().all(|word| *word == 0)
    }

    /// The number of buckets before they are doubled, and of those that were split.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.mask + 1, self.split)
    }
}

/// The bits that select the first bucket of a key. The lowest bit of a tag is always set.
#[inline(always)]
fn first_bits(tag: u32) -> usize {
    (tag >> 1) as usize
}

/// The bits that select the second bucket: each depends on the whole tag.
#[inline(always)]
fn second_bits(tag: u32) -> usize {
    (u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize
}

/// The most buckets for this number of keys.
pub(crate) fn buckets(capacity: usize) -> usize {
    (capacity.max(WAYS) / LOAD).next_power_of_two()
}
