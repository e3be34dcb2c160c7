//! Booleans and numbers.

use alloc::string::ToString;

use crate::error::ArgumentError;

use super::parser::FromArgument;
use super::setup::Setup;

impl FromArgument for bool {
    const KIND: &'static str = "boolean";

    fn from_argument(text: &str, _: &Setup) -> Result<bool, ArgumentError> {
        match text {
            "1" | "true" | "yes" | "t" | "y" => Ok(true),
            "0" | "false" | "no" | "f" | "n" => Ok(false),
            _ => Err(ArgumentError::Syntax),
        }
    }
}

/// Parses an integer in Click's notations: decimal, `0x`, `0b`, octal with a leading zero, underscores between digits.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(hex) = lower.strip_prefix("0x") {
        (16, hex)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (2, binary)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    if digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let mut value = 0i128;
    for digit in digits.chars().filter(|digit| *digit != '_') {
        value = value.saturating_mul(radix.into()).saturating_add(digit.to_digit(radix)?.into());
    }
    Some(if negative { -value } else { value })
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl FromArgument for $type {
            const KIND: &'static str = "integer";

            fn from_argument(text: &str, _: &Setup) -> Result<$type, ArgumentError> {
                let value = integer(text).ok_or_else(|| ArgumentError::new("invalid number"))?;
                let signed = <$type>::MIN != 0;
                if value < 0 && !signed {
                    return Err(ArgumentError::new("invalid number"));
                }
                let bound = if value < 0 { <$type>::MIN } else { <$type>::MAX };
                <$type>::try_from(value).map_err(|_| ArgumentError::OutOfRange(bound.to_string()))
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl FromArgument for f64 {
    const KIND: &'static str = "real number";

    fn from_argument(text: &str, _: &Setup) -> Result<f64, ArgumentError> {
        text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or(ArgumentError::Syntax)
    }
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn integers_in_every_notation() {
        for (text, value) in [
            ("10", Some(10)),
            ("-0x1F", Some(-31)),
            ("0b101", Some(5)),
            ("017", Some(15)),
            ("1_000", Some(1000)),
            ("0", Some(0)),
            ("", None),
            ("1__0", None),
            ("_1", None),
            ("0x", None),
            ("08", None),
            ("9z", None),
        ] {
            assert_eq!(integer(text), value, "{text}");
        }
    }
}
