//! Maps a field's value to its class, with a byte-wise trie whose sparse branches are short sorted lists.
//!
//! The cost of a lookup hardly depends on the number of classes: one step per byte while many classes share a prefix,
//! then two rounds of branch-free comparisons with up to fifteen bounds.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::pace::Pace;

/// Maximum class changes in a list; a branch with more becomes a node.
const MAX_LIST: usize = 15;
/// In a node with more lists than this, constant branches become lists too.
const MAX_MIXED: usize = 24;

/// The target of a branch: the top two bits select class, list or node, the others are its number.
type Link = u32;
const KIND: u32 = 3 << 30;
const CLASS: u32 = 0;
const TO_LIST: u32 = 1 << 30;
const TO_NODE: u32 = 2 << 30;

/// A range of values with few class changes.
///
/// The class of a value is that of the last bound at or below it. Unused bounds are the maximum value and repeat the
/// last class.
#[repr(align(64))]
struct List {
    /// Sorted first values of all parts but the first. The last entry is never read.
    bounds: [u32; MAX_LIST + 1],
    /// Class of the part before each bound, and of the part after the last.
    classes: [u32; MAX_LIST + 1],
}

impl List {
    #[inline]
    fn class(&self, value: u32) -> u32 {
        // Two rounds of three comparisons, without branches. On packets in random order branches would be mispredicted,
        // and a binary search would be four dependent loads.
        let passed = |at: usize| usize::from(self.bounds[at & MAX_LIST] <= value);
        let quarter = 4 * (passed(3) + passed(7) + passed(11));
        let at = quarter + passed(quarter) + passed(quarter + 1) + passed(quarter + 2);
        self.classes[at & MAX_LIST]
    }
}

/// Maps each value of a 1-, 2- or 4-byte field to a class.
pub(crate) enum Map {
    /// Two classes, distinguished by a masked comparison.
    Bits {
        /// The bits to compare.
        mask: u32,
        /// Their value in the first class.
        value: u32,
        /// The class of equal values, and the class of the others.
        classes: [u32; 2],
    },
    /// A class for each value of a field of one byte.
    Table(Box<[u32; 256]>),
    /// The general form.
    Trie(Trie),
}

impl Map {
    /// Builds the map of a field of `width` bytes from its parts: first value and class of each, sorted. The first part
    /// starts at 0; classes are below 2^30.
    pub(crate) async fn new(parts: &[(u32, u32)], width: u8, pace: &Pace) -> Self {
        let last = u32::MAX >> (32 - 8 * u32::from(width));
        if let Some((mask, value, classes)) = bits(parts, last) {
            return Self::Bits { mask, value, classes };
        }
        let trie = Trie::new(parts, width, pace).await;
        match width {
            1 => Self::Table(trie.root),
            _ => Self::Trie(trie),
        }
    }

    /// The class of `value`, which must fit the field.
    #[inline]
    pub(crate) fn class(&self, value: u32) -> u32 {
        match self {
            Self::Bits { mask, value: wanted, classes } => classes[usize::from(value & mask != *wanted)],
            Self::Table(table) => table[value as usize & 255],
            Self::Trie(trie) => trie.class(value),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Bits { .. } => 0,
            Self::Table(_) => 1024,
            Self::Trie(trie) => trie.bytes(),
        }
    }
}

/// The two classes of a field, if the first consists of all values whose masked bits have a certain value: the mask, the
/// value, and the classes.
pub(crate) fn bits(parts: &[(u32, u32)], last: u32) -> Option<(u32, u32, [u32; 2])> {
    let first = parts.first()?.1;
    let other = parts.iter().map(|(_, class)| *class).find(|class| *class != first)?;
    if parts.iter().any(|(_, class)| *class != first && *class != other) {
        return None;
    }
    let ends = parts.iter().skip(1).map(|(start, _)| start - 1).chain([last]);
    let spans = || parts.iter().zip(ends.clone()).map(|((start, class), end)| (*start, end, *class));
    [[first, other], [other, first]].into_iter().find_map(|classes| {
        let own = spans().filter(|(_, _, class)| *class == classes[0]).map(|(start, end, _)| (start, end));
        common_bits(own, last).map(|(mask, value)| (mask, value, classes))
    })
}

