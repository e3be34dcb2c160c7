//! `clickbox function test`: runs the tests of a function.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::error::FunctionError;
use super::program::Program;
use super::project::{self, Project};
use crate::output;

/// Run the tests of a function, in particular that on its capture.
#[derive(Args)]
#[command(after_help = "Example: clickbox function test scrub")]
pub(super) struct Arguments {
    /// Folder of the project.
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Print JSON: {"passed"}. What the tests print then goes to standard error.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    if let Some(project) = Program::open(&arguments.folder)? {
        project.test()?;
        if arguments.json {
            output::json(&json!({ "passed": true }));
        } else {
            output::text("the test passed\n");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let project = Project::open(&arguments.folder)?;
    let is_wasm = project.is_wasm();
    if is_wasm {
        project.build_module()?;
    }
    let mut cargo = project.cargo(if is_wasm { "test" } else { "" });
    cargo.arg("test");
    if arguments.json {
        cargo.stdout(std::io::stderr());
    }
    project::run(cargo, "the test")?;
    if arguments.json {
        output::json(&json!({ "passed": true }));
    }
    Ok(ExitCode::SUCCESS)
}
