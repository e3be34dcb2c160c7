//! Measures the engine, alone or beside another Click-compatible program.

mod click_program;
mod example;
mod workload;

pub use click_program::{Program, Trouble, median};
pub use example::EXAMPLES;
pub use workload::{Load, count_of, has, prepare};
