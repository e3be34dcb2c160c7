//! `clickbox completion`: prints shell completion scripts.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use serde_json::json;

use crate::output;

/// The environment variable that makes this program print completions for a shell.
pub(crate) const VARIABLE: &str = "CLICKBOX_COMPLETE";

/// Print a shell completion script.
///
/// The script calls this program, so it also completes the current names of boxes, switches and handlers.
#[derive(Args)]
#[command(
    after_help = "Example: clickbox completion bash > ~/.local/share/bash-completion/completions/clickbox"
)]
pub(crate) struct Arguments {
    /// Shell to complete for.
    #[arg(value_enum)]
    shell: Shell,
    /// Print JSON: {"shell", "script"}.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let name = arguments.shell.to_possible_value();
    let shell = name.and_then(|name| shells.completer(name.get_name()));
    let written = shell
        .map(|shell| shell.write_registration(VARIABLE, "clickbox", "clickbox", "clickbox", &mut script));
    match written {
        Some(Ok(())) => {
            if arguments.json {
                let name = arguments.shell.to_possible_value();
                let name = name.as_ref().map(|name| name.get_name()).unwrap_or_default();
                output::json(&json!({ "shell": name, "script": String::from_utf8_lossy(&script) }));
            } else {
                output::bytes(&script);
            }
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("clickbox: {error}");
            ExitCode::from(1)
        }
        None => {
            eprintln!("clickbox: there is no script for this shell");
            ExitCode::from(1)
        }
    }
}
