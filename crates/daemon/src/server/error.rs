//! Why a daemon could not run.

use super::listen::ListenError;
use super::tls::TlsError;
use crate::supervisor::StartError;
use std::fmt;
use std::io;

/// Why a daemon could not run.
#[derive(Debug)]
pub enum RunError {
    /// The Unix socket could not be opened.
    Listen(ListenError),
    /// TCP could not be set up.
    Tls(TlsError),
    /// The supervisor could not start.
    Start(StartError),
    /// Threads or signal handlers could not be created.
    System(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::System(_) => f.write_str("the daemon can't run"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Listen(error) => error.source(),
            Self::Tls(error) => error.source(),
            Self::Start(error) => error.source(),
            Self::System(error) => Some(error),
        }
    }
}

impl From<ListenError> for RunError {
    fn from(error: ListenError) -> Self {
        Self::Listen(error)
    }
}

impl From<TlsError> for RunError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
