//! The store's file and its schema.

use super::change::{Interrupted, OperationId, Staged};
use super::damage::Damage;
use super::error::StoreError;
use super::log::check_log;
use super::reserve::Reserve;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The version of this schema.
pub(crate) const SCHEMA_VERSION: i64 = 10;

/// The counter that is 1 while the fabric is drained.
pub(crate) const DRAINING: &str = "draining";

/// Size of the write-ahead log, in 4 KB pages, at which it is checkpointed. It is small because a checkpoint needs as
/// much free space again, which a full disk does not have.
const CHECKPOINT_PAGES: i64 = 128;

/// Prepared statements that are kept: more than there are.
const KEPT_STATEMENTS: usize = 64;

/// Sets a counter.
const SET_COUNTER: &str = "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";

/// Definitions are JSON of the API's types. Texts and files are stored separately, because they are large and rarely
/// read. A configuration that an operation has staged, but not committed, has a row that is not `active`.
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

/// Added in version 2: stacks that await confirmation, with their previous definition including all texts and files.
const UNCONFIRMED: &str = "CREATE TABLE unconfirmed (name TEXT PRIMARY KEY, before TEXT) WITHOUT ROWID;";

/// Migration to version 3, in which a box can no longer run in a thread of the daemon (`"sandbox": "none"`), which had
/// no isolation. Such boxes get the default sandbox. The replacement is exact: inside a JSON string each quote is
/// preceded by a backslash.
const NO_THREAD_BOXES: &str = r#"
    UPDATE boxes SET definition = REPLACE(definition, '"sandbox":"none"', '"sandbox":"auto"');
    UPDATE stacks SET
        definition = REPLACE(definition, '"sandbox":"none"', '"sandbox":"auto"'),
        applied = REPLACE(applied, '"sandbox":"none"', '"sandbox":"auto"');
    UPDATE unconfirmed SET before = REPLACE(before, '"sandbox":"none"', '"sandbox":"auto"');
"#;

/// Added in version 4: entries that could not be read, with the reason. The other tables hold their rows as they were;
/// their columns have no types, so that every value is kept exactly.
const SET_ASIDE: &str = "
    CREATE TABLE set_aside (id INTEGER PRIMARY KEY, source TEXT NOT NULL, name, reason TEXT NOT NULL, time TEXT NOT NULL);
    CREATE TABLE set_aside_boxes (entry INTEGER NOT NULL, name, definition, stack, created, running);
    CREATE TABLE set_aside_configurations (
        entry INTEGER NOT NULL, id, box, name, active, position, source, installed, swaps, text
    );
    CREATE TABLE set_aside_files (entry INTEGER NOT NULL, configuration, name, contents);
    CREATE TABLE set_aside_switches (entry INTEGER NOT NULL, name, definition, stack, created);
    CREATE TABLE set_aside_stacks (entry INTEGER NOT NULL, name, definition, applied);
    CREATE TABLE set_aside_unconfirmed (entry INTEGER NOT NULL, name, before);
";

/// Added in version 5: the operations that have not ended, and the operation that creates a box.
const OPERATIONS: &str = "
    CREATE TABLE operations (id INTEGER PRIMARY KEY, action TEXT NOT NULL, subject TEXT NOT NULL, began TEXT NOT NULL);
    ALTER TABLE boxes ADD COLUMN operation INTEGER;
";

/// Added in version 6: the journal.
const EVENTS: &str = "CREATE TABLE events (sequence INTEGER PRIMARY KEY, event TEXT NOT NULL);";

/// Added in version 7: writes to handlers of boxes that changed their configurations.
const WRITES: &str = "
    CREATE TABLE writes (
        box TEXT NOT NULL REFERENCES boxes (name) ON DELETE CASCADE, number INTEGER NOT NULL, entry TEXT NOT NULL,
        PRIMARY KEY (box, number)
    ) WITHOUT ROWID;
";

/// Added in version 8: images that users gave.
const IMAGES: &str = "CREATE TABLE images (digest TEXT PRIMARY KEY, contents BLOB NOT NULL);";

/// Added in version 9: entries of the audit log.
const AUDIT: &str = "CREATE TABLE audit (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);";

/// Added in version 10: numbers by which controllers know the ports of switches, in the order in which they were given. A fabric
/// gives ports that have none the numbers that earlier versions gave.
const PORT_NUMBERS: &str = "CREATE TABLE port_numbers (
    id INTEGER PRIMARY KEY, switch TEXT NOT NULL, port TEXT NOT NULL, number INTEGER NOT NULL,
    UNIQUE (switch, port), UNIQUE (switch, number)
);";

