//! Benchmarks: of the engine, of boxes, of the daemon; and the report that shows them beside the papers' figures.
//!
//! - [`engine`] runs configurations in programs with Click's command line, this one and a peer, on the same capture.
//! - `boxes` measures start, packets, replies and memory of boxes on a [`TestBed`].
//! - `report` measures everything and makes a page of it.
//!
//! Each measurement returns a type that serialises to the fields that `clickbox bench` promises.
//!
//! Invariants:
//! - What is measured is what users get: boxes are made by `sandbox` or by a daemon, frames are moved by `switch` or by the
//!   host ports that it uses.
//! - A figure of boxes is the median of the runs of a [`SamplePlan`]. A figure of the engine is the minimum, since on a
//!   shared machine minima of two programs that run in turn are comparable and medians are not; the spread is beside it.
//! - Boxes run on one core and the code that feeds them on another, where there are two.
//!
//! Absent on purpose: the arguments of the commands, which are the program's; the daemon's code, which runs in a process
//! of its own.
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
