//! `function`: the ports of a network function in a process or container that attached itself.

mod error;
mod memory;
mod port;

pub use error::FunctionError;
pub use port::{FunctionEnds, FunctionPort};
