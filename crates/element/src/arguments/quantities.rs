//! Bandwidths, rates and time spans.

use packet::Timestamp;

use crate::error::ArgumentError;

use super::decimal;
use super::parser::FromArgument;
use super::setup::Setup;

/// A bandwidth in bytes a second. Text: a number of bytes, or a number with `bps` (bits) or `Bps` (bytes), optionally
/// prefixed by `k`, `M` or `G`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth(pub f64);

/// A rate per second, written as a plain number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

fn prefix(unit: &str) -> (f64, &str) {
    let scale = match unit.bytes().next() {
        Some(b'k' | b'K') => 1e3,
        Some(b'M' | b'm') => 1e6,
        Some(b'G' | b'g') => 1e9,
        _ => return (1.0, unit),
    };
    (scale, &unit[1..])
}

impl FromArgument for Bandwidth {
    const KIND: &'static str = "bandwidth";

    fn from_argument(text: &str, _: &Setup) -> Result<Bandwidth, ArgumentError> {
        let (number, unit) = decimal::split(text).ok_or(ArgumentError::Syntax)?;
        let (scale, unit) = prefix(unit.trim_start());
        let value = number.value(0) * scale;
        let value = match unit {
            "" if scale == 1.0 => value,
            "bps" | "b/s" | "baud" => value / 8.0,
            "Bps" | "B/s" | "" => value,
            _ => return Err(ArgumentError::Syntax),
        };
        if value >= f64::from(u32::MAX) + 0.5 {
            return Err(ArgumentError::new("out of range"));
        }
        Ok(Bandwidth(value))
    }
}

/// A number that is not negative, in Click's notation: underscores and exponents are allowed. It may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Real(pub f64);

impl FromArgument for Real {
    const KIND: &'static str = "real number";

    fn from_argument(text: &str, _: &Setup) -> Result<Real, ArgumentError> {
        let number = decimal::split(text).filter(|(_, rest)| rest.is_empty());
        number.map(|(number, _)| Real(number.value(0))).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Rate {
    const KIND: &'static str = "rate";

    fn from_argument(text: &str, _: &Setup) -> Result<Rate, ArgumentError> {
        let (number, unit) = decimal::split(text).ok_or(ArgumentError::Syntax)?;
        let (scale, unit) = prefix(unit.trim_start());
        let rate = Rate(number.value(0) * scale);
        (rate.0.is_finite() && matches!(unit, "" | "pps" | "/s")).then_some(rate).ok_or(ArgumentError::Syntax)
    }
}

impl FromArgument for Timestamp {
    const KIND: &'static str = "time";

    fn from_argument(text: &str, _: &Setup) -> Result<Timestamp, ArgumentError> {
        let (seconds, nanos) = time(text).ok_or(ArgumentError::Syntax)?;
        Ok(Timestamp::from_parts(seconds.into(), nanos))
    }
}

/// A time span that may be negative. As in Click, the fraction is always added: `-1.5` is -0.5 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedTime(pub Timestamp);

impl FromArgument for SignedTime {
    const KIND: &'static str = "time";

    fn from_argument(text: &str, setup: &Setup) -> Result<SignedTime, ArgumentError> {
        let Some(size) = text.strip_prefix('-') else {
            return Timestamp::from_argument(text, setup).map(SignedTime);
        };
        let (seconds, nanos) = time(size).filter(|_| !size.starts_with('+')).ok_or(ArgumentError::Syntax)?;
        Ok(SignedTime(Timestamp::from_parts(-i64::from(seconds), nanos)))
    }
}

/// Time units: the name, then the power of ten and the factor that convert to seconds. The first matching name wins.
const UNITS: [(&str, i32, u32); 8] = [
    ("day", 2, 864),
    ("d", 2, 864),
    ("hr", 2, 36),
    ("h", 2, 36),
    ("min", 1, 6),
    ("m", 1, 6),
    ("sec", 0, 1),
    ("s", 0, 1),
];

/// Parses seconds and nanoseconds. As in Click, seconds have 32 bits, so a larger time wraps.
fn time(text: &str) -> Option<(i32, u32)> {
    let unit =
        UNITS.iter().find_map(|(name, power, factor)| Some((text.strip_suffix(name)?, *power, *factor)));
    let (number, power, factor) = match unit {
        None => (text, 0, 1),
        Some((rest, power, factor)) => {
            let prefix = [("m", -3), ("u", -6), ("n", -9)]
                .iter()
                .find_map(|(prefix, smaller)| Some((rest.strip_suffix(prefix)?, power + smaller)));
            let (rest, power) = prefix.unwrap_or((rest, power));
            (rest.trim_end_matches(|letter: char| letter.is_ascii_whitespace()), power, factor)
        }
    };
    let (number, _) = decimal::split(number).filter(|(_, rest)| rest.is_empty())?;
    let (seconds, nanos) = number.billionths(power);
    // Factors above 1 wrap as well.
    let nanos = nanos.wrapping_mul(factor);
    let carry = nanos / 1_000_000_000;
    Some((seconds.wrapping_mul(factor).wrapping_add(carry) as i32, nanos % 1_000_000_000))
}
