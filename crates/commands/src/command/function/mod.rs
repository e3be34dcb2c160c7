//! `clickbox function`: projects of network functions in Rust and C.

mod build;
mod c_project;
mod dispatch;
mod error;
mod new;
mod project;
mod sources;
mod test;

pub(crate) use dispatch::{Arguments, run};
pub(crate) use error::FunctionError;
