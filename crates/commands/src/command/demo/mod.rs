//! `clickbox demo`: a demonstration without any setup.

mod boxes;
mod chain;
mod choice;
mod engine;
mod report;
mod sample;
mod summary;

pub(crate) use choice::{Arguments, run};
