//! `clickbox fabric`: the process that holds boxes, and commands about it.

mod control;
mod run;

pub(crate) use run::{Arguments, run};
