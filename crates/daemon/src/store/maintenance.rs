//! Backups, checks, and what becomes of entries that were set aside.

use super::damage::{Damage, EntryKind};
use super::error::StoreError;
use super::schema::Store;
use api::SetAsideEntry;
use api::escape;
use rusqlite::types::Value;
use rusqlite::{Connection, MAIN_DB, OptionalExtension};

/// Most findings of a full check that are reported.
const MAX_FINDINGS: usize = 100;

/// The bytes in the header of a database that say how it is written and read, and their value for a file without a
/// write-ahead log. See "Database File Format" in SQLite's documentation.
const FORMAT_VERSIONS: std::ops::RangeInclusive<usize> = 18..=19;
const WITHOUT_LOG: u8 = 1;

/// A copy of the store: a database in one file.
#[derive(Debug)]
pub(crate) struct StoreCopy(pub(crate) Vec<u8>);

impl StoreCopy {
    /// Checks the whole copy: every page, index and reference. Returns the findings.
    pub(crate) fn check(&self) -> Result<Vec<Damage>, StoreError> {
        let mut connection = Connection::open_in_memory()?;
        connection.deserialize_read_exact(MAIN_DB, self.0.as_slice(), self.0.len(), true)?;
        let mut findings = Vec::new();
        let mut query = connection.prepare(&format!("PRAGMA integrity_check({MAX_FINDINGS})"))?;
        for finding in query.query_map([], |row| row.get::<_, String>(0))? {
            findings.push(finding?);
        }
        findings.retain(|finding| finding != "ok");
        let mut query = connection.prepare("PRAGMA foreign_key_check")?;
        let rows = query.query_map([], |row| {
            let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
            Ok(format!("a row of {table} refers to a missing row of {parent}"))
        })?;
        for finding in rows.take(MAX_FINDINGS) {
            findings.push(finding?);
        }
        Ok(findings.into_iter().map(Damage::Finding).collect())
    }
}

impl Store {
    /// Copies the store, with all changes that are committed.
    pub(crate) fn copy(&mut self) -> Result<StoreCopy, StoreError> {
        let mut bytes = self.connection.serialize(MAIN_DB)?.to_vec();
        if let Some(versions) = bytes.get_mut(FORMAT_VERSIONS) {
            versions.fill(WITHOUT_LOG);
        }
        Ok(StoreCopy(bytes))
    }

