//! Measurements of boxes: start, packets, responses, memory. Each creates its boxes on a [`TestBed`].

mod attach;
mod boot;
mod chain;
mod create;
mod daemon_boot;
mod density;
mod feed_port;
mod io;
mod latency;
mod memory;
mod peers;
mod plain_process;
mod rule_writes;
mod service_boot;
mod service_death;
mod state;
mod steering;
mod test_bed;
mod trial;
mod workload;

pub use boot::{Boot, BootSteps, boot};
pub use chain::{Chain, Interconnect, chain};
pub use create::{Create, create};
pub use daemon_boot::DaemonBoot;
pub use density::{Density, density};
pub use io::{Io, IoMode, io};
pub use latency::{IdleMode, Latency, LatencyRow, NeighbourLoad, latency};
pub use memory::{Memory, RingMemory, TableMemory, memory};
pub use peers::{
    InterfaceDriver, InterfaceRate, PeerDriver, PeerRate, PeerRole, PortRate, interface_rates, ovs_rate,
    port_rates, testpmd_rate,
};
pub use rule_writes::{RuleGap, RuleGaps, RuleWrites, rule_writes};
pub use state::{State, StateRow, Transaction, state};
pub use steering::{
    LatencyTimes, Lookup, OwnCores, PAPER_FUNCTIONS, PacketSizes, SteeringRate, SteeringResults,
    SteeringScope, own_cores, steering_rates,
};
pub use test_bed::TestBed;
pub use trial::{Trial, trial};
pub use workload::BoxProgram;
