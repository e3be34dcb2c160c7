//! What a check found.

use serde::Serialize;

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grade {
    /// As it should be.
    Good,
    /// It works, but not as well as it could.
    Limited,
    /// It is not there.
    Missing,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CheckResult {
    /// What was looked at.
    pub(crate) name: &'static str,
    /// How good it is.
    pub(crate) grade: Grade,
    /// What was seen.
    pub(crate) found: String,
    /// How to get it, or what it takes; empty when nothing is to be done.
    pub(crate) advice: String,
}

impl CheckResult {
    /// All is well.
    pub(crate) fn good(name: &'static str, found: impl Into<String>) -> CheckResult {
        CheckResult { name, grade: Grade::Good, found: found.into(), advice: String::new() }
    }

    /// It could be better.
    pub(crate) fn limited(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> CheckResult {
        CheckResult { name, grade: Grade::Limited, found: found.into(), advice: advice.into() }
    }

    /// It is not there.
    pub(crate) fn missing(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> CheckResult {
        CheckResult { name, grade: Grade::Missing, found: found.into(), advice: advice.into() }
    }
}
