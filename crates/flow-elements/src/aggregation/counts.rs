//! Counts by number: an array for small numbers, a hash table for the others.

use alloc::boxed::Box;
use alloc::vec::Vec;

use packet::Packet;

use flow::{NO_ENTRY, Seed, Table};

/// Numbers below this are counted in an array, such as the consecutive ones of `AggregateIPFlows`. Bounds the memory
/// that scattered numbers can claim: 4 MB.
const ARRAY_LIMIT: u32 = 1 << 20;
/// Counts per allocation.
const PAGE_SIZE: usize = 1 << 10;

/// A count for each number, initially 0.
pub(super) struct Counts {
    pages: Vec<Option<Box<[u32; PAGE_SIZE]>>>,
    others: Table<u32, u32>,
    keys: Vec<u32>,
    /// The likely handles of a batch's counts in the table, or `NO_ENTRY`.
    handles: Vec<u32>,
}

impl Counts {
    /// Creates empty counts. The seed comes from the environment's random numbers.
    pub(super) fn new(seed: Seed) -> Counts {
        Counts { pages: Vec::new(), others: Table::new(seed), keys: Vec::new(), handles: Vec::new() }
    }

    /// Whether a number is counted in the array.
    #[inline(always)]
    pub(super) fn is_small(number: u32) -> bool {
        number < ARRAY_LIMIT
    }

    /// The count of a small number; `None` if its page does not exist.
    #[inline(always)]
    pub(super) fn small_mut(&mut self, number: u32) -> Option<&mut u32> {
        let page = self.pages.get_mut(number as usize / PAGE_SIZE)?.as_mut()?;
        Some(&mut page[number as usize % PAGE_SIZE])
    }

    /// Prefetches the count of a small number.
    #[inline(always)]
    pub(super) fn prefetch(&self, number: u32) {
        if let Some(Some(page)) = self.pages.get(number as usize / PAGE_SIZE) {
            packet::prefetch(&page[number as usize % PAGE_SIZE]);
        }
    }

    /// Looks up the counts of the packets' aggregates together for `found_mut`, so that their cache misses overlap.
    pub(super) fn find(&mut self, packets: &[Packet]) {
        self.keys.clear();
        self.keys.extend(packets.iter().map(Packet::aggregate));
        self.handles.clear();
        self.handles.resize(packets.len(), NO_ENTRY);
        if self.keys.iter().any(|key| !Counts::is_small(*key)) {
            self.others.find_likely(&self.keys, &mut self.handles);
        }
    }

    /// The count of `number`, the aggregate of the packet at `index` in the slice passed to `find`.
    #[inline(always)]
    pub(super) fn found_mut(&mut self, number: u32, index: usize) -> Option<&mut u32> {
        match self.pages.get_mut(number as usize / PAGE_SIZE) {
            Some(Some(page)) => Some(&mut page[number as usize % PAGE_SIZE]),
            _ => {
                let found = self.others.entry_mut(*self.handles.get(index)?);
                found.filter(|(key, _)| *key == number).map(|(_, count)| count)
            }
        }
    }

    /// The count of a number.
    pub(super) fn get(&self, number: u32) -> u32 {
        match self.pages.get(number as usize / PAGE_SIZE) {
            Some(Some(page)) => page[number as usize % PAGE_SIZE],
            _ => self.others.get(number).copied().unwrap_or(0),
        }
    }

    /// Adds to the count of a number, wrapping around. A number beyond 2^32 others is not counted.
    pub(super) fn add(&mut self, number: u32, amount: u32) {
        if Counts::is_small(number) && self.small_mut(number).is_none() {
            let page = number as usize / PAGE_SIZE;
            if self.pages.len() <= page {
                self.pages.resize_with(page + 1, || None);
            }
            self.pages[page] = Some(Box::new([0; PAGE_SIZE]));
        }
        let count = match self.small_mut(number) {
            Some(count) => Some(count),
            None => self.others.get_mut(number),
        };
        match count {
            Some(count) => *count = count.wrapping_add(amount),
            None => _ = self.others.insert(number, amount),
        }
    }

    /// The numbers with non-zero counts, in order, with their counts.
    pub(super) fn sorted(&self) -> Vec<(u32, u32)> {
        let pages = self.pages.iter().zip((0..).step_by(PAGE_SIZE));
        let small = pages.filter_map(|(page, first)| Some((first..).zip(page.as_ref()?.iter().copied())));
        let others = self.others.iter().map(|(_, number, count)| (number, *count));
        let mut counts: Vec<(u32, u32)> =
            small.flatten().chain(others).filter(|(_, count)| *count > 0).collect();
        sorting::sort(&mut counts);
        counts
    }

    /// Resets all counts.
    pub(super) fn clear(&mut self) {
        self.pages.clear();
        self.others.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_numbers_are_counted_alike() {
        let mut counts = Counts::new(Seed::new(1, 2));
        let numbers = [0, 1, 1_023, 1_024, ARRAY_LIMIT - 1, ARRAY_LIMIT, u32::MAX];
        for (amount, number) in (1..).zip(numbers) {
            assert_eq!(counts.get(number), 0);
            counts.add(number, amount);
            counts.add(number, amount);
        }
        counts.add(7, 0);
        counts.add(ARRAY_LIMIT + 7, 0);
        let expected: Vec<(u32, u32)> = numbers.into_iter().zip((2..).step_by(2)).collect();
        assert_eq!(counts.sorted(), expected);
        assert!(expected.iter().all(|(number, count)| counts.get(*number) == *count));
        counts.add(1, u32::MAX);
        assert_eq!(
            (counts.get(1), counts.small_mut(2).copied(), counts.small_mut(ARRAY_LIMIT)),
            (3, Some(0), None)
        );
        counts.clear();
        assert_eq!(counts.sorted(), []);
    }
}
