//! A small rule set as a decision diagram: a short sequence of word comparisons that ends at an output.
//!
//! A node represents the terms that may still match and the outcome if none does. It tests one field and branches on
//! its value; equal nodes are shared. A node becomes a run of comparisons, laid out so that a packet for which none of
//! them holds falls through. The processor predicts each comparison separately and waits for no lookup.
//!
//! The steps read whole words only. Packets that end before a compared word are decided by lookup. Batches follow the
//! steps in `columns`.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::expression::{DROP, Rule};
use crate::headers::Base;
use crate::index::Index;
use crate::map::common_bits;
use crate::slots::Slots;
use crate::words::Words;

/// Maximum nodes of a diagram. Rules that overlap in many fields would need the product of their numbers.
const MAX_NODES: usize = 512;
/// Maximum comparisons on any path through a diagram. Beyond this, looking up all fields is as fast.
const MAX_PATH: usize = 16;
/// Maximum comparisons in a row on one field. A longer run is split by a comparison with its middle.
const MAX_RUN: usize = 6;

/// The target of a comparison that holds: a step, or with `END` an output.
type Target = u32;
pub(crate) const END: Target = 1 << 31;

/// A comparison: the masked bits of a word lie in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) base: Base,
    pub(crate) offset: u16,
    pub(crate) mask: u32,
    pub(crate) low: u32,
    /// Width of the range: the masked bits may exceed `low` by at most this, wrapping around.
    pub(crate) span: u32,
}

impl Comparison {
    /// The comparison that always holds.
    const ALWAYS: Self = Self { base: Base::Network, offset: 0, mask: 0, low: 0, span: 0 };

    /// Whether it holds for every word.
    #[inline]
    pub(crate) fn is_always(&self) -> bool {
        self.mask == 0
    }

    /// The compared word.
    fn word(&self) -> (Base, u16) {
        (self.base, self.offset)
    }

    /// The comparison that holds when both equalities hold; `None` unless both test the same word.
    fn and(&self, other: &Self) -> Option<Self> {
        let joined = Self { mask: self.mask | other.mask, low: self.low | other.low, ..*self };
        let alike = self.base == other.base && self.offset == other.offset;
        (alike && self.span == 0 && other.span == 0 && self.mask & other.mask == 0).then_some(joined)
    }
}

/// A comparison and its target when it holds. Otherwise the next step follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) comparison: Comparison,
    /// The number of the compared word, which `number_words` sets.
    pub(crate) column: u16,
    pub(crate) target: Target,
}

/// Where a packet is in a diagram: the number of its next step, or with `ARRIVED` that of an output in `ends`.
pub(crate) type Place = u8;
pub(crate) const ARRIVED: Place = 1 << 7;
/// Maximum steps of a diagram that packets of a batch follow on different paths.
pub(crate) const MAX_STEPS: usize = ARRIVED as usize;

/// A compiled diagram.
pub(crate) struct Diagram {
    pub(crate) steps: Vec<Step>,
    /// For each step, the places of packets for which its comparison holds, and of the others; none if there are more than
    /// `MAX_STEPS`.
    pub(crate) ways: Vec<(Place, Place)>,
    /// The outputs, by number.
    pub(crate) ends: Vec<u32>,
}

impl Diagram {
    /// Compiles the terms in `slots`; `fallback` is the rule for packets that match no term.
    ///
    /// Returns `None` if the rules need too large a diagram.
    pub(crate) fn new(indexes: &[Index], slots: &Slots, rules: &[Rule], fallback: u32) -> Option<Self> {
        if slots.len() == 0 || slots.granule() != 0 {
            return None;
        }
        let output = |rule: u32| match rules.get(rule as usize).and_then(|rule| rule.output) {
            Some(output) if output < DROP & !END => Link::Output(output),
            _ => Link::Drop,
        };
        let needs = slots.iter().flatten().map(|(_, term)| {
            let used = indexes.iter().enumerate().filter(|(_, index)| term.set(index.number).is_some());
            used.fold(0, |needs, (position, _)| needs | 1 << position)
        });
        let mut builder = Builder {
            indexes,
            needs: needs.collect(),
            outcomes: slots.iter().flatten().map(|(rule, _)| output(rule)).collect(),
            nodes: Vec::new(),
            known: BTreeMap::new(),
        };
        let first = builder.link(u64::MAX >> (64 - slots.len()), 0, output(fallback))?;
        builder.join();
        builder.lay_out(first)
    }

