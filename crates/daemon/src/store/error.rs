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
            Self::Open(path, _) => write!(f, "can't open the store {}", path.display()),
            Self::InUse => f.write_str("another daemon uses the store: stop it, or use another file"),
            Self::Newer { found, known } => write!(
                f,
                "the store has format {found}, and this program reads formats up to {known}: use a newer version"
            ),
            Self::Full => f.write_str("the store's disk is full: free some space; nothing was changed"),
            Self::Entry(what, _) => write!(f, "the store has a {what} that can't be read"),
            Self::Database(_) => f.write_str("the store failed"),
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
