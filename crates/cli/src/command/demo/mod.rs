//! `clickbox demo`: the program at work, with nothing to set up.

mod boxes;
mod chain;
mod choice;
mod engine;
mod report;
mod sample;
mod summary;

pub(crate) use choice::{Arguments, run};
