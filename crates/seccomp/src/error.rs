//! Why a list cannot be enforced.

use std::error::Error;
use std::fmt;

/// Why a list of system calls cannot be enforced.
#[derive(Debug)]
pub enum FilterError {
    /// The list cannot be translated.
    Compile(seccompiler::BackendError),
    /// The kernel refused it.
    Install(seccompiler::Error),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(_) => f.write_str("can't create the system call filter"),
            Self::Install(_) => f.write_str("can't install the system call filter"),
        }
    }
}

impl Error for FilterError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Compile(error) => Some(error),
            Self::Install(error) => Some(error),
        }
    }
}

impl From<seccompiler::BackendError> for FilterError {
    fn from(error: seccompiler::BackendError) -> Self {
        Self::Compile(error)
    }
}
