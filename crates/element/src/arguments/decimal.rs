//! Decimal numbers in Click's notation: underscores after digits, exponents, exact fractions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// An unsigned number: its digits, and the number of digits before the point (negative: leading zeros after the point).
pub(super) struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

/// The largest useful exponent: beyond it a number is zero or infinite.
const EXPONENT_LIMIT: i32 = 10_000;

/// Splits `text` into the number at its start and the rest.
pub(super) fn split(text: &str) -> Option<(Decimal, &str)> {
    let bytes = text.as_bytes();
    let first = usize::from(bytes.first() == Some(&b'+'));
    let (mut at, mut digits, mut point) = (first, Vec::new(), None);
    // Describes the previous byte: an underscore must follow a digit, and so must a point, except at the start.
    let mut behind_digit = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' => digits.push(byte - b'0'),
            b'_' if behind_digit => {}
            b'.' if point.is_none() && (behind_digit || at == first) => point = Some(digits.len() as i32),
            _ => break,
        }
        behind_digit = byte.is_ascii_digit();
        at += 1;
    }
    if digits.is_empty() {
        return None;
    }
    let mut point = point.unwrap_or(digits.len() as i32);
    if let Some((exponent, end)) = exponent(bytes, at) {
        point += exponent;
        at = end;
    }
    Some((Decimal { digits, point }, text.get(at..)?))
}

/// Parses the exponent at offset `at`; returns it with the offset where it ends.
fn exponent(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    let (b'e' | b'E') = bytes.get(at)? else { return None };
    let sign = bytes.get(at + 1)?;
    let start = at + 1 + usize::from(matches!(sign, b'-' | b'+'));
    let digits = bytes.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit());
    let (mut value, mut end) = (0i32, start);
    for digit in digits {
        value = (value * 10 + i32::from(digit - b'0')).min(EXPONENT_LIMIT);
        end += 1;
    }
    (end > start).then_some((if *sign == b'-' { -value } else { value }, end))
}

impl Decimal {
    /// The nearest `f64` to the number times ten to the `power`; infinity if it is too large.
    pub(super) fn value(&self, power: i32) -> f64 {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let exponent = self.point - self.digits.len() as i32 + power;
        // Digits followed by an exponent always parse.
        format!("{digits}e{exponent}").parse().unwrap_or(f64::INFINITY)
    }

    /// The number times ten to the `power`, in whole units and billionths, rounded; saturates.
    pub(super) fn billionths(&self, power: i32) -> (u32, u32) {
        const LARGEST: (u32, u32) = (u32::MAX, 999_999_999);
        let point = self.point + power;
        let digit = |index: i32| {
            let digit = usize::try_from(index).ok().and_then(|index| self.digits.get(index));
            u64::from(digit.copied().unwrap_or(0))
        };
        let mut whole = 0u64;
        for index in 0..point.max(0) {
            whole = whole * 10 + digit(index);
            if whole > u64::from(u32::MAX) {
                return LARGEST;
            }
        }
        let mut fraction = (point..point + 9).fold(0, |fraction, index| fraction * 10 + digit(index));
        if digit(point + 9) >= 5 {
            fraction += 1;
        }
        let carry = fraction / 1_000_000_000;
        match u32::try_from(whole + carry) {
            Ok(whole) => (whole, (fraction % 1_000_000_000) as u32),
            Err(_) => LARGEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn numbers_in_every_notation() {
        for (text, expected) in [
            ("10", Some((10, 0))),
            ("1_0", Some((10, 0))),
            ("1_", Some((1, 0))),
            ("1__0", None),
            ("_1", None),
            ("1_.5", None),
            ("1._5", None),
            ("1.5_0", Some((1, 500_000_000))),
            ("+.5", Some((0, 500_000_000))),
            ("5.", Some((5, 0))),
            (".", None),
            ("-5", None),
            ("1e", None),
            ("1_0e1", Some((100, 0))),
            ("1e-3", Some((0, 1_000_000))),
            ("0.0000000005", Some((0, 1))),
            ("0.9999999996", Some((1, 0))),
            ("1e-99999999999", Some((0, 0))),
            ("4294967295", Some((u32::MAX, 0))),
            ("4294967295.9999999999", Some((u32::MAX, 999_999_999))),
            ("1e400", Some((u32::MAX, 999_999_999))),
        ] {
            let read = split(text).filter(|(_, rest)| rest.is_empty());
            assert_eq!(read.map(|(number, _)| number.billionths(0)), expected, "{text}");
        }
    }
}
