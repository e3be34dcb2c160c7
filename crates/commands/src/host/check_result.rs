//! The result of a check.

use serde::Serialize;

/// The grade of a check result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grade {
    /// It works.
    Good,
    /// It works, but not as well as it could.
    Limited,
    /// It does not work.
    Missing,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CheckResult {
    /// Name of the check.
    pub(crate) name: &'static str,
    /// The grade.
    pub(crate) grade: Grade,
    /// What the check found.
    pub(crate) found: String,
    /// What to do about it; empty if nothing.
    pub(crate) advice: String,
}

impl CheckResult {
    /// Creates a result that needs no action.
    pub(crate) fn good(name: &'static str, found: impl Into<String>) -> CheckResult {
        CheckResult { name, grade: Grade::Good, found: found.into(), advice: String::new() }
    }

    /// Creates a result with a limitation.
    pub(crate) fn limited(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> CheckResult {
        CheckResult { name, grade: Grade::Limited, found: found.into(), advice: advice.into() }
    }

    /// Creates a result for something that does not work.
    pub(crate) fn missing(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> CheckResult {
        CheckResult { name, grade: Grade::Missing, found: found.into(), advice: advice.into() }
    }
}
