//! `clickbox fabric`: the process that holds boxes and moves packets. Only a launcher starts it.

use std::process::ExitCode;

use clap::Args;
use fabric::Settings;
use protocol::launcher::become_fabric;

use crate::components;
use crate::error::CommandError;

/// Hold boxes and move packets, for a launcher that started this process.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of threads that run virtual machines [default: one per CPU, except for one CPU, which runs the switches]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    workers: usize,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let end = become_fabric().map_err(CommandError::FabricEnd)?;
    let settings = Settings { image: components::get().box_image, workers: arguments.workers };
    fabric::run(&settings, end).map_err(CommandError::Fabric)?;
    Ok(ExitCode::SUCCESS)
}