/// Undoes [`SET_ASIDE`] and what later versions added, for tests of migrations.
#[cfg(test)]
pub(super) const DROP_SET_ASIDE: &str = "
    DROP TABLE port_numbers; DROP TABLE audit; DROP TABLE images; DROP TABLE writes; DROP TABLE events; DROP TABLE operations; ALTER TABLE boxes DROP COLUMN operation;
    DROP TABLE set_aside; DROP TABLE set_aside_boxes; DROP TABLE set_aside_configurations; DROP TABLE set_aside_files;
    DROP TABLE set_aside_switches; DROP TABLE set_aside_stacks; DROP TABLE set_aside_unconfirmed;
";

/// What a commit waits for: SQLite's setting of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synchronous {
    /// For nothing, except in a checkpoint. A power failure may lose the latest commits, in order.
    Normal,
    /// For the disk.
    Full,
}

/// The database of definitions.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) connection: Connection,
    synchronous: Synchronous,
    /// Room for a checkpoint. A store in memory has none.
    reserve: Option<Reserve>,
    /// Whether commits of operations fail, for simulations.
    #[cfg(test)]
    pub(super) commits_fail: bool,
    /// Damage found at the start, until it is reported.
    damage: Vec<Damage>,
    /// Operations that the end of the previous daemon interrupted, until they are reported.
    interrupted: Vec<Interrupted>,
    /// The operations that have not ended.
    pub(super) staged: BTreeMap<OperationId, Staged>,
    /// The number of the last operation that has begun.
    pub(super) last_operation: i64,
}

