//! The error of reading or writing a file.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file or a folder can't be read, created or written. The message is its name; the cause follows.
#[derive(Debug)]
pub(crate) struct FileError {
    path: PathBuf,
    cause: io::Error,
}

impl FileError {
    /// The error for a path.
    pub(crate) fn new(path: &Path, cause: io::Error) -> FileError {
        FileError { path: path.into(), cause }
    }

    /// The error for standard input.
    pub(crate) fn stdin(cause: io::Error) -> FileError {
        FileError::new(Path::new("standard input"), cause)
    }

    /// The same error under the name that the user gave the file.
    pub(crate) fn with_path(self, path: &Path) -> FileError {
        FileError { path: path.into(), ..self }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
