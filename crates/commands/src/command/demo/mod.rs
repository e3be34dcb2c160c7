//! `clickbox demo`: a demonstration without any setup.

mod boxes;
mod chain;
mod dispatch;
mod engine;
mod error;
mod private_daemon;
mod report;
mod sample;
mod summary;

pub(crate) use dispatch::{Arguments, run};
pub(crate) use error::DemoError;
