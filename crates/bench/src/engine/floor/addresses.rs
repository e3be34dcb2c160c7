//! A table from IPv4 addresses to small numbers, in steps of 16, 8 and 8 bits.

use std::collections::HashMap;

/// Set in an entry that continues in a block.
const DEEPER: u32 = 1 << 31;
const BLOCK: usize = 256;

/// A table from IPv4 addresses to small numbers.
pub(super) struct Addresses {
    root: Vec<u32>,
    blocks: Vec<u32>,
}

impl Addresses {
    /// A table of ranges in order, each given by its first address and its number. The first one starts at 0.
    pub(super) fn new(ranges: &[(u32, u32)]) -> Self {
        let mut table = Self { root: vec![0; 1 << 16], blocks: Vec::new() };
        let mut known = HashMap::new();
        for at in 0..1 << 16 {
            table.root[at] = table.entry(ranges, (at as u32) << 16, 16, &mut known);
        }
        table
    }

    /// The entry for the addresses that share all but their last `bits` bits with `first`.
    fn entry(
        &mut self,
        ranges: &[(u32, u32)],
        first: u32,
        bits: u32,
        known: &mut HashMap<Vec<u32>, u32>,
    ) -> u32 {
        let last = first | ((1u64 << bits) - 1) as u32;
        let start = ranges.partition_point(|(begin, _)| *begin <= first) - 1;
        let end = ranges.partition_point(|(begin, _)| *begin <= last) - 1;
        if start == end {
            return ranges[start].1;
        }
        let step = bits - 8;
        let block: Vec<u32> =
            (0..BLOCK as u32).map(|at| self.entry(ranges, first | at << step, step, known)).collect();
        let next = DEEPER | self.blocks.len() as u32;
        let entry = *known.entry(block.clone()).or_insert(next);
        if entry == next {
            self.blocks.extend(block);
        }
        entry
    }

    /// The number of an address.
    #[inline]
    pub(super) fn get(&self, address: u32) -> u32 {
        let mut entry = self.root[(address >> 16) as usize];
        if entry & DEEPER != 0 {
            entry = self.blocks[(entry & !DEEPER) as usize + (address >> 8 & 255) as usize];
            if entry & DEEPER != 0 {
                entry = self.blocks[(entry & !DEEPER) as usize + (address & 255) as usize];
            }
        }
        entry
    }
}

/// The addresses at which a range may begin if ranges begin and end with these prefixes, in order.
pub(super) fn starts(prefixes: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut starts: Vec<u32> =
        prefixes.flat_map(|(first, last)| [Some(first), last.checked_add(1)]).flatten().chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}
