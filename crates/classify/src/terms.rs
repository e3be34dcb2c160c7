//! Breaks rules into terms. A term is a conjunction of field sets; a rule matches when one of its terms does.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::expression::{Expression, Relation, Test};
use crate::headers::Base;
use crate::pace::{FREED, Pace};
use crate::spans::{Field, Spans, passing};

/// Maximum terms of one rule, because a short rule can expand to exponentially many. A condition that needs more is
/// approximated by a superset, whose matches are confirmed by the expression.
const MAX_TERMS: usize = 256;

/// Maximum distinct fields. Tests of further fields evaluate the expressions.
const MAX_FIELDS: u16 = 4096;

/// A set of packets: those whose listed fields all lie in their spans.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    /// Sorted by field. No set is empty, and none contains all coordinates.
    pub(crate) sets: Vec<(u16, Spans)>,
    /// Whether the term is exact. Otherwise it is a superset, and its matches must be confirmed by the expression.
    pub(crate) exact: bool,
}

impl Term {
    fn everything(exact: bool) -> Self {
        Self { sets: Vec::new(), exact }
    }

    /// The set for `field`; `None` if the term does not test it.
    pub(crate) fn set(&self, field: u16) -> Option<&Spans> {
        let index = self.sets.binary_search_by_key(&field, |(other, _)| *other).ok()?;
        Some(&self.sets[index].1)
    }

    /// Whether the term contains every packet of `other`.
    pub(crate) fn contains(&self, other: &Term) -> bool {
        self.sets.iter().all(|(field, spans)| other.set(*field).is_some_and(|inner| spans.contains(inner)))
    }

    /// The intersection of two terms; `None` if it is empty.
    fn intersect(&self, other: &Term) -> Option<Term> {
        let mut sets = Vec::with_capacity(self.sets.len() + other.sets.len());
        let (mut a, mut b) = (self.sets.iter().peekable(), other.sets.iter().peekable());
        loop {
            let set = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some((x, _)), Some((y, _))) if x == y => {
                    let (Some((field, left)), Some((_, right))) = (a.next(), b.next()) else { break };
                    let both = left.intersect(right);
                    if both.is_empty() {
                        return None;
                    }
                    (*field, both)
                }
                (Some((x, _)), Some((y, _))) if x < y => a.next().cloned()?,
                (Some(_), None) => a.next().cloned()?,
                _ => b.next().cloned()?,
            };
            sets.push(set);
        }
        Some(Term { sets, exact: self.exact && other.exact })
    }
}

/// Breaks conditions into terms and numbers their fields.
pub(crate) struct Lowering {
    /// Whether each address of the IP header is one 4-byte field.
    addresses: bool,
    fields: Vec<Field>,
    numbers: BTreeMap<Field, u16>,
    /// The sets of tests seen before, since rules repeat tests.
    known: BTreeMap<(Test, Field), Option<Spans>>,
}

