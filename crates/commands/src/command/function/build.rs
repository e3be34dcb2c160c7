//! `clickbox function build`: builds the image of a function.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::error::FunctionError;
use super::project::{self, Project};
use crate::error::FileError;
use crate::number_format::grouped;
use crate::output;

/// Build the image of a function: NAME.image in the folder of the project.
#[derive(Args)]
#[command(after_help = "Example: clickbox function build scrub")]
pub(super) struct Arguments {
    /// Folder of the project.
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Build without optimisation, which takes less time.
    #[arg(long)]
    debug: bool,
    /// Print JSON: {"image", "bytes"}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
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
    let bytes = fs::copy(&built, &image);
    let bytes = bytes.map_err(|error| FunctionError::File(FileError::new(&image, error)))?;
    let folder = &arguments.folder;
    let shown = if folder.as_os_str() == "." { PathBuf::new() } else { folder.clone() };
    let shown = shown.join(format!("{}.image", project.name));
    if arguments.json {
        output::json(&json!({ "image": image, "bytes": bytes }));
    } else {
        output::text(&format!("{} has {} bytes\n", shown.display(), grouped(bytes)));
    }
    Ok(ExitCode::SUCCESS)
}