    /// The compared words.
    pub(crate) fn words(&self) -> impl Iterator<Item = (Base, u16)> {
        self.steps.iter().filter(|step| !step.comparison.is_always()).map(|step| step.comparison.word())
    }

    /// Sets the numbers of the compared words, and those of places.
    pub(crate) fn number(&mut self, words: &Words) {
        for step in &mut self.steps {
            step.column = words.number(step.comparison.word());
        }
        if self.steps.len() <= MAX_STEPS {
            for step in 0..self.steps.len() {
                let (target, after) = (self.steps[step].target, self.after(step));
                let ways = (self.place(target), self.place(after));
                self.ways.push(ways);
            }
        }
    }

    /// The place that a target stands for.
    fn place(&mut self, target: Target) -> Place {
        if target < END {
            return target as Place;
        }
        let output = if target == DROP { DROP } else { target & !END };
        let number = self.ends.iter().position(|end| *end == output).unwrap_or_else(|| {
            self.ends.push(output);
            self.ends.len() - 1
        });
        ARRIVED | number as Place
    }

    /// Where packets go for which the comparison of a step does not hold.
    fn after(&self, step: usize) -> Target {
        match self.steps.get(step + 1) {
            Some(next) if next.comparison.is_always() => next.target,
            _ => step as Target + 1,
        }
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.steps[..]) + size_of_val(&self.ways[..]) + size_of_val(&self.ends[..])
    }
}

/// The successor of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    Output(u32),
    Drop,
    /// The node with this number, which is higher than those of its successors.
    Node(usize),
}

/// Comparisons; the first that holds decides the successor.
struct Node {
    ways: Vec<(Comparison, Link)>,
    otherwise: Link,
}

struct Builder<'a> {
    indexes: &'a [Index],
    /// For each slot, a bitmap of the indexes that its term tests.
    needs: Vec<u32>,
    /// For each slot, the outcome for packets that match its term.
    outcomes: Vec<Link>,
    nodes: Vec<Node>,
    /// The link for each state: slots that may match, outcome if none does, untested fields.
    known: BTreeMap<(u64, Link, u32), Link>,
}

