//! Parses numbers in dumps.

/// Removes a number from the start of a text: decimal, hexadecimal with `0x`, octal with `0`. Overflow saturates.
pub(super) fn take(text: &mut &[u8]) -> Option<u32> {
    let (radix, digits) = match *text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => (16, rest),
        [b'0', rest @ ..] if rest.first().is_some_and(|b| (b'0'..=b'7').contains(b)) => (8, rest),
        all => (10, all),
    };
    take_radix(digits, radix).map(|(number, rest)| {
        *text = rest;
        number
    })
}

/// Removes a decimal number from the start of a text, including leading zeros.
pub(super) fn take_decimal(text: &mut &[u8]) -> Option<u32> {
    take_radix(text, 10).map(|(number, rest)| {
        *text = rest;
        number
    })
}

/// Removes a dotted IPv4 address from the start of a text.
pub(super) fn take_address(text: &mut &[u8]) -> Option<[u8; 4]> {
    let mut address = [0; 4];
    for (index, byte) in address.iter_mut().enumerate() {
        if index > 0 {
            *text = text.strip_prefix(b".")?;
        }
        *byte = u8::try_from(take_decimal(text)?).ok()?;
    }
    Some(address)
}

/// Parses a whole text as a number, in the formats of [`take`].
pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(text.get(2..)?, 16).ok(),
        [b'0', _, ..] => u64::from_str_radix(text.get(1..)?, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Parses a time in seconds. Digits beyond nanoseconds are truncated.
pub(super) fn seconds(text: &str) -> Option<packet::Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = fraction.bytes().chain(core::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Some(packet::Timestamp::from_parts(whole, nanos))
}

fn take_radix(text: &[u8], radix: u32) -> Option<(u32, &[u8])> {
    let length = text.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let (digits, rest) = text.split_at(length);
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().fold(0u32, |sum, digit| {
        sum.saturating_mul(radix).saturating_add(char::from(*digit).to_digit(radix).unwrap_or(0))
    });
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_numbers() {
        for (text, number, rest) in [
            ("12-", 12, "-"),
            ("0x1fz", 31, "z"),
            ("010", 8, ""),
            ("09", 9, ""),
            ("0xg", 0, "xg"),
            ("99999999999", u32::MAX, ""),
        ] {
            let mut left = text.as_bytes();
            assert_eq!((take(&mut left), left), (Some(number), rest.as_bytes()), "{text}");
        }
        assert_eq!(take(&mut &b"-1"[..]), None);
        assert_eq!(take_address(&mut &b"1.2.3.004,"[..]), Some([1, 2, 3, 4]));
        assert_eq!(take_address(&mut &b"1.2.3"[..]), None);
        assert_eq!(take_address(&mut &b"1.2.3.256"[..]), None);
        assert_eq!(
            (whole("0x10"), whole("010"), whole("10"), whole("-1"), whole("")),
            (Some(16), Some(8), Some(10), None, None)
        );
        assert_eq!(seconds("1.5").map(|t| t.nanos()), Some(1_500_000_000));
        assert_eq!(seconds(".0000000019").map(|t| t.nanos()), Some(1));
        assert_eq!((seconds("."), seconds("-1"), seconds("1.x")), (None, None, None));
    }
}
