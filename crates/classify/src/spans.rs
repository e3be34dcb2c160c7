//! Sets of field states, as sorted spans of coordinates.
//!
//! A field of 1, 2 or 4 bytes has one coordinate per value, then one for each state in which the packet ends inside the
//! field (256 for a 2-byte field of which only the first byte exists), and a last one for packets that end before the
//! field. A test on a short packet is therefore a set like any other, and its negation is the complement.

use alloc::vec::Vec;

use crate::expression::{Relation, Test};
use crate::headers::Base;

/// A field that programs can index: `width` bytes at `offset` from `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Field {
    pub(crate) base: Base,
    pub(crate) offset: u16,
    /// 1, 2 or 4 bytes.
    pub(crate) width: u8,
}

impl Field {
    /// Number of values of the complete field.
    pub(crate) fn values(self) -> u64 {
        1 << (8 * self.width)
    }

    /// Coordinate of packets that end before the field. Packets that end inside a 4-byte field have no coordinate:
    /// programs evaluate the expressions for them.
    pub(crate) fn absent(self) -> u64 {
        self.values() + if self.width == 2 { 256 } else { 0 }
    }
}

/// A set of coordinates: sorted, disjoint, non-adjacent spans with inclusive ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Spans(Vec<(u64, u64)>);

/// Maximum spans of one test, so that a rule with a scattered mask can't exhaust memory.
const MAX_SPANS: usize = 256;

impl Spans {
    /// A set of one span.
    pub(crate) fn one(first: u64, last: u64) -> Self {
        Self(Vec::from([(first, last)]))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a span that starts after all others, and merges it with an adjacent one.
    fn push(&mut self, first: u64, last: u64) {
        match self.0.last_mut() {
            Some((_, end)) if *end + 1 == first => *end = last,
            _ => self.0.push((first, last)),
        }
    }

    /// The coordinates up to `last` that are not in the set.
    pub(crate) fn complement(&self, last: u64) -> Self {
        let mut result = Self::default();
        let mut next = 0;
        for (first, end) in self.iter() {
            if first > next {
                result.push(next, first - 1);
            }
            next = end + 1;
        }
        if next <= last {
            result.push(next, last);
        }
        result
    }

    pub(crate) fn intersect(&self, other: &Self) -> Self {
        let mut result = Self::default();
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(a_first, a_last)), Some(&&(b_first, b_last))) = (a.peek(), b.peek()) {
            let (first, last) = (a_first.max(b_first), a_last.min(b_last));
            if first <= last {
                result.push(first, last);
            }
            if a_last < b_last {
                a.next()
            } else {
                b.next()
            };
        }
        result
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all: Vec<_> = self.0.iter().chain(&other.0).copied().collect();
        sorting::sort(&mut all);
        let mut result = Self::default();
        for (first, last) in all {
            match result.0.last_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
                _ => result.0.push((first, last)),
            }
        }
        result
    }

    /// Whether every coordinate of `other` is in the set.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.iter().all(|(first, last)| {
            let index = self.0.partition_point(|(_, end)| *end < first);
            self.0.get(index).is_some_and(|(start, end)| *start <= first && last <= *end)
        })
    }
}

/// The coordinates of `field` that pass `test`, whose bits all lie in the field.
///
/// Returns `None` if there are too many spans.
pub(crate) fn passing(test: &Test, field: Field) -> Option<Spans> {
    let bits = 8 * u32::from(field.width);
    // The field's position in the word of the test.
    let drop = 32 - bits - 8 * u32::from(field.offset - test.offset);
    let mask = ((test.mask << test.shift) >> drop) as u64;
    let value = ((test.value << test.shift) >> drop) as u64;
    let full = match test.relation {
        Relation::Equal => equal(bits, mask, value)?,
        Relation::Greater => greater(bits, mask, value)?,
    };
    let mut spans = if test.negated { full.complement(field.values() - 1) } else { full };
    let available = u32::from(field.offset - test.offset) + 1;
    if field.width == 2 && test.may_pass(available) {
        for byte in 0..256u64 {
            if test.decide((byte as u32) << (drop + 8), available) {
                spans.push(field.values() + byte, field.values() + byte);
            }
        }
    }
    // Without any byte of the field: a comparison of no bits passes, and so does `not > x` for the largest x.
    if test.decide(0, available - 1) {
        spans.push(field.absent(), field.absent());
    }
    (spans.len() <= MAX_SPANS).then_some(spans)
}

