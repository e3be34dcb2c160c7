//! `clickbox bench`: measurements of this program, alone or compared with another.

mod boxes;
mod engine;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Measure configurations and boxes.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox bench engine --all --peer /usr/local/bin/click\n          clickbox bench all --out report/"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Engine(engine::Arguments),
    #[command(flatten)]
    Boxes(boxes::What),
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let result = match &arguments.what {
        What::Engine(engine) => engine.measure(),
        What::Boxes(what) => what.measure().map_err(|error| error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("clickbox: {text}");
            ExitCode::from(1)
        }
    }
}
