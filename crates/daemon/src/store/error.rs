//! Errors of the store.

use api::BoxName;
use rusqlite::ErrorCode;
use std::fmt;
use std::path::PathBuf;

/// Why something cannot be stored or read.
#[derive(Debug)]
pub enum StoreError {
    /// The file cannot be opened.
    Open(PathBuf, rusqlite::Error),
    /// The write-ahead log at this path cannot be read or renamed.
    Log(PathBuf, std::io::Error),
    /// Another daemon uses the file.
    InUse,
    /// The file was written by a later version.
    Newer {
        /// The file's version.
        found: i64,
        /// The latest supported version.
        known: i64,
    },
    /// The disk is full, or the store's own limit is reached.
    Full,
    /// The box is not stored. It was removed during the operation.
    NoBox(BoxName),
    /// An entry cannot be decoded: its kind and the error.
    Entry(&'static str, serde_json::Error),
    /// An entry contradicts itself; the text says how.
    Inconsistent(&'static str),
    /// Any other database error.
    Database(rusqlite::Error),
}

impl StoreError {
    /// Whether the error concerns the entry that was read, and not the whole store.
    pub(super) fn is_about_one_entry(&self) -> bool {
        use rusqlite::Error;
        match self {
            Self::Entry(..) | Self::Inconsistent(_) => true,
            Self::Database(error) => matches!(
                error,
                Error::InvalidColumnType(..)
                    | Error::FromSqlConversionFailure(..)
                    | Error::IntegralValueOutOfRange(..)
                    | Error::Utf8Error(..)
            ),
            _ => false,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(path, _) => write!(f, "can't open the store {}", path.display()),
            Self::Log(path, _) => write!(f, "can't check the store's log {}", path.display()),
            Self::InUse => f.write_str("another daemon uses the store: stop it, or use another file"),
            Self::Newer { found, known } => write!(
                f,
                "the store has format {found}, and this program reads formats up to {known}: use a newer version"
            ),
            Self::Full => f.write_str("the store's disk is full: free some space; nothing was changed"),
            Self::NoBox(name) => write!(f, "there is no box {name}"),
            Self::Entry(what, _) => write!(f, "a {what} in the store can't be read"),
            Self::Inconsistent(how) => f.write_str(how),
            Self::Database(_) => f.write_str("the store failed"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(_, error) | Self::Database(error) => Some(error),
            Self::Entry(_, error) => Some(error),
            Self::Log(_, error) => Some(error),
            Self::InUse | Self::Newer { .. } | Self::Full | Self::NoBox(_) | Self::Inconsistent(_) => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // A full disk may also be reported as an I/O failure.
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            _ => Self::Database(error),
        }
    }
}