    /// The entries that were set aside, in the order in which that happened.
    pub(crate) fn set_aside_entries(&self) -> Result<Vec<SetAsideEntry>, StoreError> {
        let mut query =
            self.connection.prepare("SELECT id, source, name, reason, time FROM set_aside ORDER BY id")?;
        let line = |text: String| escape::line(text.as_bytes());
        let rows = query.query_map([], |row| {
            let (source, name): (String, Value) = (row.get(1)?, row.get(2)?);
            let kind = EntryKind::ALL.into_iter().find(|kind| kind.table() == source);
            Ok(SetAsideEntry {
                id: row.get(0)?,
                kind: kind.map_or(source, |kind| kind.name().to_string()),
                name: line(super::set_aside::shown(&name)),
                reason: line(row.get(3)?),
                time: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Deletes an entry that was set aside. Returns whether it existed.
    pub(crate) fn drop_set_aside(&mut self, entry: i64) -> Result<bool, StoreError> {
        self.change(|connection| {
            let transaction = connection.transaction()?;
            let removed = transaction.execute("DELETE FROM set_aside WHERE id = ?1", [entry])?;
            let tables = EntryKind::ALL.into_iter().map(EntryKind::table);
            for table in tables.chain(["configurations", "files"]) {
                transaction.execute(&format!("DELETE FROM set_aside_{table} WHERE entry = ?1"), [entry])?;
            }
            transaction.commit()?;
            Ok(removed > 0)
        })
    }

    /// Puts an entry that was set aside back, if it can be read now. Returns its kind and its name; `None` if there is no
    /// such entry.
    ///
    /// # Errors
    ///
    /// It still cannot be read, or its name is taken. It stays aside.
    pub(crate) fn retry_set_aside(&mut self, entry: i64) -> Result<Option<(EntryKind, String)>, StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let put_back = self.put_back(entry);
        let end = if put_back.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end);
        ended.map_err(StoreError::from).and(put_back)
    }

    fn put_back(&self, entry: i64) -> Result<Option<(EntryKind, String)>, StoreError> {
        let query = "SELECT source, name FROM set_aside WHERE id = ?1";
        let read = |row: &rusqlite::Row| Ok((row.get::<_, String>(0)?, row.get::<_, Value>(1)?));
        let Some((source, name)) = self.connection.query_row(query, [entry], read).optional()? else {
            return Ok(None);
        };
        let kind = EntryKind::ALL.into_iter().find(|kind| kind.table() == source);
        let kind = kind.ok_or(StoreError::Inconsistent("its kind is unknown"))?;
        if !self.retry_entry(entry, kind, &name)? {
            return Err(StoreError::Inconsistent("another entry has its name"));
        }
        self.check_entry(kind, &name)?;
        Ok(Some((kind, super::set_aside::shown(&name))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreChange;
    use api::{CreateBox, Time};

    fn store_with_box() -> Store {
        let mut store = Store::open(None, None).unwrap();
        let stored = crate::store::StoredBox {
            definition: CreateBox::new("fw".parse().unwrap(), ""),
            stack: None,
            created: Time::now(),
            running: true,
        };
        let main = crate::store::StoredConfiguration {
            id: 0,
            name: "main".parse().unwrap(),
            source: None,
            installed: Time::now(),
            swaps: 0,
            text: "Idle;".into(),
        };
        store.apply(&[StoreChange::AddBox(Box::new(stored), main, Vec::new())]).unwrap();
        store
    }

    #[test]
    fn a_copy_is_a_store() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-backup-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut store = store_with_box();
        let copy = store.copy().unwrap();
        assert!(copy.check().unwrap().is_empty());
        std::fs::write(folder.join("copy"), &copy.0).unwrap();
        let mut opened = Store::open(Some(&folder.join("copy")), None).unwrap();
        assert_eq!(opened.boxes().unwrap().len(), 1);
        assert!(opened.take_damage().is_empty() && opened.take_interrupted().is_empty());
        // The copy of a store with a log has no log.
        let again = opened.copy().unwrap();
        assert!(again.check().unwrap().is_empty());
        drop(opened);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_check_finds_what_a_quick_one_does_not() {
        let mut store = store_with_box();
        let orders = "PRAGMA foreign_keys = OFF;
            INSERT INTO files VALUES (77, 'rules', x'');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, '(box, name)', '(name, box)')
            WHERE name = 'configurations_of_box';
            PRAGMA writable_schema = OFF;";
        store.connection.execute_batch(orders).unwrap();
        assert!(store.check().unwrap().is_empty());
        let findings: Vec<String> =
            store.copy().unwrap().check().unwrap().iter().map(ToString::to_string).collect();
        let all = findings.join("\n");
        assert!(all.contains("configurations_of_box"), "{all}");
        assert!(all.contains("a row of files refers to a missing row of configurations"), "{all}");
    }

    #[test]
    fn entries_that_were_set_aside_are_retried_or_dropped() {
        let mut store = store_with_box();
        store.set_aside(EntryKind::Box, "fw", "it is odd".into()).unwrap();
        let listed = store.set_aside_entries().unwrap();
        let row = |entry: &SetAsideEntry| format!("{} {} {}", entry.kind, entry.name, entry.reason);
        assert_eq!(listed.iter().map(row).collect::<Vec<_>>(), ["box fw it is odd"]);
        let entry = listed[0].id;
        store.connection.execute("UPDATE set_aside_boxes SET created = 'noon'", []).unwrap();
        assert!(store.retry_set_aside(entry).is_err());
        assert_eq!(store.set_aside_entries().unwrap(), listed);
        let time = Time::now().to_string();
        store.connection.execute("UPDATE set_aside_boxes SET created = ?1", [time]).unwrap();
        let put_back = store.retry_set_aside(entry).unwrap();
        assert_eq!(put_back, Some((EntryKind::Box, "fw".to_string())));
        assert_eq!((store.boxes().unwrap().len(), store.retry_set_aside(entry).unwrap()), (1, None));
        store.set_aside(EntryKind::Box, "fw", "again".into()).unwrap();
        let entry = store.set_aside_entries().unwrap()[0].id;
        assert!(store.drop_set_aside(entry).unwrap() && !store.drop_set_aside(entry).unwrap());
        let rows = "SELECT count(*) FROM set_aside_configurations";
        assert_eq!(store.connection.query_row(rows, [], |row| row.get(0)), Ok(0));
    }
}
