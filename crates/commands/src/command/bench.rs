//! `clickbox bench`: measurements of this program, alone or compared with another.

mod boxes;
mod engine;
mod error;

pub(crate) use error::BenchError;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::error::CommandError;

/// Measure configurations and boxes.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench engine --all --peer /usr/local/bin/click\n          clickbox bench all --out report/"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Engine(engine::Arguments),
    #[command(flatten)]
    Boxes(boxes::What),
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        What::Engine(engine) => engine.measure()?,
        What::Boxes(what) => what.measure()?,
    }
    Ok(ExitCode::SUCCESS)
}
