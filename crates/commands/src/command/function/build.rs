//! `clickbox function build`: builds the image of a function.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::error::FunctionError;
use super::program::Program;
use super::project::{self, Project};
use crate::error::FileError;
use crate::number_format::grouped;
use crate::output;

/// Build a function in the folder of its project.
///
/// In Rust it becomes the image NAME.image, in WebAssembly the module NAME.wasm and an image that runs it, in C the static program
/// NAME, in Python the file NAME.pyz.
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
    /// Print JSON: {"image", "bytes"}, in WebAssembly with "module", or in C and Python {"program", "bytes"}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    if let Some(project) = Program::open(&arguments.folder)? {
        let program = project.build(!arguments.dynamic)?;
        return report("program", &program, None, arguments);
    }
    let project = Project::open(&arguments.folder)?;
    let module = project.is_wasm().then(|| project.build_module()).transpose()?;
    let mut cargo = project.cargo("image");
    let profile = if arguments.debug { "debug" } else { "release" };
    cargo.args(["build", "--target-dir", "target"]);
    if !arguments.debug {
        cargo.arg("--release");
    }
    project.isolate(&mut cargo);
    project::run(cargo, "the build of the image")?;
    let built = project.folder.join("image/target/x86_64-unknown-linux-gnu").join(profile).join("image");
    let image = project.folder.join(format!("{}.image", project.name));
    fs::copy(&built, &image).map_err(|error| FunctionError::File(FileError::new(&image, error)))?;
    report("image", &image, module.as_deref(), arguments)
}

/// Prints what was built.
fn report(
    kind: &str,
    path: &Path,
    module: Option<&Path>,
    arguments: &Arguments,
) -> Result<ExitCode, FunctionError> {
    let length = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    if arguments.json {
        let mut made = json!({ kind: path, "bytes": length(path) });
        if let Some(module) = module {
            made["module"] = json!(module);
        }
        output::json(&made);
        return Ok(ExitCode::SUCCESS);
    }
    let folder = &arguments.folder;
    let shown = if folder.as_os_str() == "." { PathBuf::new() } else { folder.clone() };
    for path in module.into_iter().chain([path]) {
        let shown = shown.join(path.file_name().unwrap_or_default());
        output::text(&format!("{} has {} bytes\n", shown.display(), grouped(length(path))));
    }
    Ok(ExitCode::SUCCESS)
}
