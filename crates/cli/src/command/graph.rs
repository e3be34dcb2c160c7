//! `clickbox graph`: draws a configuration.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::configuration::{self, ConfigurationArguments};
use crate::{graph, output};

/// Draw a configuration.
///
/// Prints a picture: elements as boxes with their ports (triangles are inputs, squares outputs; filled ports push,
/// empty ones pull), compound elements as frames.
#[derive(Args)]
#[command(after_help = "Example: clickbox graph examples/router.click > router.svg")]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: ConfigurationArguments,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A picture for browsers and documents.
    Svg,
    /// The language of Graphviz.
    Dot,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let Some((text, parameters)) = arguments.configuration.read() else { return ExitCode::from(2) };
    let compiled = configuration::compile(&text, &parameters, &[]);
    configuration::print(&compiled.diagnostics, &text);
    if compiled.has_errors() {
        return ExitCode::from(1);
    }
    let model = graph::Model::new(&compiled.graph);
    output::text(&match arguments.format {
        Format::Svg => graph::svg(&model),
        Format::Dot => graph::dot(&model),
    });
    ExitCode::SUCCESS
}
