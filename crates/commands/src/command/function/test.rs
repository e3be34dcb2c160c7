//! `clickbox function test`: runs the tests of a function.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::error::FunctionError;
use super::project::{self, Project};

/// Run the tests of a function, in particular that on its capture.
#[derive(Args)]
#[command(after_help = "Example: clickbox function test scrub")]
pub(super) struct Arguments {
    /// Folder of the project.
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    let project = Project::open(&arguments.folder)?;
    let mut cargo = project.cargo("");
    cargo.arg("test");
    project::run(cargo, "the test")?;
    Ok(ExitCode::SUCCESS)
}