impl Store {
    /// Opens or creates a store, in memory if there is no path. It is locked for this process. `most_pages` limits its
    /// size.
    pub(crate) fn open(path: Option<&Path>, most_pages: Option<u32>) -> Result<Self, StoreError> {
        let log = path.map(check_log).transpose()?.flatten();
        let opened = match path {
            Some(path) => {
                // Configurations may contain keys, so only this user may read the file. SQLite creates its other files
                // with the same mode. If the file cannot be created, SQLite reports why.
                let _ = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
                Connection::open(path).map_err(|error| StoreError::Open(path.to_path_buf(), error))?
            }
            None => Connection::open_in_memory()?,
        };
        // A commit is in the write-ahead log when it returns, so it survives any end of this process. It is also on the
        // disk, so it survives a power failure, unless it only prepares an operation: see `set_synchronous`.
        opened.execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA foreign_keys = ON;
             PRAGMA journal_size_limit = 16777216;",
        )?;
        opened.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        opened.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
        if let Some(pages) = most_pages {
            opened.pragma_update(None, "max_page_count", pages)?;
        }
        Self::prepare(opened, path.map(Reserve::new), log)
    }

    /// Prepares the store behind a new connection for its use.
    fn prepare(
        connection: Connection,
        reserve: Option<Reserve>,
        log: Option<Damage>,
    ) -> Result<Self, StoreError> {
        let mut store = Self {
            connection,
            synchronous: Synchronous::Full,
            reserve,
            #[cfg(test)]
            commits_fail: false,
            damage: log.into_iter().collect(),
            interrupted: Vec::new(),
            staged: BTreeMap::new(),
            last_operation: 0,
        };
        // If the disk has no room for it, the log stays as it is.
        let _ = store.checkpoint();
        store.damage.extend(store.check()?);
        store.migrate()?;
        store.interrupted = store.take_interrupted_back()?;
        let unreadable = store.set_unreadable_aside()?;
        store.damage.extend(unreadable);
        Ok(store)
    }

    /// What the next daemon opens if this one ends now. Whatever this one does with its store later fails.
    #[cfg(test)]
    pub(crate) fn leave(&mut self) -> Result<Self, StoreError> {
        let connection = std::mem::replace(&mut self.connection, Connection::open_in_memory()?);
        Self::prepare(connection, self.reserve.take(), None)
    }

    /// Takes the damage that was found when the store was opened.
    pub(crate) fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// Takes the operations that the end of the previous daemon interrupted.
    pub(crate) fn take_interrupted(&mut self) -> Vec<Interrupted> {
        std::mem::take(&mut self.interrupted)
    }

    /// Determines what the next commits wait for.
    pub(super) fn set_synchronous(&mut self, wanted: Synchronous) -> Result<(), StoreError> {
        if self.synchronous != wanted {
            let value = match wanted {
                Synchronous::Normal => "NORMAL",
                Synchronous::Full => "FULL",
            };
            self.connection.pragma_update(None, "synchronous", value)?;
            self.synchronous = wanted;
        }
        Ok(())
    }

    /// Makes a change. If the disk is full, retries once after a checkpoint, because the write-ahead log grows with
    /// every change, even with a removal.
    pub(super) fn change<T>(
        &mut self,
        change: impl Fn(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match change(&mut self.connection) {
            Err(StoreError::Full) => {
                // If the disk has no room for the checkpoint either, the change fails again.
                let _ = self.checkpoint();
                change(&mut self.connection)
            }
            result => result,
        }
    }

    /// Writes everything into the store's file, so that a copy of this file alone is complete, and accepts no further
    /// changes.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        self.checkpoint()?;
        self.connection.pragma_update(None, "query_only", true)?;
        Ok(())
    }

    /// Moves all changes from the write-ahead log into the store's file, and begins a new log.
    ///
    /// An opened store does this first. A power failure may have lost a part of the log and kept what follows it. SQLite
    /// then ignores the rest, and writes over it. If it wrote exactly what was lost, the rest would be valid again.
    fn checkpoint(&self) -> Result<(), StoreError> {
        let mut written = Ok(());
        let mut write =
            || written = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        match &self.reserve {
            Some(reserve) => reserve.lend(write),
            None => write(),
        }
        Ok(written?)
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match found {
            0 => {
                transaction.execute_batch(TABLES)?;
                transaction.execute_batch(UNCONFIRMED)?;
                transaction.execute_batch(SET_ASIDE)?;
                transaction.execute_batch(OPERATIONS)?;
                transaction.execute_batch(EVENTS)?;
                transaction.execute_batch(WRITES)?;
                transaction.execute_batch(IMAGES)?;
                transaction.execute_batch(AUDIT)?;
                transaction.execute_batch(PORT_NUMBERS)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            1..SCHEMA_VERSION => {
                if found < 2 {
                    transaction.execute_batch(UNCONFIRMED)?;
                }
                if found < 3 {
                    transaction.execute_batch(NO_THREAD_BOXES)?;
                }
                if found < 4 {
                    transaction.execute_batch(SET_ASIDE)?;
                }
                if found < 5 {
                    transaction.execute_batch(OPERATIONS)?;
                }
                if found < 6 {
                    transaction.execute_batch(EVENTS)?;
                }
                if found < 7 {
                    transaction.execute_batch(WRITES)?;
                }
                if found < 8 {
                    transaction.execute_batch(IMAGES)?;
                }
                if found < 9 {
                    transaction.execute_batch(AUDIT)?;
                }
                transaction.execute_batch(PORT_NUMBERS)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            SCHEMA_VERSION => {}
            found => return Err(StoreError::Newer { found, known: SCHEMA_VERSION }),
        }
        Ok(transaction.commit()?)
    }

    /// A counter that survives restarts.
    pub(crate) fn counter(&self, name: &str) -> Result<u64, StoreError> {
        let query = "SELECT value FROM counters WHERE name = ?1";
        let value: Option<i64> = self.connection.query_row(query, [name], |row| row.get(0)).optional()?;
        Ok(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0))
    }

    /// Sets a counter.
    pub(crate) fn set_counter(&mut self, name: &str, value: u64) -> Result<(), StoreError> {
        self.set_synchronous(Synchronous::Full)?;
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.change(|connection| Ok(connection.execute(SET_COUNTER, (name, value)).map(drop)?))
    }

    /// Sets counters together, without waiting for the disk: for what a power failure makes meaningless.
    pub(crate) fn set_volatile_counters(&mut self, counters: &[(&str, u64)]) -> Result<(), StoreError> {
        self.set_synchronous(Synchronous::Normal)?;
        self.change(|connection| {
            let transaction = connection.transaction()?;
            for (name, value) in counters {
                let value = i64::try_from(*value).unwrap_or(i64::MAX);
                transaction.prepare_cached(SET_COUNTER)?.execute((name, value))?;
            }
            Ok(transaction.commit()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Action;
    use api::Subject;

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

    #[test]
    fn a_closed_store_is_whole_in_one_file() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-close-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, copy) = (folder.join("store"), folder.join("copy"));
        let mut store = Store::open(Some(&path), None).unwrap();
        for number in 0..100 {
            store.set_counter(&format!("counter{number}"), number).unwrap();
        }
        store.close().unwrap();
        assert!(store.set_counter("late", 1).is_err(), "a late change would be in the log only");
        // The store is still open: a daemon's last thread may hold it until the process ends.
        std::fs::copy(&path, &copy).unwrap();
        assert_eq!(std::fs::metadata(folder.join("store-wal")).unwrap().len(), 0);
        let copy = Store::open(Some(&copy), None).unwrap();
        assert!((0..100).all(|number| copy.counter(&format!("counter{number}")).unwrap() == number));
        drop((store, copy));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_commit_is_on_the_disk_when_it_returns() {
        const FULL: i64 = 2;
        let folder = std::env::temp_dir().join(format!("clickbox-store-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut store = Store::open(Some(&folder.join("store")), None).unwrap();
        // Beginning an operation does not wait for the disk; its commit does.
        let operation = store.begin(Action::Create, &Subject::Daemon).unwrap();
        store.commit(operation).unwrap();
        let pragma = |name: &str| -> String {
            let value = store
                .connection
                .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
            format!("{:?}", value.unwrap())
        };
        assert_eq!(pragma("synchronous"), format!("Integer({FULL})"));
        assert_eq!(pragma("journal_mode"), r#"Text("wal")"#);
        drop(store);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
