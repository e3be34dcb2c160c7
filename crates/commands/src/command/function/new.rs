//! `clickbox function new`: makes a project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::error::FunctionError;
use super::program::ProgramLanguage;
use super::project::{FunctionName, SOURCES, is_rust};
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
    /// WebAssembly, written in Rust.
    Wasm,
    /// C.
    C,
    /// Python, for prototypes.
    Python,
}

/// Make a project of a network function, with an example to change, and its test on a capture.
///
/// It needs nothing but a Rust toolchain, a C compiler or Python to be built and tested: the project has the sources of this
/// program that it uses. A function in Rust becomes an image, which boxes run, and one in WebAssembly a module for the element Wasm,
/// with an image that has the element. One in C or Python becomes a program, which joins a service that was created with
/// --container.
#[derive(Args)]
#[command(after_help = "Example: clickbox function new scrub --language rust")]
pub(super) struct Arguments {
    /// Name of the function: that of its crate or program. In Rust its class has the same in capitals (rate-limit is
    /// RateLimit).
    name: String,
    /// Language of the function.
    #[arg(long, value_enum, default_value = "rust")]
    language: Language,
    /// Folder of the project, which must not exist [default: the name]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
    /// Print JSON: {"function", "class", "folder"}. Only a function in Rust has a class.
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

/// The same for WebAssembly.
const WASM_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../templates/wasm/Cargo.toml.txt")),
    ("build.rs", include_str!("../../../templates/wasm/build.rs.txt")),
    ("src/lib.rs", include_str!("../../../templates/wasm/lib.rs.txt")),
    ("{name}.click", include_str!("../../../templates/wasm/function.click.txt")),
    ("test/Cargo.toml", include_str!("../../../templates/wasm/test.Cargo.toml.txt")),
    ("test/classes.rs", include_str!("../../../templates/wasm/classes.rs.txt")),
    ("test/capture.rs", include_str!("../../../templates/wasm/capture.rs.txt")),
    ("image/Cargo.toml", include_str!("../../../templates/wasm/image.Cargo.toml.txt")),
    ("image/build.rs", include_str!("../../../templates/rust/image.build.rs.txt")),
    ("image/main.rs", include_str!("../../../templates/wasm/image.main.rs.txt")),
    ("README.md", include_str!("../../../templates/wasm/README.md.txt")),
    (".gitignore", include_str!("../../../templates/wasm/gitignore.txt")),
];

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, FunctionError> {
    let name = FunctionName::new(&arguments.name)?;
    let folder = arguments.folder.clone().unwrap_or_else(|| PathBuf::from(name.as_str()));
    if folder.exists() {
        return Err(FunctionError::Exists(folder));
    }
    let made = make(&name, &folder, arguments.language);
    if made.is_err() {
        // What is there of it would be in the way of the next attempt.
        let _ = fs::remove_dir_all(&folder);
    }
    let (main, class) = made?;
    if arguments.json {
        output::json(&json!({ "function": name.as_str(), "class": class, "folder": folder }));
    } else {
        let shown = folder.display();
        output::text(&format!(
            "{shown} is made: change {shown}/{main}, then run `clickbox function test {shown}` and `clickbox function build {shown}`\n"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the files of a project. Returns the file to change, and the class of a function in Rust.
fn make(
    name: &FunctionName,
    folder: &Path,
    language: Language,
) -> Result<(String, Option<String>), FunctionError> {
    let (class, word) = (name.class(), name.word());
    let files = match language {
        Language::Rust => FILES,
        Language::Wasm => WASM_FILES,
        Language::C => ProgramLanguage::C.files(),
        Language::Python => ProgramLanguage::Python.files(),
    };
    for (path, text) in files {
        let text = text.replace("{name}", name.as_str()).replace("{class}", &class);
        let text = text.replace("{word}", &word).replace("{crate_name}", &word);
        write(&folder.join(path.replace("{name}", name.as_str())), text.as_bytes())?;
    }
    write(&folder.join("tests/traffic.pcap"), &generate::capture(1, CAPTURED_PACKETS))?;
    let program = |language: ProgramLanguage| {
        sources::unpack(&folder.join(SOURCES), |path| path.starts_with(language.library()))
    };
    Ok(match language {
        Language::Rust => {
            add_sources(folder, "Cargo.lock")?;
            ("src/lib.rs".to_string(), Some(class))
        }
        Language::Wasm => {
            add_sources(folder, "test/Cargo.lock")?;
            ("src/lib.rs".to_string(), None)
        }
        Language::C => {
            program(ProgramLanguage::C)?;
            (format!("{}.c", name.as_str()), None)
        }
        Language::Python => {
            program(ProgramLanguage::Python)?;
            (format!("{}.py", name.as_str()), None)
        }
    })
}

/// Adds what a project in Rust is built with. The test has its lock file at this place.
fn add_sources(folder: &Path, test: &str) -> Result<(), FunctionError> {
    let lock = sources::lock_file()?;
    for path in [test, "image/Cargo.lock"] {
        write(&folder.join(path), &lock)?;
    }
    sources::unpack(&folder.join(SOURCES), is_rust)?;
    let flags = fs::read(folder.join(SOURCES).join("guest/.cargo/config.toml"));
    let flags = flags.map_err(FunctionError::Sources)?;
    write(&folder.join("image/.cargo/config.toml"), &flags)
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
