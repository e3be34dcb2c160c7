//! The host's support for boxes, as shown by `clickbox doctor`.

mod boxes;
mod capability;
mod check_result;
mod checks;

pub(crate) use check_result::{CheckResult, Grade};
pub(crate) use checks::{can_run, run};
