//! Where bytes go that are no text: a file, or standard output unless that is a terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use super::failure::Failure;

/// Opens a file to write, or standard output for `-`; `what` is what would come to a terminal.
pub(crate) fn destination(path: &Path, what: &str) -> Result<Box<dyn Write + Send>, Failure> {
    if path.as_os_str() != "-" {
        let file = File::create(path).map_err(|error| Failure::file(path, error))?;
        return Ok(Box::new(file));
    }
    match io::stdout().is_terminal() {
        true => {
            Err(Failure::Usage(format!("{what} for a terminal: write it to a file with -w, or pipe it on")))
        }
        false => Ok(Box::new(io::stdout())),
    }
}

/// The result of writing there: a reader who has had enough is no failure.
pub(crate) fn written(result: io::Result<()>, what: &str) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Other(format!("{what}: {error}")))
        }
        _ => Ok(()),
    }
}
