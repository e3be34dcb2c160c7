//! `clickbox bench kills`: kills daemon, launcher and fabric at random moments, and checks that nothing acknowledged is lost.

use std::time::SystemTime;

use bench::kills::{KillPlan, Kills, kills};
use clap::Args;

use super::error::BenchError;
use crate::output;

/// Kill daemon, launcher and fabric at random moments, and check that nothing acknowledged is lost.
///
/// Starts a daemon of its own with a store in a temporary folder. Two clients create, change and remove boxes, switches and
/// stacks, and write to handlers, while processes are killed by SIGKILL. So are daemons that migrate the store of an earlier
/// version. After each round, the daemon must have exactly what was acknowledged, with or without the operations that were
/// interrupted. Also prints how long rebuilding a killed fabric takes.
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

/// Rounds between two lines about the progress.
const PROGRESS_INTERVAL: u32 = 25;

impl Arguments {
    pub(super) fn measure(&self) -> Result<(), BenchError> {
        let clock = || SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
        let seed = self.seed.unwrap_or_else(clock);
        // First, so that a run that hangs can be repeated.
        eprintln!("clickbox: seed {seed}");
        let program = std::env::current_exe().map_err(BenchError::Program)?;
        let mut progress = |round: u32, done: &Kills| {
            if round.is_multiple_of(PROGRESS_INTERVAL) && round < self.count {
                eprintln!("clickbox: round {round} of {}: {}", self.count, killed(done));
            }
        };
        let plan = KillPlan { rounds: self.count, seed };
        let done = kills(&program, plan, &mut progress).map_err(BenchError::Kills)?;
        match self.json {
            true => output::json(&done),
            false => output::text(&sentence(&done)),
        }
        Ok(())
    }
}

fn killed(done: &Kills) -> String {
    let Kills { daemons, launchers, fabrics, migrations, .. } = done;
    format!(
        "{daemons} daemons, {launchers} launchers, {fabrics} fabrics and {migrations} migrating daemons killed"
    )
}

fn sentence(done: &Kills) -> String {
    let Kills { rounds, acknowledged, interrupted, .. } = done;
    let rebuilt = done.rebuild_ms.as_ref().map_or(String::new(), |times| {
        format!(
            "rebuilding a fabric with {:.1} boxes: median {:.1} ms, 99 of 100 within {:.1} ms\n",
            done.boxes, times.p50, times.p99
        )
    });
    format!(
        "{rounds} rounds: {}\n{acknowledged} operations acknowledged, {interrupted} interrupted; nothing lost\n{rebuilt}",
        killed(done)
    )
}
