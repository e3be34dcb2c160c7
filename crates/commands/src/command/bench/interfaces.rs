//! `clickbox bench interfaces`: a switch between two network interfaces.

use std::path::PathBuf;
use std::time::Duration;

use bench::{InterfaceDriver, Rows, SamplePlan, Table};
use clap::{Args, ValueEnum};

use super::error::BenchError;
use crate::output;

/// Measure a switch between two network interfaces, and Open vSwitch with XDP sockets in the same run.
///
/// The interfaces are ends of veth pairs in a network namespace that exists during the measurement; this needs root's privileges
/// and `ip`. On one core, the kernel makes frames of 64 bytes and receives them at the first interface. A switch on another core
/// sends them by the second one, behind which they are counted and dropped. The source makes more frames than a switch takes.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench interfaces\n          clickbox bench interfaces --driver af_xdp --ovs /usr/lib/openvswitch-switch/ovs-vswitchd"
)]
pub(super) struct Arguments {
    /// Drivers of the switch's ports.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "af_xdp,af_packet")]
    driver: Vec<DriverName>,
    /// Measure this `ovs-vswitchd` too. The other programs of Open vSwitch are found by PATH
    #[arg(long, value_name = "PROGRAM", value_hint = clap::ValueHint::ExecutablePath)]
    ovs: Option<PathBuf>,
    /// Number of runs, in which the switches take turns; the figures are medians and maxima.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Duration of a run.
    #[arg(long, default_value_t = 1000, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    time: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum DriverName {
    /// XDP sockets.
    AfXdp,
    /// Packet sockets.
    AfPacket,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let drivers = self.driver.iter().map(|driver| match driver {
            DriverName::AfXdp => InterfaceDriver::AfXdp,
            DriverName::AfPacket => InterfaceDriver::AfPacket,
        });
        let drivers: Vec<_> = drivers.collect();
        let plan = SamplePlan { runs: self.runs, time: Duration::from_millis(self.time) };
        let rows = Rows { rows: bench::interface_rates(&drivers, self.ovs.as_deref(), plan)? };
        match self.json {
            true => output::json(&rows),
            false => output::text(&rows.table()),
        }
        Ok(())
    }
}