/// The mask and value that all values in these spans, and no others up to `last`, have in common.
pub(crate) fn common_bits(spans: impl Iterator<Item = (u32, u32)> + Clone, last: u32) -> Option<(u32, u32)> {
    let value = spans.clone().next()?.0;
    // If a bit varies within a span, all lower bits vary too.
    let smear = |bits: u32| bits.checked_ilog2().map_or(0, |bit| u32::MAX >> (31 - bit));
    let varying = spans.clone().fold(0, |bits, (start, end)| bits | (start ^ value) | smear(start ^ end));
    let count: u64 = spans.map(|(start, end)| u64::from(end - start) + 1).sum();
    let mask = last & !varying;
    // All values match; if their number equals that of the matching values, no other value matches.
    (count == 1 << varying.count_ones()).then_some((mask, value & mask))
}

/// The values from `start` on, in parts of which each has a class. A node for them has branches of `1 << below` values.
#[derive(Clone, Copy)]
struct Branch<'a> {
    parts: &'a [(u32, u32)],
    start: u32,
    below: u32,
}

/// Maps every value of a field to a class, byte by byte.
pub(crate) struct Trie {
    root: Box<[Link; 256]>,
    nodes: Vec<[Link; 256]>,
    lists: Vec<List>,
    /// Number of bits below the field's first byte.
    below: u32,
}

impl Trie {
    /// Builds the trie of a field, as [`Map::new`].
    async fn new(parts: &[(u32, u32)], width: u8, pace: &Pace) -> Self {
        let mut map = Self {
            root: Box::new([0; 256]),
            nodes: Vec::new(),
            lists: Vec::new(),
            below: 8 * (u32::from(width) - 1),
        };
        let mut waiting = Vec::new();
        map.root = map.node(Branch { parts, start: 0, below: map.below }, &mut waiting);
        while let Some((number, branch)) = waiting.pop() {
            pace.spend(256 + 2 * branch.parts.len().min(1024)).await;
            let node = map.node(branch, &mut waiting);
            if let Some(place) = map.nodes.get_mut(number) {
                *place = *node;
            }
        }
        map.nodes.shrink_to_fit();
        map.lists.shrink_to_fit();
        map
    }

    /// Bytes of memory held.
    fn bytes(&self) -> usize {
        1024 * (1 + self.nodes.len()) + size_of::<List>() * self.lists.len()
    }

    /// The node for a branch. Adds the nodes below it, with their numbers, to those that wait to be filled.
    fn node<'a>(&mut self, branch: Branch<'a>, waiting: &mut Vec<(usize, Branch<'a>)>) -> Box<[Link; 256]> {
        let Branch { parts, start, below } = branch;
        let mut node = Box::new([0; 256]);
        let mut from = 0;
        for (number, link) in (0u32..).zip(&mut *node) {
            let first = start + (number << below);
            let last = first + ((1u64 << below) - 1) as u32;
            // The part that contains `first`, and those that start later in the branch.
            while parts.get(from + 1).is_some_and(|(bound, _)| *bound <= first) {
                from += 1;
            }
            let count = match parts.get(from + 1) {
                Some((bound, _)) if *bound <= last => {
                    parts[from..].partition_point(|(bound, _)| *bound <= last)
                }
                // No other part begins in the branch.
                _ => 1.min(parts.len() - from),
            };
            *link = self.link(Branch { parts: &parts[from..from + count], start: first, below }, waiting);
        }
        // If lists are frequent, other branches become lists too, because the processor would mispredict which of the
        // two follows.
        let lists = node.iter().filter(|link| **link & KIND == TO_LIST).count();
        if lists > MAX_MIXED {
            let mut constant: BTreeMap<u32, Link> = BTreeMap::new();
            for link in node.iter_mut().filter(|link| **link & KIND == CLASS) {
                let class = *link;
                *link = *constant.entry(class).or_insert_with(|| self.list(&[(start, class)]));
            }
        }
        node
    }

