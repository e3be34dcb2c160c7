//! Errors that end a launcher.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a launcher cannot run.
#[derive(Debug)]
pub enum RunError {
    /// Another launcher serves the socket.
    InUse(PathBuf),
    /// The socket cannot be created.
    Listen(PathBuf, io::Error),
    /// The operating system reported an error.
    System(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(f, "another launcher serves the socket {}", path.display()),
            Self::Listen(path, _) => write!(f, "can't create the socket {}", path.display()),
            Self::System(_) => f.write_str("the launcher can't run"),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::InUse(_) => None,
            Self::Listen(_, error) | Self::System(error) => Some(error),
        }
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for RunError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}
