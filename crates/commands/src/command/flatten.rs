//! `clickbox flatten`: expands compound elements.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::configuration::ConfigurationArguments;
use crate::error::CommandError;
use crate::output;

/// Expand compound elements, groups and variables.
#[derive(Args)]
#[command(after_help = "Example: clickbox flatten examples/router.click")]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: ConfigurationArguments,
    /// Print JSON: {"configuration": the text}.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let (_, graph) = arguments.configuration.compile()?;
    let text = click_lang::flatten(&graph);
    if arguments.json {
        output::json(&json!({ "configuration": text }));
    } else {
        output::text(&text);
    }
    Ok(ExitCode::SUCCESS)
}
