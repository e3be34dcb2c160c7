//! `clickbox graph`: draws a configuration.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::configuration::ConfigurationArguments;
use crate::graph::{Listing, Model, dot, svg};
use crate::output;

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
    /// Print JSON instead: {"elements": [...], "connections": [...]}, without compound elements.
    #[arg(long, conflicts_with = "format")]
    json: bool,
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
    let (_, graph) = match arguments.configuration.compile() {
        Ok(compiled) => compiled,
        Err(code) => return code,
    };
    if arguments.json {
        output::json(&Listing::new(&graph));
        return ExitCode::SUCCESS;
    }
    let model = Model::new(&graph);
    output::text(&match arguments.format {
        Format::Svg => svg(&model),
        Format::Dot => dot(&model),
    });
    ExitCode::SUCCESS
}
