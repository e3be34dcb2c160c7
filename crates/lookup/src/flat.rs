//! The flat form of a table: arrays in which each lookup takes the same steps, whatever the address.
//!
//! The first 16 bits of an address select an entry of the root, which is a hop or refers to a block for the next 8 bits;
//! so do the entries of blocks. Where the hop is already known, the next step reads block 0, and its result is not used:
//! a branch would be mispredicted for every other packet of mixed traffic, and the processor works on the cache misses of
//! many addresses at a time.

use alloc::vec::Vec;

use crate::{Address, Prefix};

/// Bytes of an address that select an entry of the root.
const ROOT_LEVELS: usize = 2;
/// Entries of the root.
const ROOT: usize = 1 << (8 * ROOT_LEVELS);
/// Entries of a block.
const BLOCK: usize = 256;
/// Set in an entry that refers to a block. Other entries are 0 for no route, or a hop + 1.
const REFERS: u16 = 1 << 15;
/// Levels of blocks at most. A table with longer prefixes has no flat form.
const MAX_STEPS: usize = 2;

/// The maximum memory of a flat form. It should stay in the processor's caches.
const MAX_BYTES: usize = 4 << 20;

/// A flat table. It cannot be changed, once all routes are in it.
#[derive(Clone)]
pub(crate) struct Flat {
    root: Vec<u16>,
    /// Blocks of 256 entries. Block 0 is never referred to.
    blocks: Vec<u16>,
    /// Levels of blocks.
    steps: usize,
}

impl Flat {
    /// An empty table with room for `blocks` blocks. `None` if it would need more than [`MAX_BYTES`], or memory that there
    /// is not.
    pub(crate) fn with_room(blocks: usize) -> Option<Self> {
        let entries = (1 + blocks).checked_mul(BLOCK).filter(|entries| 2 * (ROOT + entries) <= MAX_BYTES)?;
        let mut flat = Self { root: Vec::new(), blocks: Vec::new(), steps: 0 };
        flat.root.try_reserve_exact(ROOT).ok()?;
        flat.blocks.try_reserve_exact(entries).ok()?;
        flat.root.resize(ROOT, 0);
        flat.blocks.resize(BLOCK, 0);
        Some(flat)
    }

    /// The blocks that routes need at most, given their prefixes in the order of [`add`](Self::add).
    pub(crate) fn blocks_of<A: Address>(prefixes: impl Iterator<Item = Prefix<A>>) -> usize {
        let (mut blocks, mut last) = (0, [None; MAX_STEPS]);
        for prefix in prefixes {
            for (step, last) in (0u8..).zip(&mut last) {
                let above = 8 * (ROOT_LEVELS as u8 + step);
                if prefix.length() > above {
                    let block = Some(prefix.address().first(above));
                    blocks += usize::from(*last != block);
                    *last = block;
                }
            }
        }
        blocks
    }

    /// Adds a route. Of two prefixes of which one contains the other, the longer one must come later. `None` if there is
    /// no room, or the prefix is too long, or the hop too large: the table is then of no use.
    pub(crate) fn add<A: Address>(&mut self, prefix: Prefix<A>, hop: u32) -> Option<()> {
        let value = u16::try_from(hop + 1).ok().filter(|value| *value < REFERS)?;
        self.paint(prefix, value)
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        2 * (self.root.capacity() + self.blocks.capacity())
    }

    /// Sets the entries of a prefix.
    fn paint<A: Address>(&mut self, prefix: Prefix<A>, value: u16) -> Option<()> {
        let (address, length) = (prefix.address(), usize::from(prefix.length()));
        let first = address.byte(0) << 8 | address.byte(1);
        // Bits of the address that the entries so far cover.
        let mut covered = 8 * ROOT_LEVELS;
        if length <= covered {
            self.root.get_mut(first..first + (1 << (covered - length)))?.fill(value);
            return Some(());
        }
        let mut entry = *self.root.get(first)?;
        if entry & REFERS == 0 {
            entry = self.add_block(entry)?;
            *self.root.get_mut(first)? = entry;
        }
        for step in 1..=MAX_STEPS {
            self.steps = self.steps.max(step);
            covered += 8;
            let at = usize::from(entry & !REFERS) * BLOCK + address.byte(covered / 8 - 1);
            if length <= covered {
                self.blocks.get_mut(at..at + (1 << (covered - length)))?.fill(value);
                return Some(());
            }
            entry = *self.blocks.get(at)?;
            if entry & REFERS == 0 {
                entry = self.add_block(entry)?;
                *self.blocks.get_mut(at)? = entry;
            }
        }
        None
    }

    /// Adds a block with this value in all entries. Returns the entry that refers to it.
    fn add_block(&mut self, value: u16) -> Option<u16> {
        let number = u16::try_from(self.blocks.len() / BLOCK).ok().filter(|number| *number < REFERS)?;
        let end = self.blocks.len() + BLOCK;
        if end > self.blocks.capacity() {
            return None;
        }
        self.blocks.resize(end, value);
        Some(REFERS | number)
    }

    /// Looks up addresses: `hops[i]` becomes the hop of `addresses[i]`, or `NO_HOP`.
    pub(crate) fn lookup_batch<A: Address>(&self, addresses: &[A], hops: &mut [u32]) {
        let pairs = hops.iter_mut().zip(addresses);
        let root = |address: &A| self.root_entry(*address);
        let step = |entry, address: &A, level| self.step(entry, address.byte(level));
        let hop = |entry: u32| entry.wrapping_sub(1);
        match self.steps {
            0 => pairs.for_each(|(to, address)| *to = hop(root(address))),
            1 => pairs.for_each(|(to, address)| *to = hop(step(root(address), address, 2))),
            _ => pairs.for_each(|(to, address)| *to = hop(step(step(root(address), address, 2), address, 3))),
        }
    }

    #[inline(always)]
    fn root_entry<A: Address>(&self, address: A) -> u32 {
        self.root.get(address.byte(0) << 8 | address.byte(1)).copied().unwrap_or(0).into()
    }

    /// Follows an entry that refers to a block; keeps one that is a hop. Computes both.
    #[inline(always)]
    fn step(&self, entry: u32, byte: usize) -> u32 {
        let refers = 0u32.wrapping_sub(entry >> 15);
        let at = (entry as usize & usize::from(!REFERS)) * BLOCK + byte;
        let next = u32::from(self.blocks.get(at & refers as usize).copied().unwrap_or(0));
        (next & refers) | (entry & !refers)
    }
}
