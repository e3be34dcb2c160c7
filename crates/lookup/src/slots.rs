//! Numbered slots in display order.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The free slot that the next entry takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// The slot freed last.
    Latest,
    /// The lowest slot.
    Lowest,
}

/// Entries by number.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    taken: Vec<Option<T>>,
    reuse: Reuse,
    latest: Vec<u32>,
    lowest: BTreeSet<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new(reuse: Reuse) -> Self {
        Self { taken: Vec::new(), reuse, latest: Vec::new(), lowest: BTreeSet::new() }
    }

    /// An empty collection with the same reuse order.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.reuse)
    }

    /// Stores an entry and returns its number.
    pub(crate) fn add(&mut self, entry: T) -> u32 {
        let free = match self.reuse {
            Reuse::Latest => self.latest.pop(),
            Reuse::Lowest => self.lowest.pop_first(),
        };
        if let Some(number) = free
            && let Some(slot) = self.taken.get_mut(number as usize)
        {
            *slot = Some(entry);
            return number;
        }
        self.taken.push(Some(entry));
        (self.taken.len() - 1) as u32
    }

    /// Removes an entry and returns it.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let entry = self.taken.get_mut(number as usize)?.take()?;
        match self.reuse {
            Reuse::Latest => self.latest.push(number),
            Reuse::Lowest => drop(self.lowest.insert(number)),
        }
        Some(entry)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.taken.get(number as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.taken.get_mut(number as usize)?.as_mut()
    }

    /// The number after the highest one.
    pub(crate) fn end(&self) -> u32 {
        self.taken.len() as u32
    }

    /// All entries with their numbers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.taken.iter().zip(0..).filter_map(|(slot, number)| Some((number, slot.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reuse: Reuse, expected: [u32; 3]) {
        let mut slots = Slots::new(reuse);
        (0..5).for_each(|number| assert_eq!(slots.add(number), number));
        assert_eq!((slots.remove(3), slots.remove(1), slots.remove(1)), (Some(3), Some(1), None));
        assert_eq!([slots.add(7), slots.add(8), slots.add(9)], expected);
        assert_eq!(slots.iter().count(), 6);
    }

    #[test]
    fn free_slots_are_taken_in_order() {
        check(Reuse::Latest, [1, 3, 5]);
        check(Reuse::Lowest, [1, 3, 5]);
        let mut slots = Slots::new(Reuse::Latest);
        (0..3).for_each(|number| assert_eq!(slots.add(number), number));
        slots.remove(0);
        slots.remove(2);
        assert_eq!((slots.add(5), slots.add(6)), (2, 0));
        assert_eq!(slots.get_mut(0).copied(), Some(6));
    }
}
