//! `clickbox graph`: draws a configuration.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::configuration::ConfigurationArguments;
use crate::error::CommandError;
use crate::graph::{Listing, Model, dot, svg};
use crate::output;

/// Draw a configuration as a graph.
///
/// Elements are boxes, compound elements are frames. Triangles are input ports, squares are output ports; filled ports
/// push, empty ports pull.
#[derive(Args)]
#[command(after_help = "Example: clickbox graph examples/router.click > router.svg")]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: ConfigurationArguments,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
    /// Print JSON instead: {"elements": [...], "connections": [...]}, with compound elements expanded.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// An SVG image.
    Svg,
    /// Input for Graphviz.
    Dot,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let (_, graph) = arguments.configuration.compile()?;
    if arguments.json {
        output::json(&Listing::new(&graph));
        return Ok(ExitCode::SUCCESS);
    }
    let model = Model::new(&graph);
    output::text(&match arguments.format {
        Format::Svg => svg(&model),
        Format::Dot => dot(&model),
    });
    Ok(ExitCode::SUCCESS)
}
