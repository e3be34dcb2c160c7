//! Why something can't be stored.

use rusqlite::ErrorCode;
use std::fmt;
use std::path::PathBuf;

/// Why something can't be stored, or read again.
#[derive(Debug)]
pub enum StoreError {
    /// The file can't be opened.
    Open(PathBuf, rusqlite::Error),
    /// Another daemon has the file.
    InUse,
    /// The file was written by a later version.
    Newer {
        /// Its version.
        found: i64,
        /// The latest that is known here.
        known: i64,
    },
    /// The disk is full, or the store's own limit is reached.
    Full,
    /// An entry can't be read: of what, and what is wrong with it.
    Entry(&'static str, serde_json::Error),
    /// Anything else.
    Database(rusqlite::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(path, error) => write!(f, "can't open the store {}: {error}", path.display()),
            Self::InUse => write!(f, "another daemon uses the store: end it, or name another file"),
            Self::Newer { found, known } => write!(
                f,
                "the store has version {found}, and this program knows {known} at most: use the newer program"
            ),
            Self::Full => write!(f, "the disk under the store is full: free some space; nothing was changed"),
            Self::Entry(what, error) => write!(f, "the store has a {what} that can't be read: {error}"),
            Self::Database(error) => write!(f, "the store failed: {error}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(_, error) | Self::Database(error) => Some(error),
            Self::Entry(_, error) => Some(error),
            Self::InUse | Self::Newer { .. } | Self::Full => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // A write that the disk refuses is reported as a failure of the system.
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            _ => Self::Database(error),
        }
    }
}
