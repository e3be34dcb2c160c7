//! Trie nodes of 256 slots, stored as runs of equal slots.
//!
//! A node is one cache line: a bitmap of the slots that start a run, and the location of the runs' values. Reading a
//! slot takes two loads, the node and the value, whatever the number of runs. Values live in one pool, in power-of-two
//! blocks that are reused by size.

use alloc::vec::Vec;

/// Slots per node: one for each value of a byte.
pub(crate) const SLOTS: usize = 256;

/// Set in a slot that leads to another node; the other bits are the node's number.
pub(crate) const CHILD: u32 = 1 << 31;

/// Number of value block sizes: 1, 2, 4 ... 256.
const CLASSES: usize = 9;

/// Bytes of a list that are copied in a step, which takes some microseconds.
const COPIED_BYTES: usize = 1 << 15;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node {
    /// Bit `slot` is set if the slot differs from its predecessor; bit 0 is always set.
    starts: [u64; 4],
    /// Number of set bits in the preceding words.
    before: [u8; 4],
    /// Start of the block of values.
    first: u32,
    /// Size class of the block.
    class: u8,
    /// Value of the slot that leads to this node.
    base: u32,
}

const EMPTY: Node = Node { starts: [1, 0, 0, 0], before: [0, 1, 1, 1], first: 0, class: 0, base: 0 };

/// All nodes of a trie. Node 0 always exists, and its slots are 0.
#[derive(Clone)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    values: Vec<u32>,
    free_values: [Vec<u32>; CLASSES],
}

impl Nodes {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::from([EMPTY]),
            free_nodes: Vec::new(),
            values: Vec::from([0]),
            free_values: Default::default(),
        }
    }

    /// The position of a slot's value: the first of the two loads.
    #[inline]
    pub(crate) fn position(&self, node: u32, slot: usize) -> u32 {
        let node = &self.nodes[node as usize];
        let word = (slot >> 6) & 3;
        let upto = u64::MAX >> (63 - (slot & 63));
        let rank = u32::from(node.before[word]) + (node.starts[word] & upto).count_ones();
        // Slot 0 starts a run, so the rank is at least 1.
        node.first.wrapping_add(rank).wrapping_sub(1)
    }

    /// Prefetches the memory that `position` reads.
    #[inline]
    pub(crate) fn prefetch(&self, node: u32) {
        if let Some(node) = self.nodes.get(node as usize) {
            packet::prefetch(node);
        }
    }

    /// Prefetches the memory that `value` reads.
    #[inline]
    pub(crate) fn prefetch_value(&self, position: u32) {
        if let Some(value) = self.values.get(position as usize) {
            packet::prefetch(value);
        }
    }

    /// The value at a position: the second load.
    #[inline]
    pub(crate) fn value(&self, position: u32) -> u32 {
        self.values[position as usize]
    }

    /// The value that the slot leading to `node` would have without the node.
    #[inline]
    pub(crate) fn base(&self, node: u32) -> u32 {
        self.nodes[node as usize].base
    }

    pub(crate) fn set_base(&mut self, node: u32, base: u32) {
        self.nodes[node as usize].base = base;
    }

    /// Allocates a node whose slots are 0.
    pub(crate) fn allocate(&mut self, base: u32) -> u32 {
        let first = self.allocate_values(0);
        self.values[first as usize] = 0;
        let fresh = Node { first, base, ..EMPTY };
        match self.free_nodes.pop() {
            Some(node) => {
                self.nodes[node as usize] = fresh;
                node
            }
            None => {
                self.nodes.push(fresh);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    /// Frees a node, but not its children.
    pub(crate) fn release(&mut self, node: u32) {
        let Node { first, class, .. } = self.nodes[node as usize];
        self.free_values[usize::from(class)].push(first);
        self.nodes[node as usize] = EMPTY;
        self.free_nodes.push(node);
    }

    /// All slots of a node.
    pub(crate) fn expand(&self, node: u32) -> [u32; SLOTS] {
        let node = &self.nodes[node as usize];
        let mut slots = [0; SLOTS];
        let mut next = node.first as usize;
        let mut value = 0;
        for (at, slot) in slots.iter_mut().enumerate() {
            if node.starts[at >> 6] >> (at & 63) & 1 != 0 {
                value = self.values[next];
                next += 1;
            }
            *slot = value;
        }
        slots
    }

    /// Replaces all slots of a node.
    pub(crate) fn store(&mut self, node: u32, slots: &[u32; SLOTS]) {
        let mut starts = [0u64; 4];
        let mut runs = [0u32; SLOTS];
        let mut count = 0;
        for (at, &slot) in slots.iter().enumerate() {
            if at == 0 || slot != runs[count - 1] {
                starts[at >> 6] |= 1 << (at & 63);
                runs[count] = slot;
                count += 1;
            }
        }
        let mut before = [0u8; 4];
        for word in 1..4 {
            before[word] = before[word - 1] + starts[word - 1].count_ones() as u8;
        }
        let class = count.next_power_of_two().trailing_zeros() as u8;
        let old = self.nodes[node as usize];
        let mut first = old.first;
        if class != old.class {
            self.free_values[usize::from(old.class)].push(old.first);
            first = self.allocate_values(class);
        }
        self.values[first as usize..first as usize + count].copy_from_slice(&runs[..count]);
        self.nodes[node as usize] = Node { starts, before, first, class, base: old.base };
    }

    /// Begins to copy these nodes, with room for more, if there is memory. The copy is of no use before it is complete.
    pub(crate) fn begin_copy(&self, more_nodes: usize, more_values: usize) -> Option<Self> {
        Some(Self {
            nodes: with_room(self.nodes.capacity().max(self.nodes.len() + more_nodes))?,
            free_nodes: with_room(self.free_nodes.capacity())?,
            values: with_room(self.values.capacity().max(self.values.len() + more_values))?,
            free_values: Default::default(),
        })
    }

    /// Copies some more of nodes that have not changed. Returns whether the copy is complete.
    pub(crate) fn copy_some(&mut self, from: &Self) -> bool {
        copy_some(&mut self.nodes, &from.nodes)
            && copy_some(&mut self.free_nodes, &from.free_nodes)
            && copy_some(&mut self.values, &from.values)
            && self.free_values.iter_mut().zip(&from.free_values).all(|(to, from)| copy_some(to, from))
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.values.capacity() * size_of::<u32>()
    }

    /// The number of nodes and that of values.
    #[cfg(test)]
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.nodes.len(), self.values.len())
    }

    fn allocate_values(&mut self, class: u8) -> u32 {
        self.free_values[usize::from(class)].pop().unwrap_or_else(|| {
            let first = self.values.len();
            self.values.resize(first + (1 << class), 0);
            first as u32
        })
    }
}

