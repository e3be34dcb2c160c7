//! Storage whose entries have stable handles.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Entries per allocation. Chunks never move, so that growth copies nothing.
const CHUNK_ENTRIES: usize = 256;

/// Aligned to a cache line, so that an entry of a line's size occupies exactly one.
#[repr(align(64))]
struct Chunk<T>([Option<T>; CHUNK_ENTRIES]);

/// Entries of one type, identified by handles. The handle of a removed entry is reused.
///
/// An entry takes the memory of an `Option`: one that has a niche (a `bool`, an enumeration) and fills a cache line (64
/// bytes) costs a single miss.
pub struct Slab<T> {
    chunks: Vec<Box<Chunk<T>>>,
    /// Free handles, with capacity for all of them, so that a removal does not allocate.
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    /// Creates an empty slab without allocating.
    pub fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new() }
    }

    /// Creates an empty slab with room for `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        let mut slab = Self::new();
        (0..entries.div_ceil(CHUNK_ENTRIES)).for_each(|_| slab.grow());
        // The lowest handles are used first.
        slab.free.sort_unstable_by(|a, b| b.cmp(a));
        slab
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.chunks.len() * CHUNK_ENTRIES - self.free.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory used, in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk<T>>()
    }

    /// Stores an entry and returns its handle. Returns the entry as an error if no handle is left (2^32 minus one
    /// chunk).
    pub fn insert(&mut self, entry: T) -> Result<u32, T> {
        if self.free.is_empty() {
            self.grow();
        }
        let Some(handle) = self.free.pop() else { return Err(entry) };
        if let Some(slot) = self.slot_mut(handle) {
            *slot = Some(entry);
        }
        Ok(handle)
    }

    /// The entry with this handle.
    #[inline]
    pub fn get(&self, handle: u32) -> Option<&T> {
        self.chunks.get(handle as usize / CHUNK_ENTRIES)?.0[handle as usize % CHUNK_ENTRIES].as_ref()
    }

    /// The entry with this handle, mutable.
    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        self.slot_mut(handle)?.as_mut()
    }

    /// Prefetches an entry.
    #[inline]
    pub fn prefetch(&self, handle: u32) {
        if let Some(chunk) = self.chunks.get(handle as usize / CHUNK_ENTRIES) {
            packet::prefetch(&chunk.0[handle as usize % CHUNK_ENTRIES]);
        }
    }

    /// Removes an entry and returns it.
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let entry = self.slot_mut(handle)?.take()?;
        self.free.push(handle);
        Some(entry)
    }

    /// The entry with the lowest handle that is not below this one, with its handle.
    pub fn at_or_after(&self, handle: u32) -> Option<(u32, &T)> {
        let first = handle as usize / CHUNK_ENTRIES;
        let skipped = handle as usize % CHUNK_ENTRIES;
        let slots = self.chunks.iter().skip(first).flat_map(|chunk| chunk.0.iter()).skip(skipped);
        slots.zip(handle..).find_map(|(slot, handle)| Some((handle, slot.as_ref()?)))
    }

    /// All entries with their handles, in the order of handles.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.chunks.iter().flat_map(|chunk| chunk.0.iter());
        slots.zip(0..).filter_map(|(slot, handle)| Some((handle, slot.as_ref()?)))
    }

    /// All entries with their handles, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let slots = self.chunks.iter_mut().flat_map(|chunk| chunk.0.iter_mut());
        slots.zip(0..).filter_map(|(slot, handle)| Some((handle, slot.as_mut()?)))
    }

    fn slot_mut(&mut self, handle: u32) -> Option<&mut Option<T>> {
        Some(&mut self.chunks.get_mut(handle as usize / CHUNK_ENTRIES)?.0[handle as usize % CHUNK_ENTRIES])
    }

    /// Adds a chunk, unless its handles would exceed 32 bits.
    fn grow(&mut self) {
        let handles = self.chunks.len() * CHUNK_ENTRIES..(self.chunks.len() + 1) * CHUNK_ENTRIES;
        let Ok(end) = u32::try_from(handles.end) else { return };
        self.chunks.push(Box::new(Chunk(core::array::from_fn(|_| None))));
        self.free.reserve(handles.end - self.free.len());
        self.free.extend((handles.start as u32..end).rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_stable_and_reused() {
        let mut slab = Slab::new();
        let handles: Vec<u32> = (0..1_000).map(|value| slab.insert(value).unwrap()).collect();
        assert_eq!(handles, Vec::from_iter(0..1_000));
        assert_eq!((slab.remove(500), slab.remove(500), slab.get(500)), (Some(500), None, None));
        assert_eq!(slab.insert(7), Ok(500));
        assert_eq!(
            (slab.get(500), slab.get(999), slab.get(1_023), slab.get(5_000)),
            (Some(&7), Some(&999), None, None)
        );
        assert_eq!((slab.len(), slab.iter().count()), (1_000, 1_000));
        slab.iter_mut().for_each(|(handle, value)| *value = handle);
        assert!(slab.iter().all(|(handle, &value)| handle == value));
    }

    #[test]
    fn requested_capacity_is_reserved() {
        let mut slab = Slab::with_capacity(1_000);
        let chunks = slab.chunks.len();
        (0..1_000).for_each(|value| assert!(slab.insert(value).is_ok()));
        assert_eq!(slab.chunks.len(), chunks);
    }
}
