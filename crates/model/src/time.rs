//! Points in time.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use crate::text::as_text;

/// A point in time by the daemon's clock, in milliseconds; written as in RFC 3339: `2026-01-31T12:00:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(SystemTime);

/// Text that is not a valid point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeError;

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time is written as in 2026-01-31T12:00:00.000Z")
    }
}

impl std::error::Error for TimeError {}

impl Time {
    /// The current time.
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// As system time.
    pub fn system(self) -> SystemTime {
        self.0
    }
}

impl From<SystemTime> for Time {
    /// Truncates to whole milliseconds; times outside the years 1970 to 9999 become the nearer limit.
    fn from(time: SystemTime) -> Self {
        /// 9999-12-31T23:59:59Z, the last second that RFC 3339 can represent.
        const LAST: u64 = 253_402_300_799;
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let whole = Duration::new(since.as_secs().min(LAST), since.subsec_millis() * 1_000_000);
        Self(SystemTime::UNIX_EPOCH + whole)
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        humantime::parse_rfc3339(text).map(Self::from).map_err(|_| TimeError)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(self.0).fmt(f)
    }
}

as_text!(
    Time,
    "Time",
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$",
    "A point in time by the daemon's clock, as in RFC 3339, in UTC."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        let text = "2026-01-31T12:00:00.007Z";
        assert_eq!(text.parse::<Time>().map(|time| time.to_string()), Ok(text.to_string()));
        assert_eq!("yesterday".parse::<Time>(), Err(TimeError));
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(Time::from(before).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