/// An empty list with room for this many values, if there is memory.
pub(crate) fn with_room<T>(count: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).ok()?;
    Some(list)
}

/// Appends to a list some more of what it does not have of another. Returns whether it has all.
pub(crate) fn copy_some<T: Copy>(to: &mut Vec<T>, from: &[T]) -> bool {
    let left = from.get(to.len()..).unwrap_or_default();
    let count = left.len().min(COPIED_BYTES / size_of::<T>());
    to.extend_from_slice(left.get(..count).unwrap_or_default());
    count == left.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nodes: &mut Nodes, node: u32, slots: &[u32; SLOTS]) {
        nodes.store(node, slots);
        assert_eq!(nodes.expand(node), *slots);
        for (at, &slot) in slots.iter().enumerate() {
            assert_eq!(nodes.value(nodes.position(node, at)), slot, "slot {at}");
        }
    }

    #[test]
    fn any_pattern_of_runs_reads_back() {
        let mut nodes = Nodes::new();
        let node = nodes.allocate(7);
        for period in [1, 2, 3, 63, 64, 65, 200, 256] {
            check(&mut nodes, node, &core::array::from_fn(|at| (at / period) as u32));
        }
        assert_eq!(nodes.base(node), 7);
        check(&mut nodes, node, &[0; SLOTS]);
        assert_eq!(nodes.value(nodes.position(0, 255)), 0, "node 0 stays empty");
    }

    #[test]
    fn blocks_are_reused() {
        let mut nodes = Nodes::new();
        let dense = core::array::from_fn(|at| at as u32);
        let node = nodes.allocate(0);
        nodes.store(node, &dense);
        let bytes = nodes.bytes();
        for _ in 0..1_000 {
            nodes.release(node);
            assert_eq!(nodes.allocate(0), node);
            nodes.store(node, &dense);
        }
        assert_eq!(nodes.bytes(), bytes);
    }
}
