//! Changes of a trie that lookups don't see yet.

use alloc::collections::BTreeSet;
use core::ops::Bound;

use crate::Address;

/// Changes up to which they are made at once.
const MAX_FEW_BLOCKS: usize = 16;

/// Levels of the trie that are rewritten in a step, of one block or several. Each takes about half a microsecond.
pub(crate) const LEVELS_A_STEP: usize = 32;

/// Bytes of a large trie, and how many of its blocks are rewritten at once: a copy would take longer, and as much memory as the
/// trie.
pub(crate) const LARGE_BYTES: usize = 4 << 20;
pub(crate) const BLOCKS_AT_ONCE: usize = 128;

/// Blocks that are counted in a step.
const BLOCKS_COUNTED_A_STEP: usize = 512;

/// Changes that lookups don't see yet.
#[derive(Clone)]
pub(crate) struct Deferred<A, T> {
    /// The blocks to rewrite, by level and first address: neighbours are rewritten one after the other.
    pub(crate) blocks: BTreeSet<(u8, A)>,
    /// While changes are applied in steps: the trie that will replace the present one.
    pub(crate) next: Next<A, T>,
}

/// A copy of a trie, in which changes are made.
#[derive(Clone)]
pub(crate) enum Next<A, T> {
    None,
    /// The nodes that it needs are counted.
    Counting(NodeCount<A>),
    /// It is being copied.
    Copying(T),
    /// It is being changed.
    Changing(T),
}

/// The most nodes that blocks need, as far as they are counted. Without room for all of them, many would be moved while blocks
/// are rewritten, which takes long.
#[derive(Clone)]
pub(crate) struct NodeCount<A> {
    pub(crate) nodes: usize,
    last: Option<(u8, A)>,
}

impl<A: Address, T> Deferred<A, T> {
    pub(crate) fn new() -> Self {
        Self { blocks: BTreeSet::new(), next: Next::None }
    }

    /// Whether the changes of a trie of this size are so few that they are made at once.
    pub(crate) fn are_few(&self, bytes: usize) -> bool {
        let blocks = self.blocks.len();
        blocks <= MAX_FEW_BLOCKS || blocks <= BLOCKS_AT_ONCE && bytes > LARGE_BYTES
    }
}

impl<A: Address> NodeCount<A> {
    pub(crate) fn new() -> Self {
        Self { nodes: 0, last: None }
    }

    /// Counts some more blocks. Returns whether it has counted all.
    pub(crate) fn go_on(&mut self, blocks: &BTreeSet<(u8, A)>) -> bool {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = BLOCKS_COUNTED_A_STEP;
        for &(level, block) in blocks.range((after, Bound::Unbounded)).take(BLOCKS_COUNTED_A_STEP) {
            // The way to a block has a node for each level from the second on. Neighbours share those of the bytes in which
            // they are equal.
            let before = self.last.filter(|(of, _)| *of == level);
            let equal =
                |byte: &usize| before.is_some_and(|(_, before)| before.byte(*byte) == block.byte(*byte));
            let shared = (0..usize::from(level)).take_while(equal).count();
            self.nodes += usize::from(level).saturating_sub(shared.max(1));
            self.last = Some((level, block));
            left -= 1;
        }
        left > 0
    }
}
