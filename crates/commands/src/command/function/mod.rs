//! `clickbox function`: projects of network functions in Rust, WebAssembly, C and Python.

mod build;
mod dispatch;
mod error;
mod new;
mod program;
mod project;
mod sources;
mod test;

pub(crate) use dispatch::{Arguments, run};
pub(crate) use error::FunctionError;
