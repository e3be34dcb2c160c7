//! `clickbox bench flow-table`: lookups in the flow table.

use bench::lookups::lookups;
use bench::{Rows, Table};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Measure the processor time of lookups in the flow table, in nanoseconds a packet.
///
/// Reads the match fields of frames of 60 bytes (extract), and finds their flow entries through the exact-match cache
/// (lookup), in batches of 32 packets of random flows. Also measures lookups that are not cached (insert), and lookups
/// while an entry is added or removed for every 200 packets (changing), with the share of packets whose cached decision
/// stayed valid (hits).
#[derive(Args)]
#[command(after_help = "Example: clickbox bench flow-table --flows 60000,1000000")]
pub(super) struct Arguments {
    /// Numbers of flows.
    #[arg(long, value_delimiter = ',', default_value = "60000,1000000", value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    flows: Vec<u32>,
    /// Number of flow entries.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rules: u32,
    /// Number of runs; the figures are those of the fastest.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let measured = self.flows.iter().map(|flows| lookups(*flows, self.rules, self.runs));
        let rows = Rows { rows: measured.collect::<Result<Vec<_>, _>>().map_err(BenchError::Lookups)? };
        match self.json {
            true => output::json(&rows),
            false => output::text(&rows.table()),
        }
        Ok(())
    }
}
