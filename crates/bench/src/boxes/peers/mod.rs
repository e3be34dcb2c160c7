//! Peers: DPDK's testpmd, and Open vSwitch. They move packets through chains of processes that memif connects, are at the other
//! end of ports, or are measured in place of the switch.

mod interfaces;
mod ovs;
mod ports;
mod process;
mod testpmd;

pub use interfaces::{InterfaceDriver, InterfaceRate, interface_rates};
pub use ovs::ovs_rate;
pub use ports::{PeerDriver, PeerRole, PortRate, port_rates};
pub use testpmd::testpmd_rate;

use crate::boxes::io::gbps;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded};
use serde::Serialize;
use std::path::Path;

/// The fewest rates that are measured. The first is left out, because the processes start during it.
const MIN_RATES: u32 = 3;

/// The rate of a peer's chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerRate {
    /// What was measured.
    pub peer: &'static str,
    /// Functions of the chain.
    pub chain: usize,
    /// Bytes of a frame.
    pub size: u16,
    /// Millions of packets per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
}

impl PeerRate {
    /// The median of these rates, in packets per second. The first is left out.
    fn of(peer: &'static str, chain: usize, size: u16, rates: &[f64]) -> Self {
        let mpps = median(rates.iter().skip(1).map(|rate| rate / 1e6).collect());
        Self { peer, chain, size, mpps, gbps: gbps(mpps, size) }
    }
}

/// Rates to measure for these runs.
fn rates_of(plan: SamplePlan) -> u32 {
    plan.runs.max(MIN_RATES) + 1
}

/// A memif port that DPDK makes, with rings of 1024 slots.
fn memif(number: usize, is_server: bool, socket: &Path) -> String {
    let role = if is_server { "server" } else { "client" };
    format!("net_memif{number},role={role},id=0,socket={},socket-abstract=no,rsize=10", socket.display())
}
