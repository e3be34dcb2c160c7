//! Errors of commands that talk to a daemon, and their exit codes.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use api::client::ClientError;
use api::{Diagnostic, ErrorCode};

use super::{diagnostics, escape, explain};
use crate::source::{SourceText, system_message};

/// The exit codes, for the help.
pub(crate) const EXIT_CODES: &str = "Exit codes:\n  \
      0  success\n  \
      1  failure\n  \
      2  wrong usage, or a file that can't be read\n  \
      3  no daemon\n  \
      4  not found\n  \
      5  configuration, value or stack rejected\n  \
      6  already exists, or wrong state for this command";

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The daemon refused a request, or can't be reached.
    Client(ClientError),
    /// An invalid argument, or an unreadable file.
    Usage(String),
    /// Something was not found.
    Missing(String),
    /// Any other error.
    Other(String),
}

impl CommandError {
    /// An error of reading or writing a file.
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

    /// The diagnostics of a configuration that the daemon rejected.
    fn details(&self) -> &[Diagnostic] {
        match self {
            CommandError::Client(ClientError::Api(error)) => &error.details,
            _ => &[],
        }
    }

    /// Prints the error on standard error, after its diagnostics with their source lines. Returns the exit code.
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
