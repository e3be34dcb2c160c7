//! Measures boxes: how fast they start, answer and move packets, and what they take.
//!
//! Each measurement is a function that makes its boxes on a [`TestBed`], runs them as often as an [`SamplePlan`]
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
