//! `clickbox flatten`: a configuration without compound elements.

use std::process::ExitCode;

use clap::Args;

use crate::configuration::{self, ConfigurationArguments};
use crate::output;

/// Print a configuration without compound elements, groups and variables.
#[derive(Args)]
#[command(after_help = "Example: clickbox flatten examples/router.click")]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: ConfigurationArguments,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let Some((text, parameters)) = arguments.configuration.read() else { return ExitCode::from(2) };
    let compiled = configuration::compile(&text, &parameters, &[]);
    configuration::print(&compiled.diagnostics, &text);
    if compiled.has_errors() {
        return ExitCode::from(1);
    }
    output::text(&click_lang::flatten(&compiled.graph));
    ExitCode::SUCCESS
}
