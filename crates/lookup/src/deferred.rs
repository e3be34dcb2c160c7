//! Changes of a trie that lookups don't see yet.

use alloc::collections::BTreeSet;

/// Changes up to which they are made at once.
const MAX_FEW_BLOCKS: usize = 16;

/// Levels of the trie that are rewritten in a step, of one block or several. Each takes about half a microsecond.
pub(crate) const LEVELS_A_STEP: usize = 32;

/// Bytes of a large trie, and how many of its blocks are rewritten at once: a copy would take longer, and as much memory as the
/// trie.
pub(crate) const LARGE_BYTES: usize = 4 << 20;
pub(crate) const BLOCKS_AT_ONCE: usize = 128;

/// Nodes for which there is room before a block is rewritten in steps: its own, and one above it. Moving many nodes, because
/// there is no room for more, takes long.
const NODES_PER_BLOCK: usize = 2;

/// Changes that lookups don't see yet.
#[derive(Clone)]
pub(crate) struct Deferred<A, T> {
    /// The blocks to rewrite, by level and first address: neighbours are rewritten one after the other.
    pub(crate) blocks: BTreeSet<(u8, A)>,
    /// While changes are applied in steps: the trie that will replace the present one.
    pub(crate) next: Next<T>,
}

/// A copy of a trie, in which changes are made.
#[derive(Clone)]
pub(crate) enum Next<T> {
    None,
    /// It is being copied.
    Copying(T),
    /// It is being changed.
    Changing(T),
}

impl<A: Ord, T> Deferred<A, T> {
    pub(crate) fn new() -> Self {
        Self { blocks: BTreeSet::new(), next: Next::None }
    }

    /// Begins to copy a trie of this size: `copy` makes a copy with room for a number of further nodes, if there is memory.
    /// Returns false if the changes are to be made at once: they are few, or there is no copy.
    pub(crate) fn begin_copy(&mut self, bytes: usize, copy: impl FnOnce(usize) -> Option<T>) -> bool {
        let blocks = self.blocks.len();
        let are_few = blocks <= MAX_FEW_BLOCKS || blocks <= BLOCKS_AT_ONCE && bytes > LARGE_BYTES;
        self.next = match are_few {
            true => Next::None,
            false => copy(NODES_PER_BLOCK * blocks).map_or(Next::None, Next::Copying),
        };
        matches!(self.next, Next::Copying(_))
    }
}
