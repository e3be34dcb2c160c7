//! Boxes from their definition to their end.

mod account;
mod attaching;
mod boot;
mod check;
mod check_slots;
mod ended_flows;
mod exit;
mod exit_events;
mod function_server;
mod functions;
mod handover;
mod launch;
mod measure;
mod monitor;
mod of_service;
mod operations;
mod prepare;
mod report;
mod silence;
mod state;
mod switching;
mod template;
mod throttle;
mod writes;

pub(crate) use account::AccountFilter;
pub(crate) use boot::StartSettings;
pub use state::{Fabric, StartError};
