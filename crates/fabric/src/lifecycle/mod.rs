//! Boxes from their definition to their end.

mod boot;
mod check;
mod check_slots;
mod exit;
mod exit_events;
mod measure;
mod monitor;
mod operations;
mod report;
mod state;
mod switching;
mod template;
mod throttle;

pub use state::{Fabric, StartError};
