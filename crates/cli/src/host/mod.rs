//! What this machine offers to boxes, as `clickbox doctor` shows it.

mod boxes;
mod capability;
mod check_result;
mod checks;

pub(crate) use check_result::{CheckResult, Grade};
pub(crate) use checks::{can_run, run};