impl Lowering {
    /// A lowering for rules about IP headers (`addresses`) or about raw bytes.
    pub(crate) fn new(addresses: bool) -> Self {
        Self { addresses, fields: Vec::new(), numbers: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// The fields, by number.
    pub(crate) async fn into_fields(self, pace: &Pace) -> Vec<Field> {
        for _ in self.known {
            pace.spend(FREED).await;
        }
        self.fields
    }

    /// The terms of `condition`; empty if no packet can meet it.
    pub(crate) fn terms(&mut self, condition: &Expression) -> Vec<Term> {
        self.lower(condition, true)
    }

    /// The terms of `expression`, or of its negation if `wanted` is false.
    fn lower(&mut self, expression: &Expression, wanted: bool) -> Vec<Term> {
        match expression {
            Expression::Constant(value) if *value == wanted => Vec::from([Term::everything(true)]),
            Expression::Constant(_) => Vec::new(),
            Expression::Test(test) => self.lower_test(test, wanted),
            Expression::Not(inner) => self.lower(inner, !wanted),
            Expression::All(parts) if wanted => self.lower_all(parts, wanted),
            Expression::All(parts) => self.lower_any(parts, wanted),
            Expression::Any(parts) if wanted => self.lower_any(parts, wanted),
            Expression::Any(parts) => self.lower_all(parts, wanted),
            Expression::Choose(parts) => {
                let [condition, yes, no] = &**parts;
                let with = both(self.lower(condition, true), &self.lower(yes, wanted));
                let without = both(self.lower(condition, false), &self.lower(no, wanted));
                either(with, without)
            }
        }
    }

    fn lower_all(&mut self, parts: &[Expression], wanted: bool) -> Vec<Term> {
        let mut result = Vec::from([Term::everything(true)]);
        for part in parts {
            let terms = self.lower(part, wanted);
            result = both(result, &terms);
        }
        result
    }

    fn lower_any(&mut self, parts: &[Expression], wanted: bool) -> Vec<Term> {
        let mut result = Vec::new();
        for part in parts {
            result.append(&mut self.lower(part, wanted));
            if result.len() > 4 * MAX_TERMS {
                result = limit(simplify(result));
            }
        }
        limit(simplify(result))
    }

    fn lower_test(&mut self, test: &Test, wanted: bool) -> Vec<Term> {
        let Some(pieces) = self.pieces(test) else { return Vec::from([Term::everything(false)]) };
        let mut sets = Vec::with_capacity(pieces.len());
        for (piece, field) in &pieces {
            match self.number(*field).zip(self.spans(piece, *field)) {
                Some((number, spans)) => sets.push((number, *field, spans)),
                None => return Vec::from([Term::everything(false)]),
            }
        }
        let Some((last_number, last_field, _)) = sets.last().cloned() else {
            // The test compares no bits.
            let passes = !test.negated;
            return if passes == wanted { Vec::from([Term::everything(true)]) } else { Vec::new() };
        };
        if sets.len() == 1 {
            // A single piece includes the negation.
            let term = |(number, field, spans): (u16, Field, Spans)| {
                let spans = if wanted { spans } else { spans.complement(field.absent()) };
                make_term(Vec::from([(number, spans)]), field)
            };
            return sets.into_iter().filter_map(term).collect();
        }
        // Only an equality has several pieces: it holds if all of them do.
        let all = |sets: &[(u16, Field, Spans)]| {
            let mut sets: Vec<_> = sets.iter().map(|(number, _, spans)| (*number, spans.clone())).collect();
            sorting::sort_by_key(&mut sets, |(number, _)| *number);
            Term { sets, exact: true }
        };
        let ended = Spans::one(last_field.values(), last_field.absent());
        let whole = Spans::one(0, last_field.values() - 1);
        let differs = sets.iter().map(|(number, field, spans)| Term {
            sets: Vec::from([(*number, spans.complement(field.absent()))]),
            exact: true,
        });
        let complete = Term { sets: Vec::from([(last_number, whole)]), exact: true };
        match (test.negated, wanted) {
            (false, true) => Vec::from([all(&sets)]),
            (false, false) => differs.collect(),
            (true, true) => differs.filter_map(|term| term.intersect(&complete)).collect(),
            (true, false) => {
                Vec::from([all(&sets), Term { sets: Vec::from([(last_number, ended)]), exact: true }])
            }
        }
    }

    /// Splits a test into tests of one field each; `None` if that is impossible.
    fn pieces(&mut self, test: &Test) -> Option<Vec<(Test, Field)>> {
        let bits = test.mask << test.shift;
        if bits == 0 {
            return Some(Vec::new());
        }
        let address = self.addresses && test.base == Base::Network && matches!(test.offset, 12 | 16);
        if address && self.fits(test, 0, 4) {
            let field = Field { base: test.base, offset: test.offset, width: 4 };
            return Some(Vec::from([(*test, field)]));
        }
        let mut pieces = Vec::new();
        for half in [0u16, 2] {
            if bits & half_bits(half, 2) == 0 {
                continue;
            }
            let single = [half, half + 1]
                .into_iter()
                .find(|byte| bits & half_bits(half, 2) & !half_bits(*byte, 1) == 0);
            match single {
                Some(byte) => pieces.push((byte, 1)),
                None if self.fits(test, half, 2) => pieces.push((half, 2)),
                None => pieces.extend([(half, 1), (half + 1, 1)]),
            }
        }
        let whole = pieces.len() == 1;
        if !whole && test.relation == Relation::Greater {
            return None;
        }
        let cut = |(start, width): (u16, u8)| {
            let mask = half_bits(start, width) >> test.shift;
            let piece = Test {
                mask: test.mask & mask,
                value: test.value & mask,
                negated: test.negated && whole,
                ..*test
            };
            Some((piece, Field { base: test.base, offset: test.offset.checked_add(start)?, width }))
        };
        pieces.into_iter().map(cut).collect()
    }

    /// Whether the part of the test in these bytes of its word needs few enough spans.
    fn fits(&mut self, test: &Test, start: u16, width: u8) -> bool {
        let mask = half_bits(start, width) >> test.shift;
        let part = Test { mask: test.mask & mask, value: test.value & mask, ..*test };
        let field = Field { base: test.base, offset: test.offset.saturating_add(start), width };
        self.known.entry((part, field)).or_insert_with(|| passing(&part, field)).is_some()
    }

    fn spans(&mut self, test: &Test, field: Field) -> Option<Spans> {
        self.known.entry((*test, field)).or_insert_with(|| passing(test, field)).clone()
    }

    /// The number of `field`; `None` if there are already too many fields.
    fn number(&mut self, field: Field) -> Option<u16> {
        if let Some(number) = self.numbers.get(&field) {
            return Some(*number);
        }
        let number = u16::try_from(self.fields.len()).ok().filter(|number| *number < MAX_FIELDS)?;
        self.fields.push(field);
        self.numbers.insert(field, number);
        Some(number)
    }
}

/// The mask of bytes `start..start + width` of a word.
fn half_bits(start: u16, width: u8) -> u32 {
    (u32::MAX << (32 - 8 * u32::from(width))) >> (8 * start)
}

/// A term without sets that contain everything; `None` if a set is empty.
fn make_term(sets: Vec<(u16, Spans)>, field: Field) -> Option<Term> {
    let everything = Spans::one(0, field.absent());
    if sets.iter().any(|(_, spans)| spans.is_empty()) {
        return None;
    }
    let sets = sets.into_iter().filter(|(_, spans)| *spans != everything).collect();
    Some(Term { sets, exact: true })
}

/// The intersection of two unions of terms.
fn both(left: Vec<Term>, right: &[Term]) -> Vec<Term> {
    if left.len().saturating_mul(right.len()) > 16 * MAX_TERMS {
        // Too many products: use the shorter side as an approximation.
        let keep = if left.len() <= right.len() { left } else { right.to_vec() };
        return limit(keep.into_iter().map(|term| Term { exact: false, ..term }).collect());
    }
    let product: Vec<Term> = left.iter().flat_map(|a| right.iter().filter_map(|b| a.intersect(b))).collect();
    if left.len() > 1 && right.len() > 1 { limit(simplify(product)) } else { limit(product) }
}

/// The union of two unions of terms.
fn either(mut left: Vec<Term>, mut right: Vec<Term>) -> Vec<Term> {
    left.append(&mut right);
    limit(simplify(left))
}

/// Replaces too many terms by one that contains everything.
fn limit(terms: Vec<Term>) -> Vec<Term> {
    if terms.len() > MAX_TERMS { Vec::from([Term::everything(false)]) } else { terms }
}

/// Merges terms that differ in one field only, and removes terms that others contain.
fn simplify(mut terms: Vec<Term>) -> Vec<Term> {
    if terms.len() < 2 {
        return terms;
    }
    let mut fields: Vec<u16> =
        terms.iter().flat_map(|term| term.sets.iter().map(|(field, _)| *field)).collect();
    sorting::sort(&mut fields);
    fields.dedup();
    for field in fields {
        terms = join_on(terms, field);
    }
    if terms.len() <= MAX_TERMS {
        absorb(&mut terms);
    }
    terms
}

/// Merges the terms that differ in their set for `field` only.
fn join_on(terms: Vec<Term>, field: u16) -> Vec<Term> {
    let mut joined: BTreeMap<Term, Vec<Spans>> = BTreeMap::new();
    let mut result = Vec::new();
    for mut term in terms {
        match term.sets.iter().position(|(other, _)| *other == field) {
            Some(index) => {
                let (_, spans) = term.sets.remove(index);
                joined.entry(term).or_default().push(spans);
            }
            None => result.push(term),
        }
    }
    for (mut term, sets) in joined {
        let spans = union_all(sets);
        let index = term.sets.partition_point(|(other, _)| *other < field);
        term.sets.insert(index, (field, spans));
        result.push(term);
    }
    result
}

/// The union of many sets, merged pairwise to keep the cost nearly linear.
fn union_all(mut sets: Vec<Spans>) -> Spans {
    while sets.len() > 1 {
        sets =
            sets.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0].clone(), |a, b| a.union(b))).collect();
    }
    sets.pop().unwrap_or_default()
}

/// Removes every term that another one contains; an inexact term can't replace an exact one.
fn absorb(terms: &mut Vec<Term>) {
    let mut index = 0;
    while index < terms.len() {
        let contained = terms.iter().enumerate().any(|(other, term)| {
            other != index
                && (term.exact || !terms[index].exact)
                && term.contains(&terms[index])
                && (other < index || !terms[index].contains(term) || term.exact != terms[index].exact)
        });
        if contained {
            terms.remove(index);
        } else {
            index += 1;
        }
    }
}