    /// The link for a branch of a node, whose first part may start before it.
    fn link<'a>(&mut self, branch: Branch<'a>, waiting: &mut Vec<(usize, Branch<'a>)>) -> Link {
        match branch.parts {
            [] => CLASS,
            [(_, class)] => *class,
            parts if parts.len() - 1 <= MAX_LIST || branch.below == 0 => self.list(parts),
            _ => {
                let number = self.nodes.len();
                self.nodes.push([0; 256]);
                waiting.push((number, Branch { below: branch.below - 8, ..branch }));
                TO_NODE | number as u32
            }
        }
    }

    /// A new list of these parts.
    fn list(&mut self, parts: &[(u32, u32)]) -> Link {
        let mut list = List { bounds: [u32::MAX; MAX_LIST + 1], classes: [0; MAX_LIST + 1] };
        for (class, part) in list.classes.iter_mut().zip((0..).map(|index: usize| index.min(parts.len() - 1)))
        {
            *class = parts[part].1;
        }
        for (bound, (value, _)) in list.bounds.iter_mut().zip(&parts[1..]) {
            *bound = *value;
        }
        self.lists.push(list);
        TO_LIST | (self.lists.len() - 1) as u32
    }

    /// The class of `value`.
    #[inline]
    fn class(&self, value: u32) -> u32 {
        let mut below = self.below;
        let mut link = self.root[(value >> below) as usize & 255];
        while link & KIND == TO_NODE {
            below = below.saturating_sub(8);
            link = self
                .nodes
                .get((link & !KIND) as usize)
                .map_or(CLASS, |node| node[(value >> below) as usize & 255]);
        }
        if link & KIND == CLASS { link } else { self.in_list(link & !KIND, value) }
    }

    #[inline]
    fn in_list(&self, list: u32, value: u32) -> u32 {
        self.lists.get(list as usize).map_or(0, |list| list.class(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::complete;

    fn check(starts: &[u32], width: u8, probes: impl Iterator<Item = u32>) {
        let parts: Vec<(u32, u32)> = starts.iter().copied().zip(1..).collect();
        let map = complete(Map::new(&parts, width, &Pace::new()));
        for value in probes {
            let expected = starts.partition_point(|start| *start <= value) as u32;
            assert_eq!(map.class(value), expected, "{value:x} among {starts:x?}");
        }
    }

    #[test]
    fn small_fields_are_mapped_everywhere() {
        let starts: Vec<u32> = (0..65536).step_by(37).collect();
        check(&starts, 2, 0..65536);
        check(&[0, 80, 81, 1024, 65535], 2, 0..65536);
        check(&[0, 1, 6, 7, 17, 18, 255], 1, 0..256);
        check(&[0], 4, [0, 1, u32::MAX].into_iter());
    }

    #[test]
    fn two_classes_are_distinguished_by_bits() {
        let parts =
            |starts: &[u32]| starts.iter().copied().zip([3, 7].into_iter().cycle()).collect::<Vec<_>>();
        let cases: [(&[u32], Option<u32>); 5] = [
            (&[0, 1], Some(0xffff)),
            (&[0, 80, 81], Some(0xffff)),
            (&[0, 1, 0x2000, 0x2001, 0x4000, 0x4001, 0x6000, 0x6001], Some(0x9fff)),
            (&[0, 0x4000, 0x8000, 0xc000], Some(0x4000)),
            (&[0, 3], None),
        ];
        for (starts, expected) in cases {
            let parts = parts(starts);
            let map = complete(Map::new(&parts, 2, &Pace::new()));
            let mask = match map {
                Map::Bits { mask, .. } => Some(mask),
                _ => None,
            };
            assert_eq!(mask, expected, "{starts:x?}");
            for value in 0..65536 {
                let part = starts.partition_point(|start| *start <= value) - 1;
                assert_eq!(map.class(value), parts[part].1, "{value:x} in {starts:x?}");
            }
        }
    }

    #[test]
    fn addresses_are_mapped_at_their_bounds() {
        let mut starts: Vec<u32> = (0..3000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        starts.extend((0..2000).map(|i| 0x0a00_0000 + 3 * i));
        starts.extend([0, 1, u32::MAX - 1, u32::MAX]);
        starts.sort_unstable();
        starts.dedup();
        let probes: Vec<u32> =
            starts.iter().flat_map(|s| [s.wrapping_sub(1), *s, s.wrapping_add(1)]).collect();
        check(&starts, 4, probes.into_iter());
    }
}
