//! Changes of a trie that lookups don't see yet.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound;

use crate::Address;
use crate::key::Key;
use crate::node::SLOTS;

/// Changes up to which they are made at once.
const MAX_FEW_BLOCKS: usize = 16;

/// Levels of the trie that are rewritten in a step, of one block or several. Each takes about half a microsecond.
pub(crate) const LEVELS_A_STEP: usize = 32;

/// Bytes of a large trie, and how many of its blocks are rewritten at once: a copy would take longer, and as much memory as the
/// trie.
pub(crate) const LARGE_BYTES: usize = 4 << 20;
pub(crate) const BLOCKS_AT_ONCE: usize = 128;

/// Blocks that are counted in a step.
const BLOCKS_COUNTED_A_STEP: usize = 128;

/// Values of a node on the way to others: the slots before the next node, that slot, and those after it.
const VALUES_PER_NODE: usize = 4;

/// Values that a further node needs at most in the one above it, where that has others already: two, of which as many as are in use
/// may be free, because lists of values have lengths that are powers of two.
const VALUES_PER_BRANCH: usize = 4;

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
    /// There is no memory for a copy: the trie itself is being changed, and lookups see some of the changes before others.
    InPlace,
}

/// The most nodes and values that blocks need, as far as they are counted. Without room for all of them, many would be moved while blocks
/// are rewritten, which takes long.
#[derive(Clone)]
pub(crate) struct NodeCount<A> {
    pub(crate) nodes: usize,
    pub(crate) values: usize,
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
        // A new node has a list of one value before it is filled.
        Self { nodes: 0, values: 1, last: None }
    }

    /// Counts some more blocks. Returns whether it has counted all.
    pub(crate) fn go_on<V>(&mut self, blocks: &BTreeSet<(u8, A)>, routes: &BTreeMap<Key<A>, V>) -> bool {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = BLOCKS_COUNTED_A_STEP;
        for &(level, block) in blocks.range((after, Bound::Unbounded)).take(BLOCKS_COUNTED_A_STEP) {
            // The way to a block has a node for each level from the second on. Neighbours share those of the bytes in which
            // they are equal.
            let before = self.last.filter(|(of, _)| *of == level);
            let equal =
                |byte: &usize| before.is_some_and(|(_, before)| before.byte(*byte) == block.byte(*byte));
            let shared = (0..usize::from(level)).take_while(equal).count();
            let added = usize::from(level).saturating_sub(shared.max(1));
            if level > 1 {
                // Each route begins a run of equal slots, and another one begins behind it.
                let count = Key::routes_of(routes, level, block).take(SLOTS / 2).count();
                let own = (2 * count + 1).min(SLOTS).next_power_of_two();
                self.nodes += added;
                self.values += own + VALUES_PER_NODE * added.saturating_sub(1);
                self.values += if shared > 1 { VALUES_PER_BRANCH } else { 0 };
            }
            self.last = Some((level, block));
            left -= 1;
        }
        left > 0
    }
}
