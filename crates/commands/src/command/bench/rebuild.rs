//! `clickbox bench rebuild`: how long a fabric that was killed is rebuilt.

use api::Sandbox;
use bench::planes::rebuild;
use bench::{Rows, Table};
use clap::{Args, ValueEnum};

use super::error::BenchError;
use crate::output;

/// Measure how long the daemon takes to rebuild a fabric that was killed.
///
/// Starts a new daemon with a store in a temporary folder, a switch, and equal boxes there. Kills the fabric by SIGKILL,
/// again and again. `p50` and `max` are the times from the moment at which the daemon notices the end of the fabric until all
/// boxes run again; `away` the same from the kill.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench rebuild --boxes 1,20,100 --sandbox process")]
pub(super) struct Arguments {
    /// Numbers of boxes.
    #[arg(long, value_delimiter = ',', default_value = "1,20,100", value_parser = clap::value_parser!(u16).range(1..=1000))]
    boxes: Vec<u16>,
    /// Sandbox of the boxes. The default is vm if /dev/kvm is usable, else process.
    #[arg(long, value_enum)]
    sandbox: Option<SandboxName>,
    /// Number of kills.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum SandboxName {
    /// Virtual machines.
    Vm,
    /// Sandboxed processes.
    Process,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let program = std::env::current_exe().map_err(BenchError::Program)?;
        let sandbox = match self.sandbox {
            None => Sandbox::Auto,
            Some(SandboxName::Vm) => Sandbox::Vm,
            Some(SandboxName::Process) => Sandbox::Process,
        };
        let measured = self.boxes.iter().map(|boxes| rebuild(&program, sandbox, *boxes, self.runs));
        let rows = Rows { rows: measured.collect::<Result<Vec<_>, _>>()? };
        match self.json {
            true => output::json(&rows),
            false => output::text(&rows.table()),
        }
        Ok(())
    }
}
