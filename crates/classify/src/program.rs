//! Compiled rule sets. The time to find the first matching rule grows slowly with the number of rules.
//!
//! Each rule becomes a few terms; a term is a conjunction of sets of field values. For each field, the values that all
//! terms treat alike form a class, and each class has a row of bits, one per term that accepts it. A packet's fields
//! are looked up once each, and the intersection of the rows of its classes is the set of matching terms. Terms that
//! test the same fields are adjacent. Rows are then mostly empty, and a bitmap of their non-empty words lets the
//! intersection skip the rest.
//!
//! The algorithm is bit vectors (Lakshman, Stiliadis, SIGCOMM 1998) with aggregation (Baboescu, Varghese, SIGCOMM
//! 2001).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use packet::MAX_BATCH;

use crate::columns::{Columns, Decision};
use crate::diagram::Diagram;
use crate::expression::{DROP, Rule, first_match};
use crate::headers::Headers;
use crate::index::Index;
use crate::slots::{NONE, Slots};
use crate::tables::Tables;
use crate::words::Words;

/// Maximum fields that a program looks up per packet; the most used are chosen. Tests of other fields evaluate the
/// rule's expression. The limit keeps a rule set from adding hundreds of lookups to every packet.
pub(crate) const MAX_INDEXES: usize = 16;

/// The meaning of the rules' offsets, which decides how words are divided into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Headers of IP packets: each address is one field.
    Ip,
    /// Raw bytes.
    Bytes,
}

/// The method by which a program finds the matching rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The packet is not read: one rule, or none, matches all.
    Constant,
    /// A decision diagram of word comparisons. Batches whose packets take different paths are decided by tables, if these
    /// are within the budget.
    Diagram,
    /// The fast form: tables of classes.
    Tables,
    /// The compact form for few terms: one 64-bit row per field.
    Narrow,
    /// The compact form: rows of several words, with bitmaps of the non-empty words.
    Wide,
}

/// Statistics of a program, for reports and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The method by which it finds the matching rule.
    pub strategy: Strategy,
    /// Number of fields looked up per packet.
    pub fields: usize,
    /// Total number of classes of these fields.
    pub classes: usize,
    /// Number of terms of all rules.
    pub terms: usize,
    /// Number of terms that also evaluate their rule's expression.
    pub checked: usize,
    /// Memory of the lookup structures, in bytes.
    pub bytes: usize,
}

/// A compiled rule set.
pub struct Program {
    pub(crate) rules: Vec<Rule>,
    /// The looked-up fields, the most selective first.
    pub(crate) indexes: Vec<Index>,
    pub(crate) slots: Slots,
    /// The rule of each slot.
    pub(crate) slot_rules: Vec<u32>,
    /// Bitmap of the slots whose matches must be confirmed by the rule's expression.
    pub(crate) checked: Vec<u64>,
    /// Lowest rule among the 64 slots of each row word.
    pub(crate) first_rules: Vec<u32>,
    /// The first rule that matches every packet.
    pub(crate) fallback: u32,
    /// The rules that have terms, up to the fallback. The others are contradictory or unreachable.
    pub(crate) live: Vec<bool>,
    /// The decision diagram of a small rule set.
    pub(crate) diagram: Option<Diagram>,
    /// The tables of the fast form.
    pub(crate) tables: Option<Tables>,
    /// The words that diagram and tables read.
    pub(crate) words: Words,
}

impl Program {
    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides `packets`, at most one batch; `headers` returns the headers of a packet.
    #[inline(always)]
    pub fn decide<'a, T>(
        &self,
        columns: &'a mut Columns,
        packets: &[T],
        headers: impl Fn(&T) -> Headers<'_>,
    ) -> Decision<'a> {
        if self.diagram.is_some() || self.tables.is_some() {
            let program = (&self.words, self.diagram.as_ref(), self.tables.as_ref());
            return columns.decide(program, packets, headers, |headers| self.look_up(headers, None));
        }
        // The first field is the most selective: by it alone, most packets match no term.
        let (first, others) = (self.indexes.first(), self.output_of(self.fallback));
        for (output, packet) in columns.outputs.iter_mut().zip(packets) {
            let headers = headers(packet);
            let class = first.and_then(|index| index.class(&headers));
            let is_other = first.zip(class).is_some_and(|(index, class)| index.top(class) == 0);
            *output = if is_other { others } else { self.look_up(headers, class) };
        }
        Decision::Each(&columns.outputs[..packets.len().min(MAX_BATCH)])
    }

    /// The output for one packet, by field lookup. `class` is the class of the first field, if already known.
    #[inline(never)]
    fn look_up(&self, headers: Headers<'_>, class: Option<u32>) -> u32 {
        self.output_of(self.find_first(&headers, class).map_or(NONE, |rule| rule as u32))
    }

    /// The output of a rule.
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

    /// Like `first_match`; `known` is the class of the first field, if already looked up.
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

    /// The lowest rule with a term that accepts the classes, among the granules in `top`.
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

    /// The lowest rule with a term in one row word, under `mask`, that accepts the classes; `best` if that is lower.
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

    /// The lowest rule among the slots `found` of row word `word`; `best` if that is lower.
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

    /// Statistics of the program.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let strategy = self.strategy();
        Summary {
            strategy,
            fields: self.indexes.len(),
            classes: self.indexes.iter().map(|index| index.rows.len()).sum(),
            terms: self.slots.iter().flatten().count(),
            checked: self.checked.iter().map(|word| word.count_ones() as usize).sum(),
            bytes: self.bytes(),
        }
    }

    fn strategy(&self) -> Strategy {
        match (self.slots.len(), self.slots.granule()) {
            (0, _) => Strategy::Constant,
            _ if self.diagram.is_some() => Strategy::Diagram,
            _ if self.tables.is_some() => Strategy::Tables,
            (_, 0) => Strategy::Narrow,
            _ => Strategy::Wide,
        }
    }

    /// Bytes of the lookup structures.
    fn bytes(&self) -> usize {
        self.indexes.iter().map(Index::bytes).sum::<usize>()
            + self.diagram.as_ref().map_or(0, Diagram::bytes)
            + self.tables.as_ref().map_or(0, Tables::bytes)
    }

    /// The form in which the program runs, and the memory of its lookup structures, in words.
    #[must_use]
    pub fn form(&self) -> String {
        let form = match self.strategy() {
            Strategy::Constant => return "one output: packets are not read".into(),
            Strategy::Diagram if self.tables.is_none() => "fast form: comparisons",
            Strategy::Diagram => "fast form: comparisons and tables",
            Strategy::Tables => "fast form: tables",
            Strategy::Narrow | Strategy::Wide => "compact form: bit rows",
        };
        format!("{form}, {} bytes", self.bytes())
    }
}
