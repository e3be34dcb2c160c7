//! The subcommands of `clickbox function`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{build, new, test};
use crate::error::CommandError;

/// Write network functions in Rust, WebAssembly, C or Python.
///
/// In Rust, a function is a crate with a class of its own, which configurations use like any element. Its image runs in boxes in
/// place of the built-in one: `clickbox create NAME --image FILE`. In WebAssembly, it is a module that the element Wasm runs, in an
/// image with this element. In C and Python, it is a program of its own, perhaps in a container, which joins a service: `clickbox
/// service create NAME --container`.
#[derive(Args)]
#[command(
    after_help = "Example: clickbox function new scrub && cd scrub && clickbox function test && clickbox function build"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: FunctionCommand,
}

#[derive(Subcommand)]
enum FunctionCommand {
    New(new::Arguments),
    Build(build::Arguments),
    Test(test::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let done = match &arguments.what {
        FunctionCommand::New(arguments) => new::run(arguments),
        FunctionCommand::Build(arguments) => build::run(arguments),
        FunctionCommand::Test(arguments) => test::run(arguments),
    };
    Ok(done?)
}
