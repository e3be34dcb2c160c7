//! The operations of the daemon: each operation of the API is a method of [`Supervisor`].

mod boot;
mod boxes;
mod check;
mod check_slots;
mod claims;
mod configurations;
mod confirmation;
mod diff;
mod exit;
mod exit_events;
mod handlers;
mod lifecycle;
mod maintenance;
mod measure;
mod monitor;
mod operation;
mod pending_confirmation;
mod rate_meter;
mod restore;
#[cfg(test)]
mod simulation;
mod stacks;
mod state;
mod status;
mod streams;
mod switches;
mod template;
mod throttle;

pub use state::{StartError, Supervisor};
pub(crate) use streams::{Capture, HistoryReader};
