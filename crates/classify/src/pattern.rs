//! The patterns of `Classifier`: bytes that a packet must, or must not, have at certain offsets.

use alloc::vec::Vec;
use core::fmt;

use crate::expression::{Expression, Rule, Test};
use crate::headers::Base;

/// A problem with one pattern. `Display` prints it in Click's wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Index of the pattern among the arguments.
    pub pattern: usize,
    /// The problem.
    pub kind: PatternErrorKind,
}

/// The kinds of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternErrorKind {
    /// A clause without an offset at its start.
    NoOffset,
    /// No `/` after the offset.
    NoSlash,
    /// The clause extends beyond byte 65,535, the maximum packet length.
    TooFar,
    /// Fewer than two digits.
    ShortValue,
    /// An odd number of digits.
    OddValue,
    /// The mask is longer than the value.
    LongMask,
    /// The mask is shorter than the value.
    ShortMask,
}

impl fmt::Display for PatternErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatternErrorKind::NoOffset => "expected a digit",
            PatternErrorKind::NoSlash => "expected ‘/’",
            PatternErrorKind::TooFar => "offset out of range, bound 65535",
            PatternErrorKind::ShortValue => "value has less than 2 hex digits",
            PatternErrorKind::OddValue => "value has odd number of hex digits",
            PatternErrorKind::LongMask => "mask has too many hex digits",
            PatternErrorKind::ShortMask => "mask has too few hex digits",
        })
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pattern {}: {}", self.pattern, self.kind)
    }
}

impl core::error::Error for PatternError {}

/// Parses patterns. A packet goes to the output whose index is that of the first matching pattern.
///
/// Returns one rule per pattern. An invalid pattern gives the part that could be parsed.
#[must_use]
pub fn pattern_rules<S: AsRef<str>>(patterns: &[S]) -> (Vec<Rule>, Vec<PatternError>) {
    let (mut rules, mut problems) = (Vec::with_capacity(patterns.len()), Vec::new());
    for (index, text) in patterns.iter().enumerate() {
        rules.push(pattern_rule(index, text.as_ref(), &mut problems));
    }
    (rules, problems)
}

/// Parses one pattern: that with this number. Adds problems to `problems`.
pub fn pattern_rule(number: usize, pattern: &str, problems: &mut Vec<PatternError>) -> Rule {
    let mut reader = Reader { rest: pattern.as_bytes(), found: Vec::new() };
    let condition = match pattern {
        "-" => Expression::All(Vec::new()),
        _ => reader.clauses(),
    };
    problems.extend(reader.found.into_iter().map(|kind| PatternError { pattern: number, kind }));
    Rule { output: u32::try_from(number).ok(), condition }
}

struct Reader<'a> {
    rest: &'a [u8],
    found: Vec<PatternErrorKind>,
}

impl<'a> Reader<'a> {
    fn clauses(&mut self) -> Expression {
        let mut clauses = Vec::new();
        loop {
            self.skip_space();
            if self.rest.is_empty() {
                break;
            }
            match self.clause() {
                Ok(clause) => clauses.push(clause),
                Err(problem) => {
                    self.found.push(problem);
                    break;
                }
            }
        }
        Expression::All(clauses)
    }

