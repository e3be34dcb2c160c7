//! `clickbox fabric`: the process that holds boxes and moves packets. Without a command, it is that process, which only a
//! launcher starts.

use std::process::ExitCode;

use clap::{Args, value_parser};
use fabric::Settings;
use protocol::launcher::{FabricEndError, become_fabric};

use super::control::{self, Control};
use crate::components;
use crate::error::CommandError;

/// Drain or restart the process that runs the boxes.
///
/// The fabric runs boxes, switches and ports, apart from the daemon. A launcher starts it. Restart it to replace its
/// program, after the file of the program was replaced.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples: clickbox fabric drain\n          clickbox fabric restart --force"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<Control>,
    /// Number of threads that run virtual machines [default: one per CPU, except for one CPU, which runs the switches]
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    workers: usize,
    /// Number of threads that run the switches.
    #[arg(long, value_name = "N", default_value_t = 1, hide = true, value_parser = value_parser!(u8).range(1..=8))]
    switch_threads: u8,
    /// Sleep when idle: other fabrics use the same processors.
    #[arg(long)]
    shares_processors: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    if let Some(control) = &arguments.what {
        return control::run(control);
    }
    let end = match become_fabric() {
        // A fabric that was started ahead ends with its launcher.
        Err(FabricEndError::Unused) => return Ok(ExitCode::SUCCESS),
        end => end.map_err(CommandError::FabricEnd)?,
    };
    let settings = Settings {
        image: components::get().box_image,
        workers: arguments.workers,
        shares_processors: arguments.shares_processors,
        switch_threads: arguments.switch_threads.into(),
    };
    fabric::run(&settings, end).map_err(CommandError::Fabric)?;
    Ok(ExitCode::SUCCESS)
}
