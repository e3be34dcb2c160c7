//! `clickbox function build`: builds the image of a function.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::c_project::CProject;
use super::error::FunctionError;
use super::project::{self, Project};
use crate::error::FileError;
use crate::number_format::grouped;
use crate::output;

/// Build a function in the folder of its project: the image NAME.image, or in C the static program NAME.
#[derive(Args)]
#[command(after_help = "Example: clickbox function build scrub")]
pub(super) struct Arguments {
    /// Folder of the project.
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Build without optimisation, which takes less time.
    #[arg(long)]
    debug: bool,
    /// Link the libraries of the system dynamically. Only for functions in C.
    #[arg(long)]
    dynamic: bool,
    /// Print JSON: {"image", "bytes"}, or in C {"program", "bytes"}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    if let Some(project) = CProject::open(&arguments.folder)? {
        let program = project.build(!arguments.dynamic)?;
        return report("program", &program, arguments);
    }
    let project = Project::open(&arguments.folder)?;
    let mut cargo = project.cargo("image");
    let profile = if arguments.debug { "debug" } else { "release" };
    cargo.args(["build", "--target-dir", "target"]);
    if !arguments.debug {
        cargo.arg("--release");
    }
    // The image is the same wherever it is built. The flags of the project's configuration are kept.
    let flag = format!("--remap-path-prefix={}/=", project.folder.display());
    cargo.arg("--config").arg(format!("build.rustflags=[{flag:?}]"));
    // They would replace the flags without which it is no image.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    project::run(cargo, "the build of the image")?;
    let built = project.folder.join("image/target/x86_64-unknown-linux-gnu").join(profile).join("image");
    let image = project.folder.join(format!("{}.image", project.name));
    fs::copy(&built, &image).map_err(|error| FunctionError::File(FileError::new(&image, error)))?;
    report("image", &image, arguments)
}

/// Prints what was built.
fn report(kind: &str, path: &Path, arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    let bytes = fs::metadata(path).map_err(|error| FunctionError::File(FileError::new(path, error)))?.len();
    let folder = &arguments.folder;
    let shown = if folder.as_os_str() == "." { PathBuf::new() } else { folder.clone() };
    let shown = shown.join(path.file_name().unwrap_or_default());
    if arguments.json {
        output::json(&json!({ kind: path, "bytes": bytes }));
    } else {
        output::text(&format!("{} has {} bytes\n", shown.display(), grouped(bytes)));
    }
    Ok(ExitCode::SUCCESS)
}
