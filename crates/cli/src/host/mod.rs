//! What this machine offers to boxes, as `clickbox doctor` tells it.

mod capability;
mod checks;
mod finding;
mod trial;

pub(crate) use checks::{can_run, findings};
pub(crate) use finding::{Finding, Grade};
