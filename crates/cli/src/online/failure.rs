//! How commands that talk to a daemon fail, and how they exit then.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use api::client::ClientError;
use api::{Diagnostic, ErrorCode};

use super::{diagnostics, escape, explain};
use crate::configuration::{Text, system_words};

/// What the help says about exit codes.
pub(crate) const CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or unreadable file, 3 no daemon,\n\
                                4 not found, 5 refused (a configuration, value or stack), 6 it is there already,\n\
                                or in a state that does not allow it.";

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The daemon, or the way to it.
    Client(ClientError),
    /// The command line, or a file of it, makes no sense.
    Usage(String),
    /// There is no such thing.
    Missing(String),
    /// Something else.
    Other(String),
}

impl Failure {
    /// A file that can't be read or written.
    pub(crate) fn file(path: &Path, error: io::Error) -> Failure {
        Failure::Usage(format!("{}: {}", path.display(), system_words(&error)))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Missing(_) => 4,
            Failure::Other(_) => 1,
            Failure::Client(ClientError::NoDaemon { .. }) => 3,
            Failure::Client(error) => match error.code() {
                Some(ErrorCode::Invalid) => 2,
                Some(ErrorCode::NotFound) => 4,
                Some(ErrorCode::Refused) => 5,
                Some(ErrorCode::Exists | ErrorCode::Busy) => 6,
                _ => 1,
            },
        }
    }

    /// What the daemon found wrong with a configuration.
    fn details(&self) -> &[Diagnostic] {
        match self {
            Failure::Client(ClientError::Api(error)) => &error.details,
            _ => &[],
        }
    }

    /// Says it on standard error, diagnostics with the lines of the texts that they are about.
    pub(crate) fn report(&self, texts: &[Text]) -> ExitCode {
        diagnostics::print(self.details(), texts);
        eprintln!("clickbox: {}", escape::lines(&self.to_string()));
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Client(error) => f.write_str(&explain(error)),
            Failure::Usage(text) | Failure::Missing(text) | Failure::Other(text) => f.write_str(text),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::Client(error)
    }
}
