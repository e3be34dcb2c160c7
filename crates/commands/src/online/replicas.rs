//! Settings of services as users write them: numbers of instances, and times.

use api::{ReplicaRange, ReplicaRangeError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::value::ValueError;

/// A number of instances, or a range in which the load decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "replicas: expected a number of instances, or a range such as \"1-4\"")]
pub(crate) enum Replicas {
    /// This number.
    Fixed(u16),
    /// Between these numbers.
    Auto(ReplicaRange),
}

impl Replicas {
    /// What a service has.
    pub(crate) fn of(replicas: u16, auto: Option<ReplicaRange>) -> Self {
        auto.map_or(Self::Fixed(replicas), Self::Auto)
    }

    /// The number of instances at first, and the range.
    pub(crate) fn split(self) -> (u16, Option<ReplicaRange>) {
        match self {
            Self::Fixed(replicas) => (replicas, None),
            Self::Auto(range) => (range.min, Some(range)),
        }
    }
}

impl Default for Replicas {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl FromStr for Replicas {
    type Err = ReplicaRangeError;

    fn from_str(text: &str) -> Result<Self, ReplicaRangeError> {
        text.parse().map(Self::Fixed).or_else(|_| text.parse().map(Self::Auto))
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(replicas) => replicas.fmt(f),
            Self::Auto(range) => range.fmt(f),
        }
    }
}

/// A time in milliseconds, such as `200ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Milliseconds(pub(crate) u32);

impl FromStr for Milliseconds {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const ERROR: ValueError = ValueError::Form("a time, such as 200ms or 2s");
        let time = humantime::parse_duration(text).map_err(|_| ERROR)?;
        u32::try_from(time.as_millis()).map(Self).map_err(|_| ERROR)
    }
}

impl TryFrom<String> for Milliseconds {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error: ValueError| error.to_string())
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As `humantime` reads it, without spaces.
        let text = humantime::format_duration(Duration::from_millis(self.0.into())).to_string();
        f.write_str(&text.replace(' ', ""))
    }
}

impl From<Milliseconds> for String {
    fn from(time: Milliseconds) -> Self {
        time.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read_as_they_are_written() {
        for (text, expected) in [("3", (3, None)), ("2-4", (2, Some(ReplicaRange { min: 2, max: 4 })))] {
            let replicas: Replicas = text.parse().unwrap();
            assert_eq!((replicas.split(), replicas.to_string().as_str()), (expected, text));
        }
        for text in ["", "a", "4-2", "70000"] {
            assert!(text.parse::<Replicas>().is_err(), "{text}");
        }
        for text in ["200ms", "2s", "1m30s"] {
            assert_eq!(text.parse::<Milliseconds>().map(|time| time.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "5", "-1s", "99999d"] {
            assert!(text.parse::<Milliseconds>().is_err(), "{text}");
        }
    }
}
