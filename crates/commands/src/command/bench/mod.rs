//! `clickbox bench`: measurements of this program, alone or compared with another.

mod boxes;
mod dispatch;
mod engine;
mod error;
mod interfaces;
mod kills;
mod lookups;
mod outage;
mod owners;
mod rebuild;
mod rule_changes;
mod shards;

pub(crate) use dispatch::{Arguments, run};
pub(crate) use error::BenchError;
