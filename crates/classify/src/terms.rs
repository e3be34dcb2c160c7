//! Rules as unions of boxes: a term is a conjunction of field sets, a rule matches when one of its terms does.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::expression::{Expression, Relation, Test};
use crate::headers::Base;
use crate::spans::{Field, Spans, passing};

/// Most terms of one rule. A condition that would need more becomes an approximation whose candidates are
/// checked against the expression: a short rule could ask for exponentially many.
const MAX_TERMS: usize = 256;

/// Most fields that are told apart; tests of further ones are checked against the expressions.
const MAX_FIELDS: u16 = 4096;

/// A set of packets: those whose every listed field lies in its spans.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    /// Sorted by field; no set is empty, none is everything.
    pub(crate) sets: Vec<(u16, Spans)>,
    /// The term is exactly what was asked for; else a superset, and its candidates must be checked.
    pub(crate) exact: bool,
}

impl Term {
    fn everything(exact: bool) -> Self {
        Self { sets: Vec::new(), exact }
    }

    /// The set for `field`; none when the term does not look at it.
    pub(crate) fn set(&self, field: u16) -> Option<&Spans> {
        let index = self.sets.binary_search_by_key(&field, |(other, _)| *other).ok()?;
        Some(&self.sets[index].1)
    }

    /// Whether every packet of `other` is one of this term's.
    pub(crate) fn contains(&self, other: &Term) -> bool {
        self.sets.iter().all(|(field, spans)| other.set(*field).is_some_and(|inner| spans.contains(inner)))
    }

    /// The packets of both; none when there are none.
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

/// Breaks conditions into terms, and numbers the fields that they look at.
pub(crate) struct Breaker {
    /// Addresses of the IP header are fields of 4 bytes.
    addresses: bool,
    fields: Vec<Field>,
    numbers: BTreeMap<Field, u16>,
    /// Tests seen before, with their set: rules repeat themselves.
    known: BTreeMap<(Test, Field), Option<Spans>>,
}

impl Breaker {
    /// A breaker for rules about IP headers (`addresses`) or about raw bytes.
    pub(crate) fn new(addresses: bool) -> Self {
        Self { addresses, fields: Vec::new(), numbers: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// The fields, by number.
    pub(crate) fn into_fields(self) -> Vec<Field> {
        self.fields
    }

    /// The terms of `condition`; no term when no packet can meet it.
    pub(crate) fn terms(&mut self, condition: &Expression) -> Vec<Term> {
        self.lower(condition, true)
    }

    /// The terms of `expression`, or of its opposite when `wanted` is false.
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
            // A test of no bits.
            let passes = !test.negated;
            return if passes == wanted { Vec::from([Term::everything(true)]) } else { Vec::new() };
        };
        if sets.len() == 1 {
            // One piece carries its negation itself.
            let term = |(number, field, spans): (u16, Field, Spans)| {
                let spans = if wanted { spans } else { spans.complement(field.absent()) };
                make_term(Vec::from([(number, spans)]), field)
            };
            return sets.into_iter().filter_map(term).collect();
        }
        // Several pieces are those of an equality: it holds when all do.
        let all = |sets: &[(u16, Field, Spans)]| {
            let mut sets: Vec<_> = sets.iter().map(|(number, _, spans)| (*number, spans.clone())).collect();
            sets.sort_unstable_by_key(|(number, _)| *number);
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

    /// Cuts a test into tests of one field each; none when that can't be done.
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

    /// Whether the part of the test in these bytes of its word makes a short list of spans.
    fn fits(&mut self, test: &Test, start: u16, width: u8) -> bool {
        let mask = half_bits(start, width) >> test.shift;
        let part = Test { mask: test.mask & mask, value: test.value & mask, ..*test };
        let field = Field { base: test.base, offset: test.offset.saturating_add(start), width };
        self.known.entry((part, field)).or_insert_with(|| passing(&part, field)).is_some()
    }

    fn spans(&mut self, test: &Test, field: Field) -> Option<Spans> {
        self.known.entry((*test, field)).or_insert_with(|| passing(test, field)).clone()
    }

    /// The number of `field`; none when there are too many already.
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

/// The bits of a word that its bytes `start..start + width` hold.
fn half_bits(start: u16, width: u8) -> u32 {
    (u32::MAX << (32 - 8 * u32::from(width))) >> (8 * start)
}

/// A term of one set, unless the set is empty; a set of everything is left out.
fn make_term(sets: Vec<(u16, Spans)>, field: Field) -> Option<Term> {
    let everything = Spans::one(0, field.absent());
    if sets.iter().any(|(_, spans)| spans.is_empty()) {
        return None;
    }
    let sets = sets.into_iter().filter(|(_, spans)| *spans != everything).collect();
    Some(Term { sets, exact: true })
}

/// The packets that are in a term of each.
fn both(left: Vec<Term>, right: &[Term]) -> Vec<Term> {
    if left.len().saturating_mul(right.len()) > 16 * MAX_TERMS {
        // Too many products: keep the shorter side as an approximation.
        let keep = if left.len() <= right.len() { left } else { right.to_vec() };
        return limit(keep.into_iter().map(|term| Term { exact: false, ..term }).collect());
    }
    let product: Vec<Term> = left.iter().flat_map(|a| right.iter().filter_map(|b| a.intersect(b))).collect();
    if left.len() > 1 && right.len() > 1 { limit(simplify(product)) } else { limit(product) }
}

/// The packets that are in a term of either.
fn either(mut left: Vec<Term>, mut right: Vec<Term>) -> Vec<Term> {
    left.append(&mut right);
    limit(simplify(left))
}

/// Replaces too many terms by everything.
fn limit(terms: Vec<Term>) -> Vec<Term> {
    if terms.len() > MAX_TERMS { Vec::from([Term::everything(false)]) } else { terms }
}

/// Joins terms that differ in one field, and leaves out terms that others contain.
fn simplify(mut terms: Vec<Term>) -> Vec<Term> {
    if terms.len() < 2 {
        return terms;
    }
    let mut fields: Vec<u16> =
        terms.iter().flat_map(|term| term.sets.iter().map(|(field, _)| *field)).collect();
    fields.sort_unstable();
    fields.dedup();
    for field in fields {
        terms = join_on(terms, field);
    }
    if terms.len() <= MAX_TERMS {
        absorb(&mut terms);
    }
    terms
}

/// Joins the terms that are alike but for their set of `field`.
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

/// The union of many sets, halves first so that the cost stays near linear.
fn union_all(mut sets: Vec<Spans>) -> Spans {
    while sets.len() > 1 {
        sets =
            sets.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0].clone(), |a, b| a.union(b))).collect();
    }
    sets.pop().unwrap_or_default()
}

/// Leaves out every term that an exact other one contains.
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
