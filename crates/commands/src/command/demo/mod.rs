//! `clickbox demo`: a demonstration without any setup.

mod boxes;
mod chain;
mod dispatch;
mod engine;
mod error;
mod namespace;
mod network;
mod private_daemon;
mod probe;
mod report;
mod sample;
mod stacks;
mod summary;

pub(crate) use dispatch::{Arguments, run};
pub(crate) use error::DemoError;
