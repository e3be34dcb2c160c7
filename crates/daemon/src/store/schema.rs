//! The store's file and its tables.

use super::error::StoreError;
use rusqlite::{Connection, OptionalExtension};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The version of the tables below.
const SCHEMA_VERSION: i64 = 3;

/// Pages of 4 KB of the file's log at which it is worked off. That needs as much room again, which a full disk has not:
/// so they are few.
const CHECKPOINT_PAGES: i64 = 128;

/// Definitions are JSON of the API's types; texts of configurations and files lie apart, since they are large and
/// rarely looked at. A configuration has a row for each version while it is swapped: `active` says which one counts.
const TABLES: &str = "
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE stacks (name TEXT PRIMARY KEY, definition TEXT NOT NULL, applied TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE switches (
        name TEXT PRIMARY KEY, definition TEXT NOT NULL, stack TEXT, created TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE boxes (
        name TEXT PRIMARY KEY, definition TEXT NOT NULL, stack TEXT, created TEXT NOT NULL, running INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE configurations (
        id INTEGER PRIMARY KEY,
        box TEXT NOT NULL REFERENCES boxes (name) ON DELETE CASCADE,
        name TEXT NOT NULL, active INTEGER NOT NULL, position INTEGER NOT NULL,
        source TEXT, installed TEXT NOT NULL, swaps INTEGER NOT NULL, text TEXT NOT NULL
    );
    CREATE INDEX configurations_of_box ON configurations (box, name);
    CREATE TABLE files (
        configuration INTEGER NOT NULL REFERENCES configurations (id) ON DELETE CASCADE,
        name TEXT NOT NULL, contents BLOB NOT NULL
    );
    CREATE INDEX files_of_configuration ON files (configuration);
";

/// What version 2 added: stacks that wait for their confirmation, and what they were before, with all texts and files.
const UNCONFIRMED: &str = "CREATE TABLE unconfirmed (name TEXT PRIMARY KEY, before TEXT) WITHOUT ROWID;";

/// What version 3 changed: a box no longer runs in a thread of the daemon (`"sandbox": "none"`), which had no isolation.
/// Such boxes get the default sandbox. The search is exact: inside a JSON string each quote has a backslash before it.
const NO_THREAD_BOXES: &str = r#"
    UPDATE boxes SET definition = REPLACE(definition, '"sandbox":"none"', '"sandbox":"auto"');
    UPDATE stacks SET
        definition = REPLACE(definition, '"sandbox":"none"', '"sandbox":"auto"'),
        applied = REPLACE(applied, '"sandbox":"none"', '"sandbox":"auto"');
    UPDATE unconfirmed SET before = REPLACE(before, '"sandbox":"none"', '"sandbox":"auto"');
"#;

/// The store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) connection: Connection,
}

impl Store {
    /// Opens a store, or makes one; without a path in memory. It is this process's alone. With `most_pages` it grows to
    /// so many pages.
    pub(crate) fn open(path: Option<&Path>, most_pages: Option<u32>) -> Result<Self, StoreError> {
        let opened = match path {
            Some(path) => {
                // Configurations may have keys in them: nobody else reads them. What SQLite puts beside the file is as
                // the file is. If the file can't be made, SQLite says why.
                let _ = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
                Connection::open(path).map_err(|error| StoreError::Open(path.to_path_buf(), error))?
            }
            None => Connection::open_in_memory()?,
        };
        // A commit is in the file's log when it returns: it survives the end of this process, however that comes. That
        // it survives a power failure would cost a wait for the disk at each.
        opened.execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             PRAGMA foreign_keys = ON;
             PRAGMA journal_size_limit = 16777216;",
        )?;
        opened.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        if let Some(pages) = most_pages {
            opened.pragma_update(None, "max_page_count", pages)?;
        }
        let mut store = Self { connection: opened };
        store.migrate()?;
        Ok(store)
    }

    /// Makes a change. On a full disk it is tried once more when the store's log is worked off, which grows with each
    /// change, and into which also a removal has to be written.
    pub(super) fn change<T>(
        &mut self,
        change: impl Fn(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match change(&mut self.connection) {
            Err(StoreError::Full) => {
                // On a disk that has no room for that either the change fails as before.
                let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                change(&mut self.connection)
            }
            result => result,
        }
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match found {
            0 => {
                transaction.execute_batch(TABLES)?;
                transaction.execute_batch(UNCONFIRMED)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            1 | 2 => {
                if found == 1 {
                    transaction.execute_batch(UNCONFIRMED)?;
                }
                transaction.execute_batch(NO_THREAD_BOXES)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            SCHEMA_VERSION => {}
            found => return Err(StoreError::Newer { found, known: SCHEMA_VERSION }),
        }
        // What a swap left behind that did not come to its end.
        transaction.execute("DELETE FROM configurations WHERE active = 0", [])?;
        Ok(transaction.commit()?)
    }

    /// A counter that survives restarts.
    pub(crate) fn counter(&self, name: &str) -> Result<u64, StoreError> {
        let query = "SELECT value FROM counters WHERE name = ?1";
        let value: Option<i64> = self.connection.query_row(query, [name], |row| row.get(0)).optional()?;
        Ok(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0))
    }

    /// Sets a counter.
    pub(crate) fn set_counter(&self, name: &str, value: u64) -> Result<(), StoreError> {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let order = "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
        self.connection.execute(order, (name, value))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before 3.51.3 a checkpoint that resets the write-ahead log while another connection writes could corrupt the
    /// file.
    const FIRST_SQLITE_WITH_WAL_RESET_FIX: i32 = 3_051_003;

    #[test]
    fn sqlite_resets_its_log_safely() {
        let (number, name) = (rusqlite::version_number(), rusqlite::version());
        assert!(number >= FIRST_SQLITE_WITH_WAL_RESET_FIX, "SQLite {name} lacks the fix of its log's reset");
        let store = Store::open(None, None).unwrap();
        let running: String =
            store.connection.query_row("SELECT sqlite_version()", [], |row| row.get(0)).unwrap();
        assert_eq!(running, name);
    }
}
