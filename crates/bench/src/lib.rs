//! Benchmarks of the engine, of boxes and of the daemon, and a report that compares them with the papers' figures.
//!
//! - [`engine`] runs configurations in programs with Click's command line, this one and a peer, on the same capture.
//! - `boxes` measures start, packets, responses and memory of boxes on a [`TestBed`].
//! - `report` runs all measurements and renders them as a page.
//!
//! Each measurement returns a type that serialises to the documented fields of `clickbox bench`.
//!
//! Invariants:
//! - Measurements use the production code: boxes are created by `sandbox` or by a daemon, frames are moved by `switch`
//!   or by the host ports that it uses.
//! - A figure of boxes is the median of the runs of a [`SamplePlan`]. A figure of the engine is the minimum, given with
//!   its spread, because on a shared machine minima of two programs that run alternately are comparable and medians are
//!   not.
//! - Boxes run on one core and the code that feeds them on another, if there are two.
//!
//! Absent: the arguments of the commands, which are in the program; the daemon's code, which runs in a separate
//! process.
#![forbid(unsafe_code)]

mod boxes;
pub mod engine;
mod error;
mod report;
mod sample_plan;
mod statistics;
mod tables;

pub use boxes::{
    Backend, Boot, BootSteps, BoxProgram, Chain, DaemonBoot, Density, IdleMode, Interconnect, Io, IoMode,
    Latency, LatencyRow, Memory, NeighbourLoad, RingMemory, State, StateRow, TableMemory, TestBed,
    Transaction, Trial, boot, chain, density, io, latency, memory, state, trial,
};
pub use error::MeasureError;
pub use report::{Machine, Report, ReportScope, page, report};
pub use sample_plan::SamplePlan;
pub use sandbox::thread::{Entry, Start};
pub use statistics::Times;
pub use tables::{Rows, Table};
