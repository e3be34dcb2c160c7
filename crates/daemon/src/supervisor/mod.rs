//! The operations of the daemon: each operation of the API is a method of [`Supervisor`].

mod boot;
mod boxes;
mod check;
mod configurations;
mod confirmation;
mod diff;
mod exit;
mod handlers;
mod lifecycle;
mod monitor;
mod rate_meter;
mod restore;
mod stacks;
mod state;
mod status;
mod streams;
mod switches;
mod template;
mod throttle;

pub use state::{StartError, Supervisor};
pub(crate) use streams::{Capture, HistoryReader};
pub(crate) use throttle::CpuBudget;
