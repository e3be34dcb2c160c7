//! Rule sets compiled: the first rule that a packet meets, at about the same cost for ten rules and for thousands.
//!
//! Every rule becomes a few terms, each a conjunction of sets of field values. For each field, the values that all
//! terms treat alike form a class, and each class has a bit row that says which terms accept it. A packet's fields
//! are looked up, once each, and the rows of its classes intersected; what is left are the terms that it meets.
//! The terms are ordered so that those that look at the same fields stand together: rows are then mostly empty, and
//! a bitmap of the words that are not lets the intersection skip the rest.
//!
//! The scheme is that of bit vectors (Lakshman, Stiliadis, SIGCOMM 1998) with aggregation (Baboescu, Varghese,
//! SIGCOMM 2001).

use alloc::vec;
use alloc::vec::Vec;

use packet::BATCH;

use crate::columns::{Columns, DROP, Decision};
use crate::diagram::Diagram;
use crate::expression::{Expression, Rule, first_match};
use crate::headers::Headers;
use crate::index::Index;
use crate::slots::{NONE, Slots};
use crate::spans::{Field, Spans};
use crate::terms::{Breaker, Term};

/// Most fields that a program looks up for each packet, the most used first; tests of others are checked against
/// the expressions, so that a rule set can't make every packet pay for hundreds of look-ups.
const MAX_INDEXES: usize = 16;
/// Most terms in all; rules beyond are checked against their expressions (a hostile rule set of many wide rules).
const MAX_TERMS: usize = 1 << 18;

/// What the offsets of a rule set mean, which decides how fields are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Headers of IP packets: addresses are fields of their own.
    Ip,
    /// Raw bytes.
    Bytes,
}

/// How a program finds its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// No look at the packet: the same rule for all, or none.
    Constant,
    /// Comparisons of words, one after the other, by a decision diagram.
    Diagram,
    /// One 64-bit row for each field.
    Narrow,
    /// Rows of several words, under bitmaps.
    Wide,
}

/// Figures about a program, for reports and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How it finds its rule.
    pub strategy: Strategy,
    /// Fields looked up for each packet.
    pub fields: usize,
    /// Classes of these fields, in all.
    pub classes: usize,
    /// Terms of the rules.
    pub terms: usize,
    /// Terms that are checked against the expression of their rule.
    pub checked: usize,
    /// Bytes of memory of the lookup structures.
    pub bytes: usize,
}

/// Why a rule never gets a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// Its condition contradicts itself.
    Contradiction,
    /// This earlier rule, perhaps with others, takes all of its packets first.
    Shadowed(usize),
}

/// A compiled rule set.
pub struct Program {
    rules: Vec<Rule>,
    /// The looked-up fields, the most selective first.
    pub(crate) indexes: Vec<Index>,
    slots: Slots,
    /// The rule of each slot.
    pub(crate) slot_rules: Vec<u32>,
    /// Slots whose candidates must be checked, as a bitmap.
    pub(crate) checked: Vec<u64>,
    /// Lowest rule among the slots of each row word.
    first_rules: Vec<u32>,
    /// The first rule that takes every packet.
    pub(crate) fallback: u32,
    /// The rules that have terms, up to the fallback; others are contradictions or out of reach.
    live: Vec<bool>,
    /// The way to the outputs for a small set.
    pub(crate) diagram: Option<Diagram>,
}

impl Program {
    /// Compiles `rules`.
    #[must_use]
    pub fn new(rules: Vec<Rule>, layout: Layout) -> Self {
        let Broken { mut terms, fields, fallback, live } = break_up(&rules, layout);
        let mut wanted = most_used(&terms, fields.len());
        loop {
            let slots = Slots::new(terms, &wanted);
            let mut indexes = Vec::with_capacity(wanted.len());
            let failed = wanted.iter().position(|number| {
                let field = fields.get(usize::from(*number));
                let index = field.and_then(|field| Index::new(*field, *number, &slots));
                let failed = index.is_none();
                indexes.extend(index);
                failed
            });
            match failed {
                Some(index) => {
                    wanted.remove(index);
                    terms = slots.into_terms();
                }
                None => {
                    indexes.sort_by_key(Index::typical);
                    return Self::assemble(rules, indexes, slots, fallback, live);
                }
            }
        }
    }

