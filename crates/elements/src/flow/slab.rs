//! Storage whose entries keep their number while they live.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Entries that are allocated together. Chunks never move, so that growth copies nothing.
const CHUNK: usize = 256;

/// No free entry.
const NONE: u32 = u32::MAX;

enum Slot<T> {
    Used(T),
    /// The next free slot.
    Free(u32),
}

/// Entries of one type, each found by its handle. A removed entry's handle is given to a later one.
pub struct Slab<T> {
    chunks: Vec<Box<[Slot<T>; CHUNK]>>,
    first_free: u32,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    /// An empty slab, which owns no memory yet.
    pub fn new() -> Self {
        Self { chunks: Vec::new(), first_free: NONE, len: 0 }
    }

    /// An empty slab with room for `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        let mut slab = Self::new();
        while slab.chunks.len() * CHUNK < entries && slab.grow().is_some() {}
        slab
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores an entry. With 2^32 entries less one chunk there is no handle left: the entry comes back.
    pub fn insert(&mut self, entry: T) -> Result<u32, T> {
        if self.first_free == NONE && self.grow().is_none() {
            return Err(entry);
        }
        let handle = self.first_free;
        match self.slot_mut(handle) {
            Some(slot @ &mut Slot::Free(next)) => {
                *slot = Slot::Used(entry);
                self.first_free = next;
                self.len += 1;
                Ok(handle)
            }
            _ => Err(entry),
        }
    }

    /// The entry of a handle.
    #[inline]
    pub fn get(&self, handle: u32) -> Option<&T> {
        match self.chunks.get(handle as usize / CHUNK)?.get(handle as usize % CHUNK)? {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// The entry of a handle, to be changed.
    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        match self.slot_mut(handle)? {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let free = Slot::Free(self.first_free);
        let slot = self.slot_mut(handle)?;
        if matches!(slot, Slot::Free(_)) {
            return None;
        }
        let old = core::mem::replace(slot, free);
        self.first_free = handle;
        self.len -= 1;
        match old {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// All entries with their handles, in the handles' order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).zip(0..).filter_map(|(slot, handle)| match slot {
            Slot::Used(entry) => Some((handle, entry)),
            Slot::Free(_) => None,
        })
    }

    /// All entries with their handles, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.chunks.iter_mut().flat_map(|chunk| chunk.iter_mut()).zip(0..).filter_map(|(slot, handle)| {
            match slot {
                Slot::Used(entry) => Some((handle, entry)),
                Slot::Free(_) => None,
            }
        })
    }

    fn slot_mut(&mut self, handle: u32) -> Option<&mut Slot<T>> {
        self.chunks.get_mut(handle as usize / CHUNK)?.get_mut(handle as usize % CHUNK)
    }

    /// Adds a chunk, whose slots are given out first, lowest first.
    fn grow(&mut self) -> Option<()> {
        let first = u32::try_from(self.chunks.len() * CHUNK).ok()?;
        let end = first.checked_add(CHUNK as u32)?;
        let after = core::mem::replace(&mut self.first_free, first);
        self.chunks.push(Box::new(core::array::from_fn(|at| {
            let next = first + at as u32 + 1;
            Slot::Free(if next == end { after } else { next })
        })));
        Some(())
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
    fn room_that_was_asked_for_is_there() {
        let mut slab = Slab::with_capacity(1_000);
        let chunks = slab.chunks.len();
        (0..1_000).for_each(|value| assert!(slab.insert(value).is_ok()));
        assert_eq!(slab.chunks.len(), chunks);
    }
}
