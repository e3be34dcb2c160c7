//! Why a command about a function failed.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::error::FileError;

/// What fails if the target of WebAssembly is missing.
pub(super) const MODULE_BUILD: &str = "the build of the module";

/// Why a command about a function failed.
#[derive(Debug)]
pub(crate) enum FunctionError {
    /// The name can't be that of a crate.
    Name(String),
    /// A language or the project uses the name.
    ReservedName(String),
    /// There is something where the project would be.
    Exists(PathBuf),
    /// The folder has no project of a function.
    NoProject(PathBuf),
    /// The project's `Cargo.toml` can't be read.
    Manifest(PathBuf, toml::de::Error),
    /// A file or folder can't be read or written.
    File(FileError),
    /// The file with the sources can't be read.
    NoSources(FileError),
    /// The sources of this program are damaged.
    Sources(io::Error),
    /// Cargo can't be started.
    Cargo(io::Error),
    /// The C compiler, `ar` or the function can't be started.
    Compiler(io::Error),
    /// Python can't be started.
    Python(io::Error),
    /// The function has failed on its capture, with this text.
    Run(String, ExitStatus),
    /// The function does not print what the test expects.
    Different {
        /// The file with what it expects.
        path: PathBuf,
        /// Its text.
        expected: String,
        /// What was printed.
        found: String,
    },
    /// A program has failed, and said why.
    Failed(&'static str, ExitStatus),
}

impl FunctionError {
    /// Whether the command was wrong, rather than its execution.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Name(_) | Self::ReservedName(_) | Self::NoProject(_) | Self::Manifest(..) | Self::File(_)
        )
    }

    /// What to do.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoProject(_) => "`clickbox function new NAME` makes one".into(),
            Self::Exists(_) => "name another folder".into(),
            Self::NoSources(_) => {
                "keep clickbox.sources in the folder of the program; the build writes both there".into()
            }
            Self::Cargo(_) => "install Rust 1.93 or later".into(),
            Self::Compiler(_) => {
                "install a C compiler and binutils, or name the compiler in the variable CC".into()
            }
            Self::Python(_) => "install Python 3.9 or later".into(),
            Self::Failed(MODULE_BUILD, _) => {
                "if the target is missing, run `rustup target add wasm32-unknown-unknown`".into()
            }
            _ => return None,
        })
    }
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "{name:?} can't be the name of a function: it must have 1 to 40 of the characters a-z 0-9 - and begin with a \
                 letter"
            ),
            Self::ReservedName(name) => {
                write!(f, "{name:?} can't be the name of a function: its language or the project uses it")
            }
            Self::Exists(path) => write!(f, "{} exists already", path.display()),
            Self::NoProject(path) => write!(f, "{} has no project of a function", path.display()),
            Self::Manifest(path, _) => write!(f, "{}", path.display()),
            Self::File(error) | Self::NoSources(error) => error.fmt(f),
            Self::Sources(_) => f.write_str("the sources of this program can't be unpacked"),
            Self::Cargo(_) => f.write_str("cargo can't be started"),
            Self::Compiler(_) => f.write_str("the C compiler can't be started"),
            Self::Python(_) => f.write_str("python3 can't be started"),
            Self::Run(text, status) => write!(f, "the function ended with {status} on its capture: {text}"),
            Self::Different { path, expected, found } => {
                write!(
                    f,
                    "the test expects:\n{}\nbut the function printed:\n{}\nIf the function is right, write what it printed to {}",
                    expected.trim_end(),
                    found.trim_end(),
                    path.display()
                )
            }
            Self::Failed(what, status) => write!(f, "{what} failed: it ended with {status}"),
        }
    }
}

impl Error for FunctionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Manifest(_, error) => Some(error),
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::File(error) | Self::NoSources(error) => error.source(),
            Self::Sources(error) | Self::Cargo(error) | Self::Compiler(error) | Self::Python(error) => {
                Some(error)
            }
            _ => None,
        }
    }
}