    fn assemble(rules: Vec<Rule>, indexes: Vec<Index>, slots: Slots, fallback: u32, live: Vec<bool>) -> Self {
        let slot_rules: Vec<u32> = slots.iter().map(|entry| entry.map_or(NONE, |(rule, _)| rule)).collect();
        let mut checked = vec![0u64; slots.len().div_ceil(64)];
        for (slot, (_, term)) in slots.iter().enumerate().filter_map(|(slot, entry)| Some((slot, entry?))) {
            let indexed =
                term.sets.iter().all(|(number, _)| indexes.iter().any(|index| index.number == *number));
            if !term.exact || !indexed {
                checked[slot / 64] |= 1 << (slot % 64);
            }
        }
        let first_rules =
            slot_rules.chunks(64).map(|rules| rules.iter().copied().min().unwrap_or(NONE)).collect();
        let exact = checked.iter().all(|word| *word == 0);
        let diagram = exact.then(|| Diagram::new(&indexes, &slots, &rules, fallback)).flatten();
        Self { rules, indexes, slots, slot_rules, checked, first_rules, fallback, live, diagram }
    }

    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides `packets`, at most a batch, whose headers are what `headers` finds.
    #[inline(always)]
    pub fn decide<'a, T>(
        &self,
        columns: &'a mut Columns,
        packets: &[T],
        headers: impl Fn(&T) -> Headers<'_>,
    ) -> Decision<'a> {
        if let Some(diagram) = &self.diagram {
            return columns.decide(diagram, packets, headers, |headers| self.look_up(headers, None));
        }
        // The first field tells the most: by it alone, most packets meet no term.
        let (first, others) = (self.indexes.first(), self.output_of(self.fallback));
        for (output, packet) in columns.outputs.iter_mut().zip(packets) {
            let headers = headers(packet);
            let class = first.and_then(|index| index.class(&headers));
            let is_other = first.zip(class).is_some_and(|(index, class)| index.top(class) == 0);
            *output = if is_other { others } else { self.look_up(headers, class) };
        }
        Decision::Each(&columns.outputs[..packets.len().min(BATCH)])
    }

    /// The output for one packet, by looking up its fields; `class` is that of the first, where it is known.
    #[inline(never)]
    fn look_up(&self, headers: Headers<'_>, class: Option<u32>) -> u32 {
        self.output_of(self.find_first(&headers, class).map_or(NONE, |rule| rule as u32))
    }

    /// The output that a rule sends packets to.
    #[inline]
    pub(crate) fn output_of(&self, rule: u32) -> u32 {
        self.rules.get(rule as usize).and_then(|rule| rule.output).unwrap_or(DROP)
    }

    /// Index of the first rule whose condition the packet meets.
    #[must_use]
    #[inline]
    pub fn first_match(&self, headers: &Headers<'_>) -> Option<usize> {
        self.find_first(headers, None)
    }

    /// As `first_match`; `known` is the class of the first field, if it was looked up.
    #[inline]
    fn find_first(&self, headers: &Headers<'_>, mut known: Option<u32>) -> Option<usize> {
        let mut classes = [0; MAX_INDEXES];
        let mut top = u64::MAX;
        for (class, index) in classes.iter_mut().zip(&self.indexes) {
            let Some(found) = known.take().or_else(|| index.class(headers)) else {
                return first_match(&self.rules, headers);
            };
            *class = found;
            top &= index.top(found);
            if top == 0 {
                break;
            }
        }
        let best = match self.slots.granule() {
            0 => self.find_in_bits(0, top, headers, self.fallback),
            granule => self.find(granule, top, &classes, headers),
        };
        (best != NONE).then_some(best as usize)
    }

    /// The lowest rule of a term that accepts the classes, in the granules of `top`.
    fn find(&self, granule: u32, mut top: u64, classes: &[u32; MAX_INDEXES], headers: &Headers<'_>) -> u32 {
        let mut best = self.fallback;
        while top != 0 {
            let first = (top.trailing_zeros() as usize) << granule;
            let mut mask = u64::MAX;
            let mut words = first / 64..(first >> 6) + 1;
            if granule < 6 {
                mask = ((1 << (1 << granule)) - 1) << (first % 64);
            } else {
                words.end = words.start + (1 << (granule - 6));
            }
            top &= top - 1;
            for word in words {
                if self.first_rules.get(word).is_some_and(|rule| *rule < best) {
                    best = self.find_in_word(word, mask, classes, headers, best);
                }
            }
        }
        best
    }

    /// The lowest rule of a term in one row word, under `mask`, that accepts the classes, or `best` if lower.
    #[inline]
    fn find_in_word(
        &self,
        word: usize,
        mask: u64,
        classes: &[u32; MAX_INDEXES],
        headers: &Headers<'_>,
        best: u32,
    ) -> u32 {
        let mut found = mask;
        for (class, field) in classes.iter().zip(&self.indexes) {
            found &= field.rows.word(*class, word);
            if found == 0 {
                return best;
            }
        }
        self.find_in_bits(word, found, headers, best)
    }

    /// The lowest rule among the slots `found` of row word `word`, or `best` if that is lower.
    #[inline]
    fn find_in_bits(&self, word: usize, mut found: u64, headers: &Headers<'_>, mut best: u32) -> u32 {
        let checked = self.checked.get(word).copied().unwrap_or(0);
        while found != 0 {
            let bit = found.trailing_zeros();
            found &= found - 1;
            let rule = self.slot_rules.get(64 * word + bit as usize).copied().unwrap_or(NONE);
            if rule < best && (checked >> bit & 1 == 0 || self.check(rule, headers)) {
                best = rule;
            }
        }
        best
    }

    #[inline]
    fn check(&self, rule: u32, headers: &Headers<'_>) -> bool {
        self.rules.get(rule as usize).is_some_and(|rule| rule.condition.matches(headers))
    }

    /// Figures about the program.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let strategy = match (self.slots.len(), self.slots.granule()) {
            (0, _) => Strategy::Constant,
            _ if self.diagram.is_some() => Strategy::Diagram,
            (_, 0) => Strategy::Narrow,
            _ => Strategy::Wide,
        };
        Summary {
            strategy,
            fields: self.indexes.len(),
            classes: self.indexes.iter().map(|index| index.rows.len()).sum(),
            terms: self.slots.iter().flatten().count(),
            checked: self.checked.iter().map(|word| word.count_ones() as usize).sum(),
            bytes: self.indexes.iter().map(Index::bytes).sum::<usize>()
                + self.diagram.as_ref().map_or(0, Diagram::bytes),
        }
    }

    /// Gives back the memory that only `unreachable` needs, which knows of contradictions only from now on, as `summary`
    /// of no terms.
    pub fn settle(&mut self) {
        self.slots.clear();
        self.rules.iter_mut().for_each(|rule| rule.condition.shrink());
    }

    /// The rules that can never get a packet, with why: exact where a rule contradicts itself or earlier single
    /// terms contain all of its own, silent where only the union of earlier rules does.
    #[must_use]
    pub fn unreachable(&self) -> Vec<(usize, Unreachable)> {
        let mut terms: Vec<(u32, &Term)> = self.slots.iter().flatten().collect();
        terms.sort_by_key(|(rule, _)| *rule);
        let mut covered: Vec<Option<Option<u32>>> = vec![None; self.rules.len()];
        for group in terms.chunk_by(|a, b| a.0 == b.0) {
            let covers = group.iter().map(|(rule, term)| self.cover(*rule, term));
            let last = covers.reduce(|a, b| Some(a?.max(b?))).flatten();
            covered[group[0].0 as usize] = Some(last);
        }
        let describe = |rule: usize| {
            if self.fallback != NONE && rule > self.fallback as usize {
                return Some(Unreachable::Shadowed(self.fallback as usize));
            }
            match (self.live.get(rule), covered[rule]) {
                (Some(false), _) => Some(Unreachable::Contradiction),
                (_, Some(Some(by))) => Some(Unreachable::Shadowed(by as usize)),
                _ => None,
            }
        };
        (0..self.rules.len()).filter_map(|rule| Some((rule, describe(rule)?))).collect()
    }

    /// The lowest rule before `rule` with an exact term that contains `term`.
    fn cover(&self, rule: u32, term: &Term) -> Option<u32> {
        let mut best = None;
        let rows: Vec<(&Index, u32)> = self
            .indexes
            .iter()
            .map(|index| {
                let sample = term.set(index.number).and_then(Spans::first).unwrap_or(0);
                (index, index.class_at(sample))
            })
            .collect();
        for word in 0..self.slot_rules.len().div_ceil(64) {
            if self.first_rules[word] >= rule {
                continue;
            }
            let bits = rows.iter().map(|(index, class)| index.rows.word(*class, word));
            let mut found = bits.fold(u64::MAX, |all, bits| all & bits);
            while found != 0 {
                let slot = 64 * word + found.trailing_zeros() as usize;
                found &= found - 1;
                let Some((other_rule, other)) = self.slots.get(slot) else { continue };
                if other_rule < rule && other.exact && other.contains(term) {
                    best = Some(best.map_or(other_rule, |best: u32| best.min(other_rule)));
                }
            }
        }
        best
    }
}

