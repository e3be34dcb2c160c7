//! `clickbox completion`: what a shell needs to complete commands and options.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::output;

/// Print the completion script of a shell.
#[derive(Args)]
#[command(
    after_help = "Example: clickbox completion bash > ~/.local/share/bash-completion/completions/clickbox"
)]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it for the program whose arguments are `P`.
pub(crate) fn run<P: CommandFactory>(arguments: &Arguments) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut P::command(), "clickbox", &mut script);
    output::text(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
