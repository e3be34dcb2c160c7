//! `clickbox bench controller`: changes of flow entries by an OpenFlow controller.

use bench::planes::{RuleChangesScope, rule_changes};
use bench::{Rows, Table};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Measure how many flow entries an OpenFlow controller changes in a second, while packets pass.
///
/// Starts a new daemon with a store in a temporary folder, a steering switch, and services without instances. A controller at
/// 127.0.0.1 adds entries for source ports of UDP, and one for all packets; all lead to one port. A box sends packets of random flows.
/// Meanwhile the controller adds and removes entries for other source ports, in turn, of a higher priority, and waits for the
/// answer to a barrier after each batch of changes. Also prints the share of packets whose decision the flow cache had (hits), and
/// the packets that were lost.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench controller --rules 10000 --services 1000 --batch 1,100")]
pub(super) struct Arguments {
    /// Number of flow entries that stay.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    rules: u32,
    /// Number of services.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    services: u32,
    /// Number of flows.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    flows: u32,
    /// Packets a second.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Number of changes.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    changes: u32,
    /// Changes for each barrier.
    #[arg(long, value_delimiter = ',', default_value = "1,100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: Vec<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let program = std::env::current_exe().map_err(BenchError::Program)?;
        let Self { rules, services, flows, rate, changes, .. } = *self;
        let scope = |batch: &u32| RuleChangesScope { rules, services, flows, rate, changes, batch: *batch };
        let measured = self.batch.iter().map(|batch| rule_changes(&program, scope(batch)));
        let rows = Rows { rows: measured.collect::<Result<Vec<_>, _>>()? };
        match self.json {
            true => output::json(&rows),
            false => output::text(&rows.table()),
        }
        Ok(())
    }
}
