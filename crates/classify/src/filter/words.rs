//! Splits the text of a rule into words, and parses literals.

use alloc::vec::Vec;

use crate::names::Names;

/// Splits `text` into words: runs of name characters, one- and two-character operators, other single characters.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let bytes = rest.as_bytes();
        let length = match first {
            '&' | '|' if bytes.get(1) == bytes.first() => 2,
            '<' | '>' | '!' | '=' if bytes.get(1) == Some(&b'=') => 2,
            _ => rest.find(|c| !is_name(c)).unwrap_or(rest.len()).max(first.len_utf8()),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | '@' | '_' | ':')
}

/// Parses a non-negative integer: decimal, `0x` hexadecimal, `0b` binary or `0` octal, with `_` between digits.
pub(super) fn unsigned(word: &str) -> Option<u32> {
    if word.contains('_') {
        let apart = !word.starts_with('_') && !word.ends_with('_') && !word.contains("__");
        return if apart { unsigned(&word.replace('_', "")) } else { None };
    }
    let (digits, radix) = match word.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&word[2..], 16),
        [b'0', b'b' | b'B', _, ..] => (&word[2..], 2),
        [b'0', _, ..] => (&word[1..], 8),
        _ => (word, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

/// Parses a signed 32-bit integer into its two's complement.
pub(super) fn signed(word: &str) -> Option<u32> {
    match word.strip_prefix('-') {
        Some(digits) => unsigned(digits).filter(|n| *n <= 1 << 31).map(u32::wrapping_neg),
        None => unsigned(word.strip_prefix('+').unwrap_or(word)).filter(|n| *n < 1 << 31),
    }
}

/// Parses an IPv4 address or the name of one.
pub(super) fn address(word: &str, names: &dyn Names) -> Option<u32> {
    match dotted(word) {
        Some((address, 4)) => Some(address),
        _ => names.address(word),
    }
}

/// Parses an IPv4 prefix `ADDRESS/BITS` or `ADDRESS/MASK`, or the name of one, into address and mask.
pub(super) fn prefix(word: &str, names: &dyn Names) -> Option<(u32, u32)> {
    with_slash(word, names).or_else(|| names.prefix(word))
}

fn with_slash(word: &str, names: &dyn Names) -> Option<(u32, u32)> {
    let (left, right) = word.rsplit_once('/')?;
    let (address, count) = dotted(left).or_else(|| names.address(left).map(|address| (address, 4)))?;
    let decimal = right.bytes().all(|b| b.is_ascii_digit()).then(|| right.parse().ok()).flatten();
    let mask = match decimal {
        Some(bits @ 0..=32) => high_bits(bits),
        _ => self::address(right, names)?,
    };
    // A mask must not cover bytes that the address omits.
    (count == 4 || mask & !high_bits(count * 8) == 0).then_some((address, mask))
}

fn high_bits(count: u32) -> u32 {
    u32::MAX.checked_shl(32 - count).unwrap_or(0)
}

/// Parses one to four decimal bytes separated by dots. Returns the bytes, left-aligned, and their number.
fn dotted(word: &str) -> Option<(u32, u32)> {
    let (mut address, mut count) = (0, 0);
    for part in word.split('.') {
        let short = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let byte = if short { part.parse::<u8>().ok()? } else { return None };
        if count == 4 {
            return None;
        }
        address |= u32::from(byte) << (24 - 8 * count);
        count += 1;
    }
    Some((address, count))
}

/// Parses an Ethernet address or the name of one.
pub(super) fn ethernet(word: &str, names: &dyn Names) -> Option<[u8; 6]> {
    written_ethernet(word).or_else(|| names.ethernet(word))
}

fn written_ethernet(word: &str) -> Option<[u8; 6]> {
    let separator = word.chars().find(|c| matches!(c, ':' | '-'))?;
    let mut bytes = [0; 6];
    let mut parts = word.split(separator);
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() <= 2 && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NoNames;

    #[test]
    fn operators_and_names_are_words() {
        let words = split(" src  host!=10.0.0.1/8&&(tcp[13:1]&0x12>=2)||a-b:c ?x=é");
        let expected = [
            "src",
            "host",
            "!=",
            "10.0.0.1/8",
            "&&",
            "(",
            "tcp",
            "[",
            "13:1",
            "]",
            "&",
            "0x12",
            ">=",
            "2",
            ")",
            "||",
            "a-b:c",
            "?",
            "x",
            "=",
            "é",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn literals() {
        let names = &NoNames;
        assert_eq!(unsigned("0x1F"), Some(31));
        assert_eq!(unsigned("017"), Some(15));
        assert_eq!((unsigned("-1"), unsigned("1_000"), unsigned("_1")), (None, Some(1000), None));
        assert_eq!(signed("-1"), Some(u32::MAX));
        assert_eq!(signed("2147483648"), None);
        assert_eq!(address("1.2.3.4", names), Some(0x0102_0304));
        assert_eq!(address("1.2.3", names), None);
        assert_eq!(address("1.2.3.256", names), None);
        assert_eq!(prefix("10.0.0/24", names), Some((0x0a00_0000, 0xffff_ff00)));
        assert_eq!(prefix("10.0.0/25", names), None);
        assert_eq!(prefix("10.0.0.0/255.0.255.0", names), Some((0x0a00_0000, 0xff00_ff00)));
        assert_eq!(prefix("1.1.1.1/0", names), Some((0x0101_0101, 0)));
        assert_eq!(ethernet("0:1:2:3:a:FF", names), Some([0, 1, 2, 3, 10, 255]));
        assert_eq!(ethernet("0-1-2-3-4", names), None);
        assert_eq!(ethernet("0:1:2:3:4:5:6", names), None);
    }
}
