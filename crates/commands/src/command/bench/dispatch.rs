//! The subcommands of `clickbox bench`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::boxes::BoxBenchmark;
use super::{engine, interfaces, kills, lookups, outage, owners, rebuild, rule_changes};
use crate::error::CommandError;

/// Measure configurations and boxes.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench engine --all --peer /usr/local/bin/click\n          clickbox bench all --out report/"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    Controller(rule_changes::Arguments),
    Engine(engine::Arguments),
    FlowTable(lookups::Arguments),
    Interfaces(interfaces::Arguments),
    Kills(kills::Arguments),
    Outage(outage::Arguments),
    Owners(owners::Arguments),
    Rebuild(rebuild::Arguments),
    #[command(flatten)]
    Boxes(BoxBenchmark),
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.benchmark {
        Benchmark::Controller(changes) => changes.measure()?,
        Benchmark::Engine(engine) => engine.measure()?,
        Benchmark::FlowTable(lookups) => lookups.measure()?,
        Benchmark::Interfaces(interfaces) => interfaces.measure()?,
        Benchmark::Kills(kills) => kills.measure()?,
        Benchmark::Outage(outage) => outage.measure()?,
        Benchmark::Owners(owners) => owners.measure()?,
        Benchmark::Rebuild(rebuild) => rebuild.measure()?,
        Benchmark::Boxes(boxes) => boxes.measure()?,
    }
    Ok(ExitCode::SUCCESS)
}
