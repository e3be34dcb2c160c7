//! Benchmarks of the engine, of boxes and of the daemon, and a report that compares them with the papers' figures.
//!
//! - [`engine`] runs configurations in two programs with Click's command line, this one and a peer, on the same
//!   capture.
//! - `boxes` measures start times, packet rates, response times and memory of boxes on a [`TestBed`].
//! - [`kills`] kills the processes of a daemon, and checks that nothing acknowledged is lost.
//! - [`planes`] counts the packets that are lost while the daemon is killed or upgraded, and measures how long a fabric is
//!   rebuilt, how owners share a host, and how fast a controller changes flow entries.
//! - [`lookups`] measures lookups in the flow table.
//! - `report` runs all measurements and renders them as a page.
//!
//! Each measurement returns a type that serialises to the documented fields of `clickbox bench`.
//!
//! Invariants:
//! - Measurements use the production code: boxes are created by `sandbox` or by a daemon, frames are moved by `switch`
//!   or by the host ports that it uses.
//! - A figure of boxes is the median of the runs of a [`SamplePlan`].
//! - A figure of the engine is the minimum of its runs, given with the spread. Two programs run alternately; on a
//!   shared machine, their minima are comparable and their medians are not.
//! - If there are two cores, boxes run on one, and the code that feeds them on the other.
//!
//! Absent: command-line arguments, which are in `commands`; the daemon's code, which runs in a separate process.
#![forbid(unsafe_code)]

mod boxes;
pub mod engine;
mod error;
pub mod kills;
pub mod lookups;
pub mod planes;
mod report;
mod sample_plan;
mod statistics;
mod tables;
mod temporary_folder;

pub use boundary::PlatformKind;
pub use boxes::{
    Boot, BootSteps, BoxProgram, Chain, Create, DaemonBoot, Density, IdleMode, Interconnect, InterfaceDriver,
    InterfaceRate, Io, IoMode, Latency, LatencyRow, LatencyTimes, Lookup, Memory, NeighbourLoad, OwnCores,
    PAPER_FUNCTIONS, PacketSizes, PeerDriver, PeerRate, PeerRole, PortRate, RingMemory, RuleGap, RuleGaps,
    RuleWrites, State, StateRow, SteeringRate, SteeringResults, SteeringScope, TableMemory, TestBed,
    Transaction, Trial, boot, chain, create, density, interface_rates, io, latency, memory, ovs_rate,
    own_cores, port_rates, rule_writes, state, steering_rates, testpmd_rate, trial,
};
pub use error::MeasureError;
pub use report::{Machine, Report, ReportScope, page, report};
pub use sample_plan::SamplePlan;
pub use sandbox::thread::{Entry, Start};
pub use statistics::Times;
pub use tables::{Rows, Table};
pub use temporary_folder::TemporaryFolder;
