//! `clickbox demo`: a demonstration without any setup.

mod boxes;
mod chain;
mod choice;
mod engine;
mod error;
mod report;
mod sample;
mod summary;

pub(crate) use choice::{Arguments, run};
pub(crate) use error::DemoError;
