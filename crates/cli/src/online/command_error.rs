//! How commands that talk to a daemon fail, and how they exit then.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use api::client::ClientError;
use api::{Diagnostic, ErrorCode};

use super::{diagnostics, escape, explain};
use crate::source::{SourceText, system_message};

/// What the help says about exit codes.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or unreadable file, 3 no daemon,\n\
                                4 not found, 5 refused (a configuration, value or stack), 6 it is there already,\n\
                                or in a state that does not allow it.";

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The daemon, or the way to it.
    Client(ClientError),
    /// The command line, or a file of it, makes no sense.
    Usage(String),
    /// There is no such thing.
    Missing(String),
    /// Something else.
    Other(String),
}

impl CommandError {
    /// A file that can't be read or written.
    pub(crate) fn file(path: &Path, error: io::Error) -> CommandError {
        CommandError::Usage(format!("{}: {}", path.display(), system_message(&error)))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            CommandError::Usage(_) => 2,
            CommandError::Missing(_) => 4,
            CommandError::Other(_) => 1,
            CommandError::Client(ClientError::NoDaemon { .. }) => 3,
            CommandError::Client(error) => match error.code() {
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
            CommandError::Client(ClientError::Api(error)) => &error.details,
            _ => &[],
        }
    }

    /// Says it on standard error, diagnostics with the lines of the texts that they are about.
    pub(crate) fn report(&self, texts: &[SourceText]) -> ExitCode {
        diagnostics::print(self.details(), texts);
        eprintln!("clickbox: {}", escape::lines(&self.to_string()));
        ExitCode::from(self.code())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Client(error) => f.write_str(&explain(error)),
            CommandError::Usage(text) | CommandError::Missing(text) | CommandError::Other(text) => {
                f.write_str(text)
            }
        }
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> CommandError {
        CommandError::Client(error)
    }
}
