//! Medians and percentiles.

use serde::{Serialize, Serializer};
use std::time::Duration;

/// The median; for an even count the mean of the middle two; 0 for an empty list.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
    match numbers.len() % 2 {
        0 if middle > 0 => f64::midpoint(at(middle - 1), at(middle)),
        _ => at(middle),
    }
}

/// The minimum; 0 for an empty list.
pub(crate) fn minimum(numbers: &[f64]) -> f64 {
    numbers.iter().copied().min_by(f64::total_cmp).unwrap_or_default()
}

/// The percentile of sorted numbers.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}

/// Standard deviation divided by mean; 0 if the mean is 0.
pub(crate) fn spread(numbers: &[f64]) -> f64 {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
    if mean == 0.0 { 0.0 } else { variance.sqrt() / mean }
}

/// Serialises a figure with three decimals, which exceeds any measurement's precision.
pub(crate) fn rounded<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((number * 1e3).round() / 1e3)
}

/// The same for a figure that may be missing.
pub(crate) fn rounded_if_any<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(|number| (number * 1e3).round() / 1e3).serialize(serializer)
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Statistics of a repeated operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// The median.
    #[serde(serialize_with = "rounded")]
    pub p50: f64,
    /// The 99th percentile.
    #[serde(serialize_with = "rounded")]
    pub p99: f64,
    /// The maximum.
    #[serde(serialize_with = "rounded")]
    pub max: f64,
    /// The first.
    #[serde(serialize_with = "rounded")]
    pub first: f64,
    /// The last.
    #[serde(serialize_with = "rounded")]
    pub last: f64,
}

impl Times {
    /// From times in the order of measurement.
    pub(crate) fn of(times: &[f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            p50: percentile(&sorted, 50),
            p99: percentile(&sorted, 99),
            max: sorted.last().copied().unwrap_or_default(),
            first: times.first().copied().unwrap_or_default(),
            last: times.last().copied().unwrap_or_default(),
        }
    }

    /// The median of each figure over several runs.
    pub(crate) fn median(runs: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(runs.iter().map(figure).collect());
        Self {
            p50: of(|run| run.p50),
            p99: of(|run| run.p99),
            max: of(|run| run.max),
            first: of(|run| run.first),
            last: of(|run| run.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_match_their_definitions() {
        let times: Vec<f64> = (0..100).rev().map(f64::from).collect();
        let expected = Times { p50: 50.0, p99: 99.0, max: 99.0, first: 99.0, last: 0.0 };
        assert_eq!(Times::of(&times), expected);
        assert_eq!(Times::of(&[]), Times::default());
        assert_eq!(Times::median(&[expected, Times::default(), expected]), expected);
        let cases = [(vec![], 0.0), (vec![3.0], 3.0), (vec![4.0, 1.0], 2.5), (vec![9.0, 1.0, 2.0], 2.0)];
        for (numbers, expected) in cases {
            assert_eq!(median(numbers.clone()), expected, "{numbers:?}");
        }
        assert_eq!((spread(&[2.0, 2.0]), spread(&[1.0, 3.0]), spread(&[])), (0.0, 0.5, 0.0));
    }
}
