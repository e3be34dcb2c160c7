//! Maps the values of a field to classes for whole batches, without branches that depend on packets.
//!
//! A field with few classes is decided by comparisons, each a pass over the batch with vectors. Any other field is decided
//! by a table: the first 16 bits of an address (8 bits of a shorter field) select an entry, which is a class or refers to a
//! block for the next 8 bits. Every value takes the same number of steps: where the class is already known, the next step
//! reads block 0, and its result is not used.

use alloc::vec;
use alloc::vec::Vec;

use packet::{MAX_BATCH, add_where_at_least};

use crate::map::bits;
use crate::pace::Pace;
use crate::words::Column;

/// Maximum comparisons of a field that is decided by them. From there on, a table is as fast.
const MAX_COMPARISONS: usize = 12;
/// Set in an entry that refers to a block.
const BLOCK: u16 = 1 << 15;
/// Values are compared in groups of this size.
const LANES: usize = 16;
/// Entries of a block.
const BLOCK_SIZE: usize = 256;

/// Maps each value of a field to a class.
pub(crate) enum Flat {
    /// Two classes: those values whose masked bits equal `value`, and the others.
    Bits { mask: u32, value: u32, classes: [u32; 2] },
    /// The class of the lowest values, and for each bound the difference between the classes before and after it. Bounds
    /// are biased by 2^31, because processors compare signed numbers faster.
    Bounds { first: u32, bounds: Vec<(i32, u32)> },
    /// A table in steps.
    Table(Table),
}

/// A table of classes in steps.
pub(crate) struct Table {
    root: Vec<u16>,
    /// Blocks of 256 entries. Block 0 is not used.
    blocks: Vec<u16>,
    /// Bits below those that select an entry of the root.
    below: u32,
    /// Steps after the root: 1 or 2 if there are blocks for the next 8 bits, or for those after them.
    steps: u32,
}

impl Flat {
    /// The map of a field of `width` bytes from its parts: first value and class of each, sorted. Classes are below 2^15.
    ///
    /// Returns `None` if it needs more than `most` bytes.
    pub(crate) async fn new(parts: &[(u32, u32)], width: u8, most: usize, pace: &Pace) -> Option<Self> {
        let (_, first) = *parts.first()?;
        let last = u32::MAX >> (32 - 8 * u32::from(width));
        if let Some((mask, value, classes)) = bits(parts, last) {
            return Some(Self::Bits { mask, value, classes });
        }
        if parts.len() <= MAX_COMPARISONS + 1 {
            let change = |pair: &[(u32, u32)]| (bias(pair[1].0), pair[1].1.wrapping_sub(pair[0].1));
            return Some(Self::Bounds { first, bounds: parts.windows(2).map(change).collect() });
        }
        Table::new(parts, width, most, pace).await.map(Self::Table)
    }

    /// The classes of the first `count` words of a column; others may change too. The value is the part of the word that is
    /// left of `shift` bits, under `mask`.
    #[inline]
    pub(crate) fn classes(&self, words: &Column, (shift, mask): (u8, u32), into: &mut Column, count: usize) {
        let value = |word: &u32| (u32::from_be(*word) >> (shift & 31)) & mask;
        match self {
            Self::Bits { mask: bits, value: wanted, classes: [class, other] } => {
                for (into, word) in into[..count].iter_mut().zip(words) {
                    *into = if value(word) & bits == *wanted { *class } else { *other };
                }
            }
            Self::Bounds { first, bounds } => {
                let count = count.next_multiple_of(LANES).min(into.len());
                let mut biased = [0; MAX_BATCH];
                for (biased, word) in biased[..count].iter_mut().zip(words) {
                    *biased = bias(value(word));
                }
                into[..count].fill(*first);
                let (classes, _) = into[..count].as_chunks_mut::<LANES>();
                let (values, _) = biased.as_chunks();
                for (bound, change) in bounds {
                    for (classes, values) in classes.iter_mut().zip(values) {
                        add_where_at_least(classes, values, *bound, *change);
                    }
                }
            }
            Self::Table(table) => table.classes(words.iter().map(value), &mut into[..count]),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Bits { .. } => 0,
            Self::Bounds { bounds, .. } => size_of_val(&bounds[..]),
            Self::Table(table) => 2 * (table.root.len() + table.blocks.len()),
        }
    }
}

