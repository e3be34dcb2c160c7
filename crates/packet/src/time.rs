//! Time: a point or a span in nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A point in time (since 1970 for wall-clock time, since any origin for steady time) or a span, in nanoseconds.
///
/// Arithmetic saturates: 292 years either side of zero are enough for real captures, and hostile timestamps must not
/// panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;

impl Timestamp {
    /// The origin, or no time at all.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Later than every other.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// From nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: i64) -> Timestamp {
        Timestamp(nanos)
    }

    /// From microseconds.
    pub const fn from_micros(micros: i64) -> Timestamp {
        Timestamp(micros.saturating_mul(1_000))
    }

    /// From milliseconds.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis.saturating_mul(1_000_000))
    }

    /// From whole seconds and nanoseconds that follow them.
    pub const fn from_parts(seconds: i64, nanos: u32) -> Timestamp {
        Timestamp(seconds.saturating_mul(SECOND).saturating_add(nanos as i64))
    }

    /// From seconds; not a number counts as zero.
    pub fn from_seconds(seconds: f64) -> Timestamp {
        Timestamp((seconds * SECOND as f64) as i64)
    }

    /// Nanoseconds.
    #[inline]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Microseconds, rounded down.
    pub const fn micros(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Milliseconds, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Whole seconds, rounded down.
    #[inline]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(SECOND)
    }

    /// Nanoseconds after the whole second.
    pub const fn subsecond_nanos(self) -> u32 {
        self.0.rem_euclid(SECOND) as u32
    }

    /// The sum with its seconds in 32 bits, as Click keeps them: what is beyond 2038 comes round to 1901.
    #[must_use]
    pub const fn wrapping_add(self, other: Timestamp) -> Timestamp {
        let sum = Timestamp(self.0.saturating_add(other.0));
        Timestamp::from_parts(sum.seconds() as i32 as i64, sum.subsecond_nanos())
    }

    /// Seconds, as a fraction.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Whether this is the origin, which means "no time".
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Timestamp {
    type Output = Timestamp;
    #[inline]
    fn add(self, other: Timestamp) -> Timestamp {
        Timestamp(self.0.saturating_add(other.0))
    }
}

impl Sub for Timestamp {
    type Output = Timestamp;
    #[inline]
    fn sub(self, other: Timestamp) -> Timestamp {
        Timestamp(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Timestamp {
    fn add_assign(&mut self, other: Timestamp) {
        *self = *self + other;
    }
}

impl SubAssign for Timestamp {
    fn sub_assign(&mut self, other: Timestamp) {
        *self = *self - other;
    }
}

impl Neg for Timestamp {
    type Output = Timestamp;
    fn neg(self) -> Timestamp {
        Timestamp(self.0.saturating_neg())
    }
}

/// Seconds with nine decimals; `{:.6}` prints microseconds, rounded down.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(9).clamp(1, 9);
        let unit = 10u64.pow(9 - digits as u32);
        let size = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (seconds, rest) = (size / SECOND as u64, size % SECOND as u64 / unit);
        write!(f, "{sign}{seconds}.{rest:0digits$}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn displays_seconds() {
        assert_eq!(Timestamp::from_parts(3, 25).to_string(), "3.000000025");
        assert_eq!(std::format!("{:.6}", Timestamp::from_parts(3, 25_999)), "3.000025");
        assert_eq!((-Timestamp::from_millis(1_500)).to_string(), "-1.500000000");
    }

    #[test]
    fn seconds_wrap_where_it_is_asked_for() {
        let (far, behind) = (Timestamp::from_parts(2_000_000_000, 1), Timestamp::from_parts(-294_967_296, 2));
        assert_eq!(far.wrapping_add(far), behind);
        assert_eq!(behind.wrapping_add(Timestamp::ZERO), behind);
    }

    #[test]
    fn saturates() {
        assert_eq!(Timestamp::MAX + Timestamp::from_nanos(1), Timestamp::MAX);
        assert_eq!(Timestamp::from_parts(i64::MAX, 5), Timestamp::MAX);
    }
}