    /// Parses `[!]OFFSET/VALUE[%MASK]`. Mismatched digits are reported and ignored.
    fn clause(&mut self) -> Result<Expression, PatternErrorKind> {
        let negated = self.take(b'!');
        self.skip_space();
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(PatternErrorKind::NoOffset);
        }
        if !self.take(b'/') {
            return Err(PatternErrorKind::NoSlash);
        }
        let is_digit = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'?';
        let mut value = self.take_while(is_digit);
        let mut mask = if self.take(b'%') { Some(self.take_while(is_digit)) } else { None };
        if value.len() < 2 {
            self.found.push(PatternErrorKind::ShortValue);
            (value, mask) = (&[], mask.map(|_| &[] as &[u8]));
        }
        if !value.len().is_multiple_of(2) {
            self.found.push(PatternErrorKind::OddValue);
            value = &value[..value.len() - 1];
            mask = mask.map(|mask| &mask[..mask.len().saturating_sub(1)]);
        }
        if let Some(mask) = &mut mask
            && mask.len() != value.len()
        {
            let long = mask.len() > value.len();
            self.found.push(if long { PatternErrorKind::LongMask } else { PatternErrorKind::ShortMask });
            let length = mask.len().min(value.len());
            (value, *mask) = (&value[..length], &mask[..length]);
        }
        let offset = digits.iter().try_fold(0usize, |sum, digit| {
            sum.checked_mul(10)?.checked_add(usize::from(digit - b'0')).filter(|sum| *sum < 1 << 16)
        });
        let offset = offset.filter(|offset| offset + value.len() / 2 <= 1 << 16);
        let tests = words(offset.ok_or(PatternErrorKind::TooFar)?, value, mask);
        let clause = Expression::All(tests.into_iter().map(Expression::Test).collect());
        Ok(if negated { clause.negate() } else { clause })
    }

    fn skip_space(&mut self) {
        self.take_while(u8::is_ascii_whitespace);
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        self.rest = &self.rest[usize::from(found)..];
        found
    }

    fn take_while(&mut self, wanted: impl Fn(&u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().position(|byte| !wanted(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// One test per word for the bytes from `offset` on.
fn words(offset: usize, value: &[u8], mask: Option<&[u8]>) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    for (index, digits) in value.chunks_exact(2).enumerate() {
        let (mut bits, mut known) = byte(digits);
        if let Some(mask) = mask.and_then(|mask| mask.get(2 * index..2 * index + 2)) {
            let (wanted, given) = byte(mask);
            known &= wanted & given;
        }
        bits &= known;
        let at = offset + index;
        let word = (at / 4 * 4) as u16;
        let shift = 24 - 8 * (at % 4);
        match tests.last_mut() {
            Some(test) if test.offset == word => {
                test.mask |= u32::from(known) << shift;
                test.value |= u32::from(bits) << shift;
            }
            _ => {
                let test =
                    Test::equal(Base::Network, word, u32::from(known) << shift, u32::from(bits) << shift);
                tests.push(test);
            }
        }
    }
    tests
}

/// The value of two hexadecimal digits, and the mask of its specified bits (`?` specifies none).
fn byte(digits: &[u8]) -> (u8, u8) {
    digits.iter().fold((0, 0), |(value, known), digit| {
        let number = char::from(*digit).to_digit(16).and_then(|number| u8::try_from(number).ok());
        (value << 4 | number.unwrap_or(0), known << 4 | if number.is_some() { 15 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;
    use crate::expression::first_match;
    use crate::headers::Headers;
    use crate::program::{Layout, Program};

    fn matches(pattern: &str, packet: &[u8]) -> bool {
        let (rules, problems) = pattern_rules(&[pattern]);
        assert!(problems.is_empty(), "{pattern}: {problems:?}");
        let headers = Headers::data(packet);
        let found = first_match(&rules, &headers);
        assert_eq!(Program::new(rules, Layout::Bytes).first_match(&headers), found, "{pattern}");
        found.is_some()
    }

    #[test]
    fn clauses() {
        let packet: Vec<u8> = (0..40).collect();
        let cases = [
            ("-", true),
            ("", true),
            ("12/0c0d", true),
            ("12/0c0e", false),
            ("3/03040506070809", true),
            ("3/03040506070800", false),
            ("12/0c0d 20/14 0/00", true),
            ("!12/0c0d", false),
            ("! 12/0c0e !13/00", true),
            ("12/0C?d", true),
            ("12/0c?? 13/0d", true),
            ("17/00%0e", true),
            ("17/01%01", true),
            ("17/0110%0?f0", true),
            ("39/27", true),
            ("39/2728", false),
            ("!39/2728", true),
            ("60/??", true),
            ("!60/??", false),
        ];
        for (pattern, expected) in cases {
            assert_eq!(matches(pattern, &packet), expected, "{pattern}");
        }
        assert!(matches("-", &[]) && !matches("0/00", &[]) && matches("!0/00", &[]));
    }

    #[test]
    fn problems() {
        let cases = [
            ("12", "pattern 0: expected ‘/’"),
            ("x/00", "pattern 0: expected a digit"),
            ("1/0", "pattern 0: value has less than 2 hex digits"),
            ("1/000", "pattern 0: value has odd number of hex digits"),
            ("1/00%0011", "pattern 0: mask has too many hex digits"),
            ("1/0011%00", "pattern 0: mask has too few hex digits"),
            ("70000/00", "pattern 0: offset out of range, bound 65535"),
            ("65535/0000", "pattern 0: offset out of range, bound 65535"),
            ("99999999999999999999999/00", "pattern 0: offset out of range, bound 65535"),
            ("1/00 - ", "pattern 0: expected a digit"),
        ];
        for (pattern, expected) in cases {
            let (rules, problems) = pattern_rules(&[pattern]);
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [expected], "{pattern}");
            assert_eq!(rules.len(), 1);
        }
    }
}
