//! The errors of stack files.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use api::{NameError, SwitchName};

use super::port_options::PortOptionsError;
use crate::error::FileError;

/// A stack file can't be used. The message is its name; the cause follows.
#[derive(Debug)]
pub(crate) struct StackFileError {
    path: PathBuf,
    cause: StackError,
}

impl StackFileError {
    /// The error of a file.
    pub(crate) fn new(path: &Path, cause: StackError) -> StackFileError {
        StackFileError { path: path.into(), cause }
    }

    /// The cause.
    pub(crate) fn cause(&self) -> &StackError {
        &self.cause
    }
}

impl fmt::Display for StackFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Error for StackFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            StackError::Read(error) => Some(error),
            cause => Some(cause),
        }
    }
}

/// What is wrong with a stack file.
#[derive(Debug)]
pub(crate) enum StackError {
    /// It can't be read.
    Read(io::Error),
    /// It is not TOML, or has an unknown or wrong entry.
    Syntax(toml::de::Error),
    /// It does not set a name, and its file name is not a valid one.
    Name(NameError),
    /// A file that it names can't be read.
    File(FileError),
    /// The settings of a port are wrong.
    Port(PortOptionsError),
    /// A box or a service, which is named with its kind, has no configuration.
    NoConfiguration(String),
    /// A service that functions join, which is named with its kind, has a configuration.
    ContainerConfiguration(String),
    /// A box or a service has files of both kinds.
    MixedFiles(String),
    /// A chain of services names no switch.
    NoSwitch(String),
    /// An external switch has settings.
    ExternalSettings(SwitchName),
    /// The boxes of a chain can't be connected.
    Chain {
        /// The number of the chain, from 1.
        number: usize,
        /// Why.
        cause: ChainError,
    },
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(_) => f.write_str("the file can't be read"),
            Self::Syntax(error) => f.write_str(error.to_string().trim_end()),
            Self::Name(error) => error.fmt(f),
            Self::File(error) => error.fmt(f),
            Self::Port(error) => error.fmt(f),
            Self::NoConfiguration(what) => {
                let key = if what.starts_with("service") { "file" } else { "configuration" };
                write!(f, "{what} needs {key} = \"FILE\", or text with the configuration itself")
            }
            Self::ContainerConfiguration(what) => {
                write!(
                    f,
                    "{what} has container = true, so its functions join it: leave `file` and `text` out"
                )
            }
            Self::NoSwitch(name) => write!(f, "chain {name} needs switch = \"NAME\""),
            Self::MixedFiles(what) => {
                write!(
                    f,
                    "{what}: contents belongs to a configuration given as text, and files to one in a file"
                )
            }
            Self::ExternalSettings(name) => {
                write!(f, "switch {name} is external: it can have ports here, but no other settings")
            }
            Self::Chain { number, .. } => write!(f, "chain {number}"),
        }
    }
}

impl Error for StackError {
    /// The cause. If the message is the cause's, the cause's own cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Syntax(error) => error.source(),
            Self::Name(error) => error.source(),
            Self::File(error) => error.source(),
            Self::Port(error) => error.source(),
            Self::ExternalSettings(_)
            | Self::NoConfiguration(_)
            | Self::MixedFiles(_)
            | Self::ContainerConfiguration(_)
            | Self::NoSwitch(_) => None,
            Self::Chain { cause, .. } => Some(cause),
        }
    }
}

impl From<FileError> for StackError {
    fn from(error: FileError) -> StackError {
        StackError::File(error)
    }
}

impl From<PortOptionsError> for StackError {
    fn from(error: PortOptionsError) -> StackError {
        StackError::Port(error)
    }
}

/// Why the boxes of a chain can't be connected.
#[derive(Debug)]
pub(crate) enum ChainError {
    /// A box and a switch have this name.
    Ambiguous(String),
    /// An entry is not a name.
    Name(NameError),
    /// The names of the pipes, which begin with the stack's name, would be too long.
    PipeName(NameError),
    /// Two switches are next to each other.
    AdjacentSwitches,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous(name) => write!(f, "there is both a box and a switch named {name}"),
            Self::Name(error) => error.fmt(f),
            Self::PipeName(_) => f.write_str("the stack's name is too long to name pipes after"),
            Self::AdjacentSwitches => f.write_str("two switches are adjacent"),
        }
    }
}

impl Error for ChainError {
    /// The cause's own cause: the message is the cause's, or says more.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Name(error) | Self::PipeName(error) => error.source(),
            Self::Ambiguous(_) | Self::AdjacentSwitches => None,
        }
    }
}
