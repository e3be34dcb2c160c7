//! Lists of the system calls that a process may make, which the kernel enforces (seccomp).
//!
//! Each process has its own list, beside its code: the daemon, the fabric, and the spawner of boxes.
//!
//! Invariants:
//! - What is not in a list ends the process. A process that does what it never should is not to be trusted with an error.
//! - A list holds for all threads of the process, for those that it starts later, and for its children.
//!
//! Absent on purpose: the lists themselves, and the filter of boxes, which the box image installs in itself.

#![forbid(unsafe_code)]

mod error;
mod filter;

pub use error::FilterError;
pub use filter::{Argument, Filter, Program};
