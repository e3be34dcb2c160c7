//! `SourceIPHashMapper`: assigns the same pattern to all flows of a source, by consistent hashing.

use alloc::collections::BTreeSet;
use core::cell::RefCell;

use element::AdditiveRandom;
use element::arguments::Raw;
use element::prelude::*;
use element::text;

use super::mapper::{Mapper, PatternOrder, targets};
use flow::Ip4Flow;

/// Assigns patterns to flows by a consistent hash of the source address.
///
/// A source keeps its pattern when others are added or removed. The first argument is `NODES SEED`: the number of
/// points of each pattern on the hash ring, and the seed of their random choice. Every other argument is a pattern with
/// two outputs, as for `RoundRobinIPMapper`, and a number that identifies the pattern; keep that number when the
/// configuration changes. If the pattern has no free port, no flow is created.
///
/// ## Differences
///
/// All patterns together have at most 1,048,576 points. SEED does not restart the random numbers of other elements.
/// ```click
/// m :: SourceIPHashMapper(40 1, - - 5.0.0.1 - 0 0 1, - - 5.0.0.2 - 0 0 2);
/// rw :: IPRewriter(m);
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 9.9.9.9, 53) -> rw;
/// rw -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// rw.table_size = 1
/// ```
#[derive(Args)]
#[element(
    name = "SourceIPHashMapper",
    group = "rewriting",
    ports = "0/0",
    phase = "early",
    see = "IPRewriter, TCPRewriter, IPRewriterPatterns, RoundRobinIPMapper"
)]
pub(crate) struct SourceIPHashMapperArgs {
    /// `NODES SEED`, then patterns, each with two outputs and a number.
    #[arg(rest)]
    patterns: Vec<Raw>,
}

pub(crate) struct SourceIPHashMapper {
    mapper: Rc<Mapper>,
    /// The numbers of the patterns, the points of each, and the seed. The ring is made of them at the start, so that a check
    /// does not take the time.
    ring: (Vec<u16>, usize, u32),
}

/// Maximum points on the ring, over all patterns. Bounds the memory that a configuration can claim.
const MAX_POINTS: usize = 1 << 20;

/// Points on a hash ring, as an implicit search tree: the children of point `i` are `2 i + 1` and `2 i + 2`.
struct Ring {
    tree: Vec<(u32, usize)>,
}

impl Ring {
    /// Creates a ring with `nodes` points for each number. A point holds the rank of its number.
    fn new(numbers: &[u16], nodes: usize, seed: u32) -> Ring {
        let mut random = AdditiveRandom::new(seed);
        let mut points = Vec::new();
        let mut rank = 0;
        let used: BTreeSet<u16> = sorting::collect(numbers.iter().copied());
        // Unused numbers consume random numbers too, so that the points of a number never change.
        for number in 0..=numbers.iter().copied().max().unwrap_or(0) {
            let is_used = used.contains(&number);
            for _ in 0..nodes {
                let point = random.draw();
                if is_used {
                    points.push((point, rank));
                }
            }
            rank += usize::from(is_used);
        }
        sorting::sort_by_key(&mut points, |(point, _)| *point);
        Ring { tree: as_tree(&points) }
    }

    /// The rank at the first point at or after `hash`; after the last point, the rank at the root.
    fn find(&self, hash: u32) -> Option<usize> {
        let mut at = 0;
        let mut found = self.tree.first();
        while let Some(node) = self.tree.get(at) {
            match hash.cmp(&node.0) {
                core::cmp::Ordering::Equal => return Some(node.1),
                core::cmp::Ordering::Greater => at = 2 * at + 2,
                core::cmp::Ordering::Less => {
                    found = Some(node);
                    at = 2 * at + 1;
                }
            }
        }
        found.map(|node| node.1)
    }
}

