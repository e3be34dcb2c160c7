//! Stores of earlier versions, which a daemon migrates when it starts.

use random::Random;
use rusqlite::Connection;
use std::fmt;
use std::path::Path;

/// The version of the store that this program writes.
const PRESENT: i64 = 10;

/// What each version added, latest first: how it is undone.
///
/// Before version 5 there are no boxes that are being created. The next opening would remove them.
const UNDO: [&str; 6] = [
    "DELETE FROM boxes WHERE operation IS NOT NULL; DROP TABLE port_numbers;",
    "DROP TABLE audit;",
    "DROP TABLE images;",
    "DROP TABLE writes;",
    "DROP TABLE events;",
    "DROP TABLE operations; ALTER TABLE boxes DROP COLUMN operation;",
];

/// Why a store can't be turned into one of an earlier version.
#[derive(Debug)]
pub enum MigrationError {
    /// SQLite reports an error.
    Database(rusqlite::Error),
    /// The store has another version than the one whose predecessors are known here.
    Version(i64),
}

impl fmt::Display for MigrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(_) => f.write_str("the store can't be changed"),
            Self::Version(found) => {
                write!(f, "the store has version {found}, and the changes that lead to {PRESENT} are known")
            }
        }
    }
}

impl std::error::Error for MigrationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Version(_) => None,
        }
    }
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Turns the store of a daemon that has ended into one of a random earlier version. A store that was left in the middle
/// of a migration stays as it is.
pub(super) fn downgrade(store: &Path, random: &mut Random) -> Result<(), MigrationError> {
    let steps = 1 + random.below(UNDO.len() as u32) as usize;
    let connection = Connection::open(store)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let version = PRESENT - steps as i64;
    match found {
        PRESENT => {
            let undo = UNDO[..steps].concat();
            connection.execute_batch(&format!("BEGIN; {undo} PRAGMA user_version = {version}; COMMIT;"))?;
            Ok(())
        }
        _ if found < PRESENT => Ok(()),
        found => Err(MigrationError::Version(found)),
    }
}
