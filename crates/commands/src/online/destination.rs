//! The destination of binary output: a file, or standard output unless it is a terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::error::{CommandError, FileError};

/// Opens a file for writing, or standard output for `-`. `what` describes the data in the error for a terminal.
pub(crate) fn destination(path: &Path, what: &'static str) -> Result<Box<dyn Write + Send>, CommandError> {
    if path.as_os_str() != "-" {
        let file = File::create(path).map_err(|error| FileError::new(path, error))?;
        return Ok(Box::new(file));
    }
    match io::stdout().is_terminal() {
        true => Err(CommandError::Terminal { what }),
        false => Ok(Box::new(io::stdout())),
    }
}

/// The result of writing there. A closed pipe is not an error.
pub(crate) fn written(result: io::Result<()>, what: &'static str) -> Result<(), CommandError> {
    match result {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::Transfer { what, cause })
        }
        _ => Ok(()),
    }
}
