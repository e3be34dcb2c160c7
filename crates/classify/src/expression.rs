//! Expressions over packet bytes and their direct evaluation, the reference for compiled programs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::headers::{Base, Headers};

/// How a test compares the masked word with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// The masked bits equal the value.
    Equal,
    /// The masked bits, read as a number, are greater than the value.
    Greater,
}

/// One comparison of up to 32 bits of a packet.
///
/// The bits are those of the big-endian word that starts at `offset`, shifted right by `shift`, under `mask`.
/// A test that needs a byte beyond the end of the packet is false, negated or not; which bytes a `Greater` test
/// needs depends on how early its top bits decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Test {
    /// The header that `offset` is relative to.
    pub base: Base,
    /// Byte offset of the word from `base`.
    pub offset: u16,
    /// Number of low bits to discard, 0 to 31.
    pub shift: u8,
    /// The bits to compare, after the shift.
    pub mask: u32,
    /// The value to compare with; a subset of `mask`.
    pub value: u32,
    /// The comparison.
    pub relation: Relation,
    /// Whether the comparison is negated. A packet that is too short still fails.
    pub negated: bool,
}

impl Test {
    /// An equality test of the word at `offset`, without a shift.
    #[must_use]
    pub fn equal(base: Base, offset: u16, mask: u32, value: u32) -> Self {
        Self { base, offset, shift: 0, mask, value: value & mask, relation: Relation::Equal, negated: false }
    }

    /// The test, negated if `negate` is set.
    #[must_use]
    pub fn negate_if(self, negate: bool) -> Self {
        Self { negated: self.negated != negate, ..self }
    }

    /// Whether the packet passes.
    #[must_use]
    #[inline]
    pub fn matches(&self, headers: &Headers<'_>) -> bool {
        let bytes = headers.from(self.base).get(usize::from(self.offset)..).unwrap_or_default();
        match bytes.first_chunk::<4>() {
            Some(word) => self.compare(u32::from_be_bytes(*word)) != self.negated,
            None => {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                self.decide(u32::from_be_bytes(word), bytes.len() as u32)
            }
        }
    }

    /// Whether a word of which only the first `available` bytes (0 to 4) exist passes. The other bytes are zero.
    #[must_use]
    pub(crate) fn decide(&self, word: u32, available: u32) -> bool {
        let missing = |mask: u32| needed_bytes(mask << self.shift) > available;
        match self.relation {
            Relation::Equal => !missing(self.mask) && self.compare(word) != self.negated,
            Relation::Greater => {
                let number = word >> self.shift;
                for (mask, ones) in self.steps() {
                    if missing(mask) {
                        return false;
                    }
                    match ones {
                        true if number & mask != mask => return self.negated,
                        false if number & mask != 0 => return !self.negated,
                        _ => {}
                    }
                }
                self.steps().last().is_some_and(|(_, ones)| ones) != self.negated
            }
        }
    }

    /// Whether any word of which only the first `available` bytes exist can pass.
    pub(crate) fn may_pass(&self, available: u32) -> bool {
        self.relation != Relation::Equal || needed_bytes(self.mask << self.shift) <= available
    }

    /// Compares a complete word.
    #[inline]
    fn compare(&self, word: u32) -> bool {
        let bits = (word >> self.shift) & self.mask;
        match self.relation {
            Relation::Equal => bits == self.value,
            Relation::Greater => bits > self.value,
        }
    }

    /// The steps that decide `bits > value` from the top bits down: while `value` starts with zeros under the
    /// mask, any of those bits set means yes; while `value + 1` starts with ones, any of them clear means no.
    ///
    /// Click decides in these steps, and a packet that ends in the middle of the word passes or fails by them.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u32, bool)> {
        let (mut mask, mut value) = (self.mask, self.value);
        core::iter::from_fn(move || {
            if value >= mask {
                return None;
            }
            let ones = value > mask >> 1;
            let different = if ones { !(value.wrapping_add(1)) & mask } else { value };
            let step = match different.checked_ilog2() {
                None => mask,
                Some(31) => 0,
                Some(bit) => mask & !((2u32 << bit) - 1),
            };
            mask &= !step;
            value &= mask;
            Some((step, ones))
        })
        // A step without bits would repeat forever; it can't arise for a value within its mask.
        .take_while(|(step, _)| *step != 0)
    }
}

/// The number of leading bytes of a big-endian word that contain the bits of `mask`.
fn needed_bytes(mask: u32) -> u32 {
    if mask == 0 { 0 } else { 4 - mask.trailing_zeros() / 8 }
}

/// A condition on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// Every packet, or none.
    Constant(bool),
    /// One comparison.
    Test(Test),
    /// The negation, also for short packets.
    Not(Box<Expression>),
    /// All of them; true when empty.
    All(Vec<Expression>),
    /// At least one of them; false when empty.
    Any(Vec<Expression>),
    /// The second if the first holds, otherwise the third.
    Choose(Box<[Expression; 3]>),
}

impl Expression {
    /// Whether the packet meets the condition, by walking the tree.
    #[must_use]
    pub fn matches(&self, headers: &Headers<'_>) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Test(test) => test.matches(headers),
            Self::Not(inner) => !inner.matches(headers),
            Self::All(parts) => parts.iter().all(|part| part.matches(headers)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(headers)),
            Self::Choose(parts) => {
                let [condition, yes, no] = &**parts;
                if condition.matches(headers) { yes.matches(headers) } else { no.matches(headers) }
            }
        }
    }

    /// Puts lists in lists of their kind together, and frees the spare capacity.
    pub(crate) fn shrink(&mut self) {
        match self {
            Self::Constant(_) | Self::Test(_) => {}
            Self::Not(inner) => inner.shrink(),
            Self::All(parts) => join_lists(parts, |part| match part {
                Self::All(inner) => Ok(inner),
                other => Err(other),
            }),
            Self::Any(parts) => join_lists(parts, |part| match part {
                Self::Any(inner) => Ok(inner),
                other => Err(other),
            }),
            Self::Choose(parts) => parts.iter_mut().for_each(Expression::shrink),
        }
    }

    /// The negated condition.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(!value),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }
}

/// Replaces the lists among the parts, which `list` takes out, by what is in them.
fn join_lists(parts: &mut Vec<Expression>, list: impl Fn(Expression) -> Result<Vec<Expression>, Expression>) {
    let mut joined = Vec::with_capacity(parts.len());
    for mut part in parts.drain(..) {
        part.shrink();
        match list(part) {
            Ok(mut inner) => joined.append(&mut inner),
            Err(other) => joined.push(other),
        }
    }
    joined.shrink_to_fit();
    *parts = joined;
}

/// The output number that means drop.
pub const DROP: u32 = u32::MAX;

/// A condition and the action for packets that meet it and no earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The output for the packets; `None` drops them.
    pub output: Option<u32>,
    /// The condition.
    pub condition: Expression,
}

/// Index of the first rule whose condition the packet meets, by trying one rule after the other.
///
/// This defines the meaning of a rule set; [`crate::Program`] finds the same rule faster.
#[must_use]
pub fn first_match(rules: &[Rule], headers: &Headers<'_>) -> Option<usize> {
    rules.iter().position(|rule| rule.condition.matches(headers))
}