impl Builder<'_> {
    /// The link for packets that may match the terms in the slots `open` after the fields `seen` were tested. `outcome`
    /// applies if they match none. Returns `None` if the diagram gets too large.
    fn link(&mut self, mut open: u64, seen: u32, mut outcome: Link) -> Option<Link> {
        if let Some(certain) = ones(open).find(|slot| self.needs[*slot] & !seen == 0) {
            outcome = self.outcomes[certain];
            open &= (1 << certain) - 1;
        }
        // A last term with the same outcome as its successor changes nothing.
        while let Some(last) = open.checked_ilog2().filter(|last| self.outcomes[*last as usize] == outcome) {
            open &= !(1 << last);
        }
        if open == 0 {
            return Some(outcome);
        }
        let unseen = ones(open).fold(0, |fields, slot| fields | self.needs[slot]) & !seen;
        if let Some(link) = self.known.get(&(open, outcome, unseen)) {
            return Some(*link);
        }
        if self.known.len() >= MAX_NODES {
            return None;
        }
        let indexes = self.indexes;
        let position = self.most_useful(open, unseen)?;
        let index = indexes.get(position)?;
        let mut links: BTreeMap<u32, Link> = BTreeMap::new();
        let mut parts: Vec<(u32, Link)> = Vec::new();
        for (start, class) in &index.parts {
            let link = match links.get(class) {
                Some(link) => *link,
                None => self.link(open & index.rows.word(*class, 0), seen | 1 << position, outcome)?,
            };
            links.insert(*class, link);
            if parts.last().is_none_or(|(_, previous)| *previous != link) {
                parts.push((*start, link));
            }
        }
        let mut link = self.node(index, &parts, (index.field.values() - 1) as u32)?;
        if let [(_, same)] = parts[..] {
            // The field's value is irrelevant, but its presence may matter.
            for class in index.ends() {
                if self.link(open & index.rows.word(class, 0), seen | 1 << position, outcome)? != same {
                    let reading = Comparison { span: u32::MAX, ..index.whole() };
                    link = self.add(Node { ways: vec![(reading, same)], otherwise: same })?;
                    break;
                }
            }
        }
        self.known.insert((open, outcome, unseen), link);
        Some(link)
    }

    /// The field of `unseen` that separates the most terms in `open` per comparison; among equals, the first in the
    /// packet.
    fn most_useful(&self, open: u64, unseen: u32) -> Option<usize> {
        let candidates = (0..self.indexes.len()).filter(|position| unseen >> position & 1 != 0);
        candidates.min_by_key(|position| {
            let index = &self.indexes[*position];
            let uses = ones(open).filter(|slot| self.needs[*slot] >> position & 1 != 0).count();
            let row = |part: &(u32, u32)| index.rows.word(part.1, 0) & open;
            let changes = index.parts.windows(2).filter(|pair| row(&pair[0]) != row(&pair[1])).count();
            (1000 * (1 + changes) / uses.max(1), index.field)
        })
    }

    /// The link for the values of a field. `parts` are sorted by first value and end at `last`.
    fn node(&mut self, index: &Index, parts: &[(u32, Link)], last: u32) -> Option<Link> {
        let (_, link) = *parts.first()?;
        let mut spans: BTreeMap<Link, Vec<(u32, u32)>> = BTreeMap::new();
        let ends = parts.iter().skip(1).map(|(start, _)| start - 1).chain([last]);
        for ((start, link), end) in parts.iter().zip(ends) {
            spans.entry(*link).or_default().push((*start, end));
        }
        if spans.len() == 1 {
            return Some(link);
        }
        let size = |spans: &[(u32, u32)]| spans.iter().map(|(first, last)| u64::from(last - first) + 1).sum();
        let mut otherwise = *spans.iter().max_by_key(|(_, spans)| -> u64 { size(spans) })?.0;
        let mut runs: Vec<(Link, Vec<Comparison>)> =
            spans.iter().map(|(link, spans)| (*link, comparisons(index, spans))).collect();
        if let [(one, first), (other, second)] = &runs[..]
            && first.len() != second.len()
        {
            otherwise = if first.len() < second.len() { *other } else { *one };
        }
        runs.retain(|(link, _)| *link != otherwise);
        let ways: Vec<(Comparison, Link)> =
            runs.into_iter().flat_map(|(link, run)| run.into_iter().map(move |way| (way, link))).collect();
        if ways.len() > MAX_RUN {
            let (low, high) = parts.split_at(parts.len() / 2);
            let middle = high.first()?.0;
            let upper = self.node(index, high, last)?;
            let lower = self.node(index, low, middle - 1)?;
            return self.add(Node { ways: vec![(index.between(middle, last), upper)], otherwise: lower });
        }
        self.add(Node { ways, otherwise })
    }

    fn add(&mut self, node: Node) -> Option<Link> {
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        self.nodes.push(node);
        Some(Link::Node(self.nodes.len() - 1))
    }

    /// Merges two comparisons of the same word that must both hold.
    fn join(&mut self) {
        for number in 0..self.nodes.len() {
            let [(comparison, Link::Node(next))] = self.nodes[number].ways[..] else { continue };
            let next = &self.nodes[next];
            if let [(second, link)] = next.ways[..]
                && next.otherwise == self.nodes[number].otherwise
                && let Some(both) = comparison.and(&second)
            {
                self.nodes[number].ways[0] = (both, link);
            }
        }
    }

    /// Lays out the nodes from `first` on as steps, each before those that it leads to. Returns `None` if a path is too long.
    fn lay_out(&self, first: Link) -> Option<Diagram> {
        if self.longest(first) > MAX_PATH {
            return None;
        }
        let mut order = Vec::new();
        self.put_behind(first, &mut vec![false; self.nodes.len()], &mut order);
        let mut starts: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut steps: Vec<(Comparison, Link)> = Vec::new();
        if !matches!(first, Link::Node(_)) {
            steps.push((Comparison::ALWAYS, first));
        }
        while let Some(number) = order.pop() {
            starts[number] = Some(steps.len());
            let node = &self.nodes[number];
            steps.extend_from_slice(&node.ways);
            if !matches!(node.otherwise, Link::Node(next) if order.last() == Some(&next)) {
                steps.push((Comparison::ALWAYS, node.otherwise));
            }
        }
        let resolve = |(comparison, link): (Comparison, Link)| {
            let target = match link {
                Link::Output(output) => END | output,
                Link::Drop => DROP,
                Link::Node(number) => u32::try_from((*starts.get(number)?)?).ok()?,
            };
            Some(Step { comparison, column: 0, target })
        };
        let steps: Option<_> = steps.into_iter().map(resolve).collect();
        Some(Diagram { steps: steps?, ways: Vec::new(), ends: Vec::new() })
    }

    /// Appends the nodes of a link to `order`, each behind all that it leads to. Its fall-through successor is directly before
    /// it, unless something else leads there. Recursion is as deep as the longest path.
    fn put_behind(&self, link: Link, seen: &mut [bool], order: &mut Vec<usize>) {
        if let Link::Node(number) = link
            && !core::mem::replace(&mut seen[number], true)
        {
            let node = &self.nodes[number];
            for link in node.ways.iter().map(|(_, link)| *link).chain([node.otherwise]) {
                self.put_behind(link, seen, order);
            }
            order.push(number);
        }
    }

    /// The number of comparisons on the longest path from `first`.
    fn longest(&self, first: Link) -> usize {
        let mut lengths: Vec<usize> = Vec::with_capacity(self.nodes.len());
        let length = |link: Link, lengths: &[usize]| match link {
            Link::Node(number) => lengths.get(number).copied().unwrap_or(MAX_PATH),
            _ => 0,
        };
        for node in &self.nodes {
            let ways = node.ways.iter().zip(1..).map(|((_, link), before)| before + length(*link, &lengths));
            let all = ways.chain([node.ways.len() + 1 + length(node.otherwise, &lengths)]);
            lengths.push(all.max().unwrap_or(0));
        }
        length(first, &lengths)
    }
}

/// Comparisons of which one holds exactly for the values in `spans`.
fn comparisons(index: &Index, spans: &[(u32, u32)]) -> Vec<Comparison> {
    let last = (index.field.values() - 1) as u32;
    match common_bits(spans.iter().copied(), last) {
        Some((mask, value)) => vec![index.equal(mask, value)],
        None => spans.iter().map(|(first, last)| index.between(*first, *last)).collect(),
    }
}

impl Index {
    /// The comparison that holds when the field's masked bits equal `value`.
    fn equal(&self, mask: u32, value: u32) -> Comparison {
        Comparison { mask: mask << self.shift, low: value << self.shift, span: 0, ..self.whole() }
    }

    /// The comparison that holds when the field lies in `first..=last`.
    fn between(&self, first: u32, last: u32) -> Comparison {
        Comparison { low: first << self.shift, span: (last - first) << self.shift, ..self.whole() }
    }

    /// The comparison that holds when all bits of the field are zero.
    fn whole(&self) -> Comparison {
        Comparison {
            base: self.field.base,
            offset: self.field.offset / 4 * 4,
            mask: self.mask << self.shift,
            low: 0,
            span: 0,
        }
    }
}

/// The numbers of the set bits.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit as usize)
    })
}
