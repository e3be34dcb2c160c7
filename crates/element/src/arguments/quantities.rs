//! Bandwidths, rates and spans of time.

use packet::Timestamp;

use super::parser::{FromArgument, Problem};
use super::setup::Setup;

/// Bytes a second. Text: a number of bytes, or one with `bps` (bits) or `Bps` (bytes) and perhaps `k`, `M`, `G`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth(pub f64);

/// Something a second, a plain number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

/// The number at the start of `text`, and the unit behind it.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, letter)| {
            let exponent = matches!(letter, 'e' | 'E')
                && text.get(at + 1..).is_some_and(|rest| {
                    rest.trim_start_matches(['+', '-']).starts_with(|next: char| next.is_ascii_digit())
                });
            !(letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-') || exponent)
        })
        .map_or(text.len(), |(at, _)| at);
    let value: f64 = text.get(..end)?.parse().ok()?;
    value.is_finite().then_some((value, text.get(end..)?.trim()))
}

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

    fn from_argument(text: &str, _: &Setup) -> Result<Bandwidth, Problem> {
        let (value, unit) =
            number_and_unit(text).filter(|(value, _)| *value >= 0.0).ok_or(Problem::Syntax)?;
        if unit.is_empty() {
            return Ok(Bandwidth(value));
        }
        let (scale, unit) = prefix(unit);
        match unit {
            "bps" | "b/s" | "baud" => Ok(Bandwidth(value * scale / 8.0)),
            "Bps" | "B/s" | "" => Ok(Bandwidth(value * scale)),
            _ => Err(Problem::Syntax),
        }
    }
}

impl FromArgument for Rate {
    const KIND: &'static str = "rate";

    fn from_argument(text: &str, _: &Setup) -> Result<Rate, Problem> {
        let (value, unit) =
            number_and_unit(text).filter(|(value, _)| *value >= 0.0).ok_or(Problem::Syntax)?;
        let (scale, unit) = prefix(unit);
        matches!(unit, "" | "pps" | "/s").then_some(Rate(value * scale)).ok_or(Problem::Syntax)
    }
}

impl FromArgument for Timestamp {
    const KIND: &'static str = "time";

    fn from_argument(text: &str, setup: &Setup) -> Result<Timestamp, Problem> {
        match SignedTime::from_argument(text, setup)?.0 {
            time if time < Timestamp::ZERO => Err(Problem::Syntax),
            time => Ok(time),
        }
    }
}

/// A span of time that may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedTime(pub Timestamp);

impl FromArgument for SignedTime {
    const KIND: &'static str = "time";

    fn from_argument(text: &str, _: &Setup) -> Result<SignedTime, Problem> {
        let (value, unit) = number_and_unit(text).ok_or(Problem::Syntax)?;
        let scale = match unit {
            "" | "s" | "sec" | "second" | "seconds" => {
                // Exact to the nanosecond, where a float is not.
                let number = &text.trim()[..text.trim().len() - unit.len()];
                let time = seconds(number.trim()).unwrap_or_else(|| Timestamp::from_seconds(value));
                return Ok(SignedTime(time));
            }
            "ms" | "msec" => 1e-3,
            "us" | "usec" => 1e-6,
            "ns" | "nsec" => 1e-9,
            "m" | "min" => 60.0,
            "h" | "hr" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return Err(Problem::Syntax),
        };
        Ok(SignedTime(Timestamp::from_nanos((value * scale * 1e9 + 0.5 * value.signum()) as i64)))
    }
}

fn seconds(text: &str) -> Option<Timestamp> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let nanos = fraction
        .bytes()
        .chain(core::iter::repeat(b'0'))
        .take(9)
        .fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let value = Timestamp::from_parts(whole, nanos);
    Some(if negative { -value } else { value })
}