/// Maps unsigned numbers to signed ones in the same order.
#[inline(always)]
fn bias(value: u32) -> i32 {
    (value ^ (1 << 31)) as i32
}

impl Table {
    async fn new(parts: &[(u32, u32)], width: u8, most: usize, pace: &Pace) -> Option<Self> {
        let root_bits = if width == 4 { 16 } else { 8 };
        let below = 8 * u32::from(width) - root_bits;
        let mut table = Self { root: Vec::new(), blocks: vec![0; BLOCK_SIZE], below, steps: 0 };
        if 2 * (BLOCK_SIZE + (1 << root_bits)) > most {
            return None;
        }
        table.root = vec![0; 1 << root_bits];
        // Entries that need a block: where it is, the first value below it, and the bits below.
        let mut waiting: Vec<(u16, u32, u32)> = Vec::new();
        table.fill(None, parts, 0, below, &mut waiting)?;
        while let Some((block, start, below)) = waiting.pop() {
            pace.spend(BLOCK_SIZE / 2).await;
            if 2 * (table.root.len() + table.blocks.len()) > most {
                return None;
            }
            table.fill(Some(block), parts, start, below, &mut waiting)?;
        }
        (2 * (table.root.len() + table.blocks.len()) <= most).then_some(table)
    }

    /// Fills the root or a block, for values from `start` on. Each entry covers `1 << below` values. Adds the blocks that
    /// entries refer to.
    fn fill(
        &mut self,
        block: Option<u16>,
        parts: &[(u32, u32)],
        start: u32,
        below: u32,
        waiting: &mut Vec<(u16, u32, u32)>,
    ) -> Option<()> {
        let count = if block.is_some() { BLOCK_SIZE } else { self.root.len() };
        let mut part = parts.partition_point(|(first, _)| *first <= start).checked_sub(1)?;
        let mut entry = 0;
        while entry < count {
            let first = start + ((entry as u32) << below);
            while parts.get(part + 1).is_some_and(|(bound, _)| *bound <= first) {
                part += 1;
            }
            let class = parts.get(part)?.1;
            let next = parts.get(part + 1).map(|(bound, _)| *bound);
            // Entries before that of the next bound have the class of this part.
            let until = next.map_or(count, |next| (((next - start) >> below) as usize).min(count));
            let (until, value) = if until > entry {
                (until, u16::try_from(class).ok().filter(|class| *class < BLOCK)?)
            } else {
                let added =
                    u16::try_from(self.blocks.len() / BLOCK_SIZE).ok().filter(|block| *block < BLOCK)?;
                self.blocks.resize(self.blocks.len() + BLOCK_SIZE, 0);
                let step = if block.is_some() { 2 } else { 1 };
                self.steps = self.steps.max(step);
                waiting.push((added, first, below - 8));
                (entry + 1, BLOCK | added)
            };
            let entries = match block {
                Some(block) => self.blocks.get_mut(usize::from(block) * BLOCK_SIZE..)?,
                None => &mut self.root[..],
            };
            entries.get_mut(entry..until)?.fill(value);
            entry = until;
        }
        Some(())
    }

    #[inline(always)]
    fn classes(&self, values: impl Iterator<Item = u32>, into: &mut [u32]) {
        let values = into.iter_mut().zip(values);
        match self.steps {
            0 => values.for_each(|(into, value)| *into = self.root_entry(value)),
            1 => {
                let shift = (self.below & 31).saturating_sub(8);
                values.for_each(|(into, value)| *into = self.step(self.root_entry(value), value >> shift));
            }
            _ => values.for_each(|(into, value)| {
                *into = self.step(self.step(self.root_entry(value), value >> 8), value);
            }),
        }
    }

    #[inline(always)]
    fn root_entry(&self, value: u32) -> u32 {
        self.root.get((value >> (self.below & 31)) as usize).copied().unwrap_or(0).into()
    }

    /// Follows an entry that refers to a block; keeps one that is a class. Computes both, because a branch would be
    /// mispredicted.
    #[inline(always)]
    fn step(&self, entry: u32, value: u32) -> u32 {
        let is_block = entry & u32::from(BLOCK) != 0;
        let at = (entry & u32::from(!BLOCK)) << 8 | (value & 255);
        let at = core::hint::select_unpredictable(is_block, at, 0);
        let next = u32::from(self.blocks.get(at as usize).copied().unwrap_or(0));
        core::hint::select_unpredictable(is_block, next, entry)
    }
}