/// Rules broken into terms.
struct Broken {
    /// The terms, each with its rule.
    terms: Vec<(u32, Term)>,
    /// The fields that the terms number.
    fields: Vec<Field>,
    /// The first rule that takes every packet.
    fallback: u32,
    /// Which rules up to there have terms.
    live: Vec<bool>,
}

/// Breaks up the rules, up to the first that takes every packet.
fn break_up(rules: &[Rule], layout: Layout) -> Broken {
    let mut breaker = Breaker::new(layout == Layout::Ip);
    let mut terms = Vec::with_capacity(rules.len());
    let mut live = Vec::with_capacity(rules.len());
    let mut fallback = NONE;
    for (number, rule) in (0..NONE).zip(rules) {
        let found = if terms.len() < MAX_TERMS {
            breaker.terms(&rule.condition)
        } else if rule.condition == Expression::Constant(true) {
            Vec::from([Term { sets: Vec::new(), exact: true }])
        } else {
            Vec::from([Term { sets: Vec::new(), exact: false }])
        };
        live.push(!found.is_empty());
        if found.iter().any(|term| term.exact && term.sets.is_empty()) {
            fallback = number;
            break;
        }
        terms.extend(found.into_iter().map(|term| (number, term)));
    }
    Broken { terms, fields: breaker.into_fields(), fallback, live }
}

/// The fields to index: those that most terms look at.
fn most_used(terms: &[(u32, Term)], fields: usize) -> Vec<u16> {
    let mut uses: Vec<(usize, u16)> = vec![(0, 0); fields];
    for (number, used) in (0..).zip(&mut uses) {
        used.1 = number;
    }
    for (number, _) in terms.iter().flat_map(|(_, term)| &term.sets) {
        if let Some((count, _)) = uses.get_mut(usize::from(*number)) {
            *count += 1;
        }
    }
    uses.retain(|(count, _)| *count > 0);
    uses.sort_unstable_by(|a, b| b.cmp(a));
    uses.truncate(MAX_INDEXES);
    uses.into_iter().map(|(_, number)| number).collect()
}
