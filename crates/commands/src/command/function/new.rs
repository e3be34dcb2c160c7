//! `clickbox function new`: makes a project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::error::FunctionError;
use super::project::{FunctionName, SOURCES};
use super::sources;
use crate::error::FileError;
use crate::generate;
use crate::output;

/// Packets in the capture of a new project.
const CAPTURED_PACKETS: usize = 500;

/// The language of a function.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// Rust.
    Rust,
}

/// Make a project of a network function, with an example to change, its test on a capture, and its image.
///
/// It needs nothing but a Rust toolchain to be built and tested: the project has the sources of this program that it uses.
#[derive(Args)]
#[command(after_help = "Example: clickbox function new scrub --language rust")]
pub(super) struct Arguments {
    /// Name of the function: that of its crate, and of its class in capitals (rate-limit is RateLimit).
    name: String,
    /// Language of the function.
    #[arg(long, value_enum, default_value = "rust")]
    language: Language,
    /// Folder of the project, which must not exist [default: the name]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
    /// Print JSON: {"function", "class", "folder"}.
    #[arg(long)]
    json: bool,
}

/// The files of a project, and their texts. `{name}`, `{class}`, `{word}` and `{crate_name}` stand for names.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../templates/rust/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("../../../templates/rust/lib.rs.txt")),
    ("tests/capture.rs", include_str!("../../../templates/rust/capture.rs.txt")),
    ("image/Cargo.toml", include_str!("../../../templates/rust/image.Cargo.toml.txt")),
    ("image/build.rs", include_str!("../../../templates/rust/image.build.rs.txt")),
    ("image/main.rs", include_str!("../../../templates/rust/image.main.rs.txt")),
    ("README.md", include_str!("../../../templates/rust/README.md.txt")),
    (".gitignore", include_str!("../../../templates/rust/gitignore.txt")),
];

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    let Language::Rust = arguments.language;
    let name = FunctionName::new(&arguments.name)?;
    let folder = arguments.folder.clone().unwrap_or_else(|| PathBuf::from(name.as_str()));
    if folder.exists() {
        return Err(FunctionError::Exists(folder));
    }
    let (class, word) = (name.class(), name.word());
    for (path, text) in FILES {
        let text = text.replace("{name}", name.as_str()).replace("{class}", &class);
        let text = text.replace("{word}", &word).replace("{crate_name}", &word);
        write(&folder.join(path), text.as_bytes())?;
    }
    write(&folder.join("tests/traffic.pcap"), &generate::capture(1, CAPTURED_PACKETS))?;
    let lock = sources::lock_file()?;
    for path in ["Cargo.lock", "image/Cargo.lock"] {
        write(&folder.join(path), &lock)?;
    }
    sources::unpack(&folder.join(SOURCES))?;
    let flags = fs::read(folder.join(SOURCES).join("guest/.cargo/config.toml"));
    let flags = flags.map_err(FunctionError::Sources)?;
    write(&folder.join("image/.cargo/config.toml"), &flags)?;
    if arguments.json {
        output::json(&json!({ "function": name.as_str(), "class": class, "folder": folder }));
    } else {
        let shown = folder.display();
        output::text(&format!(
            "{shown} is made: change {shown}/src/lib.rs, then run `clickbox function test {shown}` and `clickbox function build {shown}`\n"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, contents: &[u8]) -> Result<(), FunctionError> {
    let write = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, contents)
    };
    write().map_err(|error| FunctionError::File(FileError::new(path, error)))
}