/// The `bits`-bit numbers that equal `value` under `mask`.
fn equal(bits: u32, mask: u64, value: u64) -> Option<Spans> {
    let free_low = if mask == 0 { bits } else { mask.trailing_zeros() };
    let holes = !mask & ((1 << bits) - 1) & !((1 << free_low) - 1);
    if holes.count_ones() > MAX_SPANS.ilog2() {
        return None;
    }
    let mut spans = Spans::default();
    let mut hole = 0u64;
    loop {
        let first = value | hole;
        spans.push(first, first | ((1 << free_low) - 1));
        // The next larger subset of `holes`.
        hole = hole.wrapping_sub(holes) & holes;
        if hole == 0 {
            return Some(spans);
        }
    }
}

/// The `bits`-bit numbers that are greater than `value` under `mask`.
fn greater(bits: u32, mask: u64, value: u64) -> Option<Spans> {
    let last = (1u64 << bits) - 1;
    let low = !mask & last;
    let mut spans = Spans::default();
    if low & (low + 1) == 0 {
        // The mask is a prefix: compare the numbers directly.
        if value | low < last {
            spans.push((value | low) + 1, last);
        }
        return Some(spans);
    }
    let block = 1 << mask.trailing_zeros();
    if last / block >= 4096 {
        return None;
    }
    for first in (0..=last).step_by(block as usize) {
        if first & mask > value {
            spans.push(first, first + block - 1);
        }
    }
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::Headers;

    #[test]
    fn set_operations() {
        let a = Spans(Vec::from([(2, 4), (8, 9)]));
        let b = Spans(Vec::from([(4, 8)]));
        assert_eq!(a.complement(10), Spans(Vec::from([(0, 1), (5, 7), (10, 10)])));
        assert_eq!(a.intersect(&b), Spans(Vec::from([(4, 4), (8, 8)])));
        assert_eq!(a.union(&b), Spans::one(2, 9));
        assert!(a.contains(&Spans::one(3, 4)) && !a.contains(&Spans::one(4, 5)));
        assert!(a.complement(10).complement(10) == a);
    }

    /// Checks every value and every truncation of a two-byte field against the test itself.
    #[test]
    fn passing_agrees_with_the_test() {
        let tests = [
            (0xffff, 80, Relation::Equal),
            (0xffff, 1023, Relation::Greater),
            (0xffff, 100, Relation::Greater),
            (0xffff, 0xfffe, Relation::Greater),
            (0xfff0, 0x1230, Relation::Equal),
            (0xf0f0, 0x4040, Relation::Greater),
            (0x3fff, 0, Relation::Equal),
            (0xff00, 0x1200, Relation::Greater),
            (0xffff, 0xffff, Relation::Greater),
            (0x0300, 0x0300, Relation::Greater),
            (0, 0, Relation::Equal),
        ];
        for (mask, value, relation) in tests {
            for (shift, offset, negated) in [(16, 0, false), (0, 2, false), (16, 0, true), (0, 2, true)] {
                let test = Test { base: Base::Network, offset: 0, shift, mask, value, relation, negated };
                let field = Field { base: Base::Network, offset, width: 2 };
                let spans = passing(&test, field).expect("few spans");
                let inside = |at: u64| spans.contains(&Spans::one(at, at));
                let offset = usize::from(offset);
                for number in 0..=u16::MAX {
                    let mut packet = [0; 4];
                    packet[offset..offset + 2].copy_from_slice(&number.to_be_bytes());
                    assert_eq!(inside(number.into()), test.matches(&Headers::data(&packet)), "{test:?}");
                    if number % 256 == 0 {
                        let cut = Headers::data(&packet[..offset + 1]);
                        let coordinate = 65536 + u64::from(number) / 256;
                        assert_eq!(inside(coordinate), test.matches(&cut), "{test:?} {number:x}");
                    }
                }
                assert_eq!(
                    inside(field.absent()),
                    test.matches(&Headers::data(&[0; 4][..offset])),
                    "{test:?}"
                );
            }
        }
    }
}
