//! Measures the engine, alone or beside another Click-compatible program.

mod example;
mod measure;
mod traffic;

pub(crate) use example::EXAMPLES;
pub(crate) use measure::{Program, Trouble, median};
pub(crate) use traffic::{Load, count_of, has, prepare};
