//! Measures boxes: how fast they start, answer and move packets, and what they take.
//!
//! Each measurement is a function that makes its boxes on a [`Stand`], runs them as often as an [`Effort`]
//! says, and returns medians in a type that serialises to the fields that `clickbox bench` promises.
//!
//! Invariants:
//! - What is measured is what users get: boxes are made by `sandbox`, frames are moved by `switch` or by
//!   the same host ends of ports that it uses.
//! - A figure is the median of its runs, never the best of them.
//! - Boxes run on one core, what feeds them on another, where there are two.
//!
//! Absent on purpose: the engine on its own, without a box around it (`clickbox bench engine`), and
//! printing.
#![forbid(unsafe_code)]

mod boot;
mod chain;
mod density;
mod effort;
mod error;
mod io;
mod latency;
mod line;
mod memory;
mod program;
mod report;
mod stand;
mod state;
mod statistics;
mod trial;
mod wiring;

pub use boot::{Boot, BootSteps, boot};
pub use chain::{Chain, Joint, chain};
pub use density::{Density, density};
pub use effort::Effort;
pub use error::Error;
pub use io::{Io, Mode, io};
pub use latency::{Latency, LatencyRow, Load, Waiting, latency};
pub use memory::{Memory, RingMemory, TableMemory, memory};
pub use program::Inside;
pub use report::{Machine, Report, Scope, page, report};
pub use sandbox::thread::{Entry, Start};
pub use stand::{Kind, Stand};
pub use state::{State, StateRow, Transaction, state};
pub use statistics::Times;
pub use trial::{Trial, trial};
