//! `clickbox bench kills`: kills daemon, launcher and fabric at random moments, and checks that nothing acknowledged is lost.

use std::time::SystemTime;

use bench::kills::{KillPlan, Kills, kills};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Kill daemon, launcher and fabric at random moments, and check that nothing acknowledged is lost.
///
/// Starts a daemon of its own with a store in a temporary folder. Two clients create, change and remove boxes, switches and
/// stacks, while processes are killed by SIGKILL. After each round, the daemon must have exactly what was acknowledged, with
/// or without the operations that were interrupted. Also prints how long rebuilding a killed fabric takes.
#[derive(Args)]
#[command(after_help = "Example: clickbox bench kills --count 1000")]
pub(super) struct Arguments {
    /// Number of rounds.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Number that decides all choices [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let clock = || SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
        let seed = self.seed.unwrap_or_else(clock);
        // First, so that a run that hangs can be repeated.
        eprintln!("clickbox: seed {seed}");
        let program = std::env::current_exe().map_err(BenchError::Program)?;
        let done = kills(&program, KillPlan { rounds: self.count, seed }).map_err(BenchError::Kills)?;
        match self.json {
            true => output::json(&done),
            false => output::text(&sentence(&done)),
        }
        Ok(())
    }
}

fn sentence(done: &Kills) -> String {
    let Kills { rounds, daemons, launchers, fabrics, acknowledged, interrupted, .. } = done;
    let rebuilt = done.rebuild_ms.as_ref().map_or(String::new(), |times| {
        format!(
            "rebuilding a fabric with {:.1} boxes: median {:.1} ms, 99 of 100 within {:.1} ms\n",
            done.boxes, times.p50, times.p99
        )
    });
    format!(
        "{rounds} rounds: {daemons} daemons, {launchers} launchers and {fabrics} fabrics killed\n\
         {acknowledged} operations acknowledged, {interrupted} interrupted; nothing lost\n{rebuilt}"
    )
}
