//! `clickbox completion`: prints shell completion scripts.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::env::{self, EnvCompleter};
use serde_json::json;

use crate::error::CommandError;
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
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let (name, completer): (_, &dyn EnvCompleter) = match arguments.shell {
        Shell::Bash => ("bash", &env::Bash),
        Shell::Elvish => ("elvish", &env::Elvish),
        Shell::Fish => ("fish", &env::Fish),
        Shell::Powershell => ("powershell", &env::Powershell),
        Shell::Zsh => ("zsh", &env::Zsh),
    };
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "clickbox", "clickbox", "clickbox", &mut script)
        .map_err(CommandError::Completion)?;
    if arguments.json {
        output::json(&json!({ "shell": name, "script": String::from_utf8_lossy(&script) }));
    } else {
        output::bytes(&script);
    }
    Ok(ExitCode::SUCCESS)
}