/// Lays out sorted points level by level, as an almost complete tree whose lowest level is filled from the left.
fn as_tree(sorted: &[(u32, usize)]) -> Vec<(u32, usize)> {
    let count = sorted.len();
    let full = (count + 1).next_power_of_two();
    // In a full tree every second point is on the lowest level; those from here on are missing.
    let lowest = count + 1 - full / 2;
    let missing_from = 2 * lowest + 1;
    let mut tree = Vec::with_capacity(count);
    let (mut first, mut step) = (full / 2, full);
    while first > 0 && tree.len() < count {
        let mut at = first;
        while at < full && tree.len() < count {
            let point = if at < missing_from { at } else { (at + missing_from - 1) / 2 };
            tree.extend(sorted.get(point - 1));
            at += step;
        }
        (step, first) = (first, first / 2);
    }
    tree
}

impl PatternOrder for Ring {
    fn next(&mut self, flow: Ip4Flow, attempt: usize) -> Option<usize> {
        // The address as a little-endian load from the packet.
        let address = flow.source.swap_bytes();
        let hash = address.wrapping_mul((address & 0xff) << 24 | 1) % (i32::MAX as u32);
        if attempt == 0 { self.find(hash) } else { None }
    }
}

impl Element for SourceIPHashMapper {
    type Args = SourceIPHashMapperArgs;

    fn new(args: SourceIPHashMapperArgs, setup: &mut Setup) -> Result<SourceIPHashMapper, SetupError> {
        let Some((Raw(ring), patterns)) = args.patterns.split_first() else {
            return Err(SetupError::new("no hash seed given"));
        };
        match patterns.len() {
            0 => return Err(SetupError::new("no patterns given")),
            1 => setup.warn("only one pattern given"),
            _ => {}
        }
        let words = text::words(ring);
        let [nodes, seed] = words.as_slice() else {
            return Err(SetupError::new("requires 2 config params: numnodes seed"));
        };
        let nodes = i32::from_argument(nodes, setup).ok().and_then(|nodes| usize::try_from(nodes).ok());
        let nodes = nodes
            .filter(|nodes| *nodes > 0)
            .ok_or_else(|| SetupError::new("number of nodes must be an integer"))?;
        let seed =
            i32::from_argument(seed, setup).map_err(|_| SetupError::new("hash seed must be an integer"))?;
        let mut texts = Vec::new();
        let mut numbers = Vec::new();
        let mut problems = SetupError::default();
        for Raw(argument) in patterns {
            let mut words = text::words(argument);
            let number = words.pop().and_then(|word| u16::from_argument(&word, setup).ok());
            match number.filter(|_| !words.is_empty()) {
                Some(number) => numbers.push(number),
                None => problems.merge(SetupError::new("bad server ID in pattern spec")),
            }
            texts.push(words.join(" "));
        }
        problems.into_result()?;
        let targets = targets(texts.iter().map(String::as_str), setup)?;
        let most = numbers.iter().copied().max().unwrap_or(0);
        if nodes.saturating_mul(usize::from(most) + 1) > MAX_POINTS {
            return Err(SetupError::new("too many nodes"));
        }
        let order = Ring { tree: Vec::new() };
        let declaration = format!("{} :: SourceIPHashMapper", setup.name());
        let mapper = Mapper { declaration, targets, order: RefCell::new(Box::new(order)) };
        Ok(SourceIPHashMapper { mapper: Rc::new(mapper), ring: (numbers, nodes, seed as u32) })
    }

    fn initialize(&mut self, _: &mut Context) -> Result<(), SetupError> {
        let (numbers, nodes, seed) = &self.ring;
        *self.mapper.order.borrow_mut() = Box::new(Ring::new(numbers, *nodes, *seed));
        Ok(())
    }

    fn export(&self) -> Option<Rc<dyn core::any::Any>> {
        Some(self.mapper.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_finds_the_next_point() {
        for count in 1..70u32 {
            let sorted: Vec<_> = (0..count).map(|at| (at * 10, at as usize)).collect();
            let ring = Ring { tree: as_tree(&sorted) };
            assert_eq!(ring.tree.len(), sorted.len());
            for hash in 0..=(count - 1) * 10 {
                assert_eq!(ring.find(hash), Some(hash.div_ceil(10) as usize), "{hash} of {count}");
            }
        }
    }
}
