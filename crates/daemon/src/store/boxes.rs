//! Boxes and their configurations in the store.

use super::change::{OperationId, StoreChange};
use super::entries::{StoredBox, StoredConfiguration};
use super::error::StoreError;
use super::schema::Store;
use api::{BoxName, ConfigurationName, File, StackName, Value};
use rusqlite::{Row, Transaction};

/// The id of the configuration of a box that an operation adds, until it is written.
const NOT_WRITTEN: i64 = 0;

/// Parses the JSON of an entry. As bytes, like that of requests: a reader of text would compile each type again.
pub(super) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_slice(text.as_bytes())
}

/// Parses a text column into a type of the API.
pub(super) fn read<T: std::str::FromStr>(row: &Row, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let wrong = || {
        let name = row.as_ref().column_name(column).unwrap_or_default().into();
        rusqlite::Error::InvalidColumnType(column, name, rusqlite::types::Type::Text)
    };
    text.parse().map_err(|_| wrong())
}

pub(super) fn read_some<T: std::str::FromStr>(row: &Row, column: usize) -> rusqlite::Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => read(row, column).map(Some),
    }
}

/// Adds the row of a box. If it belongs to an operation, it is no box before the commit.
pub(super) fn insert_box(
    transaction: &Transaction,
    stored: &StoredBox,
    operation: Option<OperationId>,
) -> Result<(), StoreError> {
    let definition =
        serde_json::to_string(&stored.definition).map_err(|error| StoreError::Entry("box", error))?;
    let order = "INSERT INTO boxes (name, definition, stack, created, running, operation)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    transaction.prepare_cached(order)?.execute((
        stored.definition.name.as_str(),
        &definition,
        stored.stack.as_ref().map(StackName::as_str),
        stored.created.to_string(),
        stored.running,
        operation.map(|operation| operation.0),
    ))?;
    Ok(())
}

pub(super) fn insert_configuration(
    transaction: &Transaction,
    name: &BoxName,
    configuration: &StoredConfiguration,
    files: &[File],
    active: bool,
) -> Result<i64, StoreError> {
    let order = "INSERT INTO configurations (box, name, active, position, source, installed, swaps, text)
                 VALUES (?1, ?2, ?3, (SELECT coalesce(max(position), 0) + 1 FROM configurations WHERE box = ?1), ?4, ?5, ?6, ?7)";
    transaction.prepare_cached(order)?.execute((
        name.as_str(),
        configuration.name.as_str(),
        active,
        &configuration.source,
        configuration.installed.to_string(),
        configuration.swaps,
        &configuration.text,
    ))?;
    let id = transaction.last_insert_rowid();
    for file in files {
        let order = "INSERT INTO files (configuration, name, contents) VALUES (?1, ?2, ?3)";
        transaction.execute(order, (id, &file.name, &file.contents.0))?;
    }
    Ok(id)
}

impl Store {
    /// All boxes, by name.
    pub(crate) fn boxes(&self) -> Result<Vec<StoredBox>, StoreError> {
        let mut query = self.connection.prepare(
            "SELECT definition, stack, created, running FROM boxes WHERE operation IS NULL ORDER BY name",
        )?;
        query.query_and_then([], stored_box)?.collect()
    }

    /// One box.
    pub(crate) fn read_box(&self, name: &str) -> Result<StoredBox, StoreError> {
        let query = "SELECT definition, stack, created, running FROM boxes WHERE name = ?1";
        self.connection.query_row_and_then(query, [name], stored_box)
    }

    /// A box's configurations, in the order of installation, as they will be after all operations that have not ended.
    pub(crate) fn configurations(&self, name: &BoxName) -> Result<Vec<StoredConfiguration>, StoreError> {
        let mut query = self.connection.prepare_cached(
            "SELECT id, name, source, installed, swaps, text FROM configurations WHERE box = ?1 AND active
             ORDER BY position",
        )?;
        let rows = query.query_map([name.as_str()], configuration)?;
        let mut found = rows.collect::<Result<Vec<_>, _>>()?;
        for change in self.pending_changes() {
            match change {
                StoreChange::AddBox(stored, main, _) if stored.definition.name == *name => {
                    found = vec![StoredConfiguration { id: NOT_WRITTEN, ..main.clone() }];
                }
                StoreChange::AdmitBox(admitted, id) if admitted == name => {
                    found = vec![self.read_configuration(*id)?];
                }
                StoreChange::RemoveBox(removed) if removed == name => found.clear(),
                StoreChange::Activate(of, which, id) if of == name => {
                    let staged = self.read_configuration(*id)?;
                    match found.iter_mut().find(|there| there.name == *which) {
                        Some(there) => *there = staged,
                        None => found.push(staged),
                    }
                }
                StoreChange::RemoveConfiguration(of, which) if of == name => {
                    found.retain(|there| there.name != *which);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn read_configuration(&self, id: i64) -> Result<StoredConfiguration, StoreError> {
        let query = "SELECT id, name, source, installed, swaps, text FROM configurations WHERE id = ?1";
        Ok(self.connection.prepare_cached(query)?.query_row([id], configuration)?)
    }

    /// One configuration of a box.
    pub(crate) fn configuration(
        &self,
        name: &BoxName,
        wanted: &ConfigurationName,
    ) -> Result<Option<StoredConfiguration>, StoreError> {
        Ok(self.configurations(name)?.into_iter().find(|configuration| configuration.name == *wanted))
    }

    /// The names of the files of a configuration of a box. Their contents may be large.
    pub(crate) fn file_names(&self, name: &BoxName, id: i64) -> Result<Vec<String>, StoreError> {
        if id == NOT_WRITTEN {
            return Ok(self.files(name, id)?.into_iter().map(|file| file.name).collect());
        }
        let query = "SELECT name FROM files WHERE configuration = ?1 ORDER BY rowid";
        let mut query = self.connection.prepare_cached(query)?;
        let names = query.query_map([id], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// The files of a configuration of a box.
    pub(crate) fn files(&self, name: &BoxName, id: i64) -> Result<Vec<File>, StoreError> {
        if id == NOT_WRITTEN {
            let added = self.pending_changes().filter_map(|change| match change {
                StoreChange::AddBox(stored, _, files) if stored.definition.name == *name => Some(files),
                _ => None,
            });
            return Ok(added.last().cloned().unwrap_or_default());
        }
        let mut query = self
            .connection
            .prepare_cached("SELECT name, contents FROM files WHERE configuration = ?1 ORDER BY rowid")?;
        let rows =
            query.query_map([id], |row| Ok(File { name: row.get(0)?, contents: Value(row.get(1)?) }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The bytes of the files of a configuration, which are not read.
    pub(crate) fn file_bytes(&self, id: i64) -> Result<u64, StoreError> {
        let order = "SELECT coalesce(sum(length(contents)), 0) FROM files WHERE configuration = ?1";
        let bytes: i64 = self.connection.prepare_cached(order)?.query_row([id], |row| row.get(0))?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}

fn stored_box(row: &Row) -> Result<StoredBox, StoreError> {
    let definition: String = row.get(0)?;
    let definition = parsed(&definition).map_err(|error| StoreError::Entry("box", error))?;
    Ok(StoredBox { definition, stack: read_some(row, 1)?, created: read(row, 2)?, running: row.get(3)? })
}

fn configuration(row: &Row) -> rusqlite::Result<StoredConfiguration> {
    Ok(StoredConfiguration {
        id: row.get(0)?,
        name: read(row, 1)?,
        source: row.get(2)?,
        installed: read(row, 3)?,
        swaps: row.get(4)?,
        text: row.get(5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Action;
    use api::{CreateBox, Time};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn stored(name: &str) -> StoredBox {
        let mut definition = CreateBox::new(name.parse().unwrap(), "");
        definition.labels.insert("customer".into(), "7".into());
        StoredBox { definition, stack: None, created: Time::now(), running: true }
    }

    fn text(name: &str, text: &str) -> StoredConfiguration {
        StoredConfiguration {
            id: 0,
            name: name.parse().unwrap(),
            source: Some("fw.click".into()),
            installed: Time::now(),
            swaps: 0,
            text: text.into(),
        }
    }

    fn file(name: &str, contents: &str) -> File {
        File { name: name.into(), contents: contents.into() }
    }

    fn add_box(store: &mut Store, stored: &StoredBox, main: &StoredConfiguration, files: &[File]) {
        try_add_box(store, stored, main, files).unwrap();
    }

    fn try_add_box(
        store: &mut Store,
        stored: &StoredBox,
        main: &StoredConfiguration,
        files: &[File],
    ) -> Result<(), StoreError> {
        let added = StoreChange::AddBox(Box::new(stored.clone()), main.clone(), files.to_vec());
        store.apply(&[added])
    }

    fn begin(store: &mut Store) -> OperationId {
        store.begin(Action::Change, &"box/fw".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_swap_takes_effect_when_it_is_committed() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        let main = ConfigurationName::main();
        add_box(&mut store, &stored("fw"), &text("main", "one"), &[file("a", "1"), file("b", "1")]);
        let second = begin(&mut store);
        store.stage(second, &name, &text("second", "two"), &[]).unwrap();
        store.commit(second).unwrap();
        let names = |store: &Store| -> Vec<String> {
            let all = store.configurations(&name).unwrap();
            all.iter().map(|one| format!("{} {}", one.name, one.text)).collect()
        };
        assert_eq!(names(&store), ["main one", "second two"]);
        let dropped = begin(&mut store);
        store.stage(dropped, &name, &text("main", "three"), &[]).unwrap();
        assert_eq!(names(&store), ["main three", "second two"]);
        store.abandon(dropped);
        assert_eq!(names(&store), ["main one", "second two"]);
        let swapped = begin(&mut store);
        store.stage(swapped, &name, &text("main", "four"), &[file("b", "2")]).unwrap();
        let found = store.configuration(&name, &main).unwrap().unwrap();
        assert_eq!(store.files(&name, found.id).unwrap(), [file("b", "2"), file("a", "1")]);
        store.commit(swapped).unwrap();
        assert_eq!(names(&store), ["main four", "second two"]);
        let found = store.configuration(&name, &main).unwrap().unwrap();
        assert_eq!(store.files(&name, found.id).unwrap(), [file("b", "2"), file("a", "1")]);
        store.apply(&[StoreChange::RemoveBox(name.clone())]).unwrap();
        assert!(names(&store).is_empty() && store.boxes().unwrap().is_empty());
        assert!(store.files(&name, found.id).unwrap().is_empty());
    }

    /// A box that an operation replaces can be started before the commit, and is the old one again after a failure.
    #[test]
    fn a_box_that_is_being_replaced_has_its_new_configuration() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        add_box(&mut store, &stored("fw"), &text("main", "one"), &[file("a", "1")]);
        let read = |store: &Store| {
            let found = store.configurations(&name).unwrap();
            let files = found.iter().map(|found| store.files(&name, found.id).unwrap());
            found.iter().map(|found| found.text.clone()).zip(files).collect::<Vec<_>>()
        };
        let before = read(&store);
        for is_committed in [false, true] {
            let operation = begin(&mut store);
            store.add_change(operation, StoreChange::RemoveBox(name.clone()));
            assert_eq!(read(&store), []);
            store.stage_box(operation, stored("fw"), text("main", "two"), vec![file("b", "2")]).unwrap();
            let after = [("two".to_string(), vec![file("b", "2")])];
            assert_eq!(read(&store), after);
            match is_committed {
                true => store.commit(operation).unwrap(),
                false => store.abandon(operation),
            }
            assert_eq!(read(&store), if is_committed { after.to_vec() } else { before.clone() });
        }
    }

    /// A new box is no box before the commit, but it can be started and stopped.
    #[test]
    fn a_box_that_is_being_created_has_its_configuration() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        let rows = |store: &Store| {
            ["boxes", "configurations", "files", "operations"].map(|table| {
                let query = format!("SELECT count(*) FROM {table}");
                store.connection.query_row(&query, [], |row| row.get::<_, i64>(0)).unwrap()
            })
        };
        for is_committed in [false, true] {
            // The record of the operation comes with its box.
            let operation = store.begin_with_box(Action::Create, &"box/fw".parse().unwrap());
            assert_eq!(rows(&store), [0; 4]);
            store.stage_box(operation, stored("fw"), text("main", "one"), vec![file("a", "1")]).unwrap();
            assert_eq!(rows(&store), [1; 4]);
            assert!(store.boxes().unwrap().is_empty());
            let found = store.configurations(&name).unwrap().remove(0);
            assert_eq!(found.text, "one");
            assert_eq!(store.files(&name, found.id).unwrap(), [file("a", "1")]);
            store.apply(&[StoreChange::SetRunning(name.clone(), false)]).unwrap();
            match is_committed {
                true => store.commit(operation).unwrap(),
                false => store.abandon(operation),
            }
            assert_eq!(rows(&store), if is_committed { [1, 1, 1, 0] } else { [0; 4] });
        }
        assert!(!store.boxes().unwrap()[0].running);
    }

    #[test]
    fn a_removed_box_takes_no_configuration() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        add_box(&mut store, &stored("fw"), &text("main", "one"), &[]);
        let operation = begin(&mut store);
        store.stage(operation, &name, &text("main", "two"), &[]).unwrap();
        store.apply(&[StoreChange::RemoveBox(name.clone())]).unwrap();
        let activated = store.commit(operation);
        assert!(matches!(&activated, Err(StoreError::NoBox(missing)) if *missing == name), "{activated:?}");
        store.abandon(operation);
        let again = begin(&mut store);
        let again = store.stage(again, &name, &text("main", "three"), &[file("a", "1")]);
        assert!(matches!(&again, Err(StoreError::NoBox(missing)) if *missing == name), "{again:?}");
        let failure = crate::OperationError::from(again.unwrap_err());
        assert_eq!(
            (failure.code(), failure.to_string().as_str()),
            (api::ErrorCode::NotFound, "there is no box fw")
        );
        assert!(store.configurations(&name).unwrap().is_empty());
    }

    #[test]
    fn stored_boxes_are_read_back() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("store");
        let wanted = stored("fw");
        {
            let mut store = Store::open(Some(&path), None).unwrap();
            let name = &wanted.definition.name;
            add_box(&mut store, &wanted, &text("main", "one"), &[]);
            let lost = begin(&mut store);
            store.stage(lost, name, &text("main", "lost"), &[]).unwrap();
            store.add_change(lost, StoreChange::RemoveBox(name.clone()));
            store.apply(&[StoreChange::SetRunning(name.clone(), false)]).unwrap();
            store.set_counter("events", 77).unwrap();
            assert!(matches!(Store::open(Some(&path), None), Err(StoreError::InUse)));
            let others = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o077;
            assert_eq!((others(&path), others(&folder.join("store-wal"))), (0, 0));
        }
        let mut store = Store::open(Some(&path), None).unwrap();
        let interrupted: Vec<String> = store.take_interrupted().iter().map(ToString::to_string).collect();
        assert_eq!(interrupted.len(), 1);
        let (start, end) = ("a change of box fw, begun 2", "by the end of the daemon and had no effect");
        assert!(interrupted[0].starts_with(start) && interrupted[0].ends_with(end), "{interrupted:?}");
        let found = store.boxes().unwrap().remove(0);
        assert_eq!((&found.definition, found.running), (&wanted.definition, false));
        let texts = store.configurations(&wanted.definition.name).unwrap();
        assert_eq!(texts.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(), ["one"]);
        let rows = store.connection.query_row("SELECT count(*) FROM configurations", [], |row| row.get(0));
        assert_eq!(rows, Ok(1), "the row that was staged is removed");
        assert_eq!((store.counter("events").unwrap(), store.counter("none").unwrap()), (77, 0));
        drop(store);
        std::fs::write(&path, b"this is no database at all, but long enough to look at").unwrap();
        assert!(Store::open(Some(&path), None).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// In version 2, boxes could run in a thread of the daemon.
    #[test]
    fn thread_boxes_are_migrated_to_the_default_sandbox() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-2-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("store");
        let label = r#"says "sandbox":"none""#;
        let mut wanted = stored("fw");
        wanted.definition.labels.insert("note".into(), label.into());
        {
            let mut store = Store::open(Some(&path), None).unwrap();
            add_box(&mut store, &wanted, &text("main", "one"), &[]);
            let old = r#"UPDATE boxes SET definition = REPLACE(definition, '"sandbox":"auto"', '"sandbox":"none"')"#;
            assert_eq!(store.connection.execute(old, []).unwrap(), 1);
            store.connection.execute_batch(super::super::schema::DROP_SET_ASIDE).unwrap();
            store.connection.pragma_update(None, "user_version", 2).unwrap();
            assert!(store.boxes().is_err(), "the row has the old value");
        }
        let store = Store::open(Some(&path), None).unwrap();
        assert_eq!(store.boxes().unwrap().remove(0).definition, wanted.definition);
        drop(store);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_changes_nothing() {
        let mut store = Store::open(None, Some(64)).unwrap();
        add_box(&mut store, &stored("fw"), &text("main", "one"), &[]);
        let large = "x".repeat(1 << 20);
        let name: BoxName = "fw".parse().unwrap();
        let operation = begin(&mut store);
        let staged = store.stage(operation, &name, &text("main", &large), &[]);
        assert!(matches!(staged, Err(StoreError::Full)), "{staged:?}");
        let staged = store.stage_box(operation, stored("fw2"), text("main", &large), Vec::new());
        assert!(matches!(staged, Err(StoreError::Full)), "{staged:?}");
        let second = try_add_box(&mut store, &stored("fw2"), &text("main", &large), &[]);
        assert!(matches!(second, Err(StoreError::Full)), "{second:?}");
        // A commit that fails is made by another attempt, or abandoned.
        store.add_change(operation, StoreChange::RemoveBox(name.clone()));
        let added = StoreChange::AddBox(Box::new(stored("fw")), text("main", &large), Vec::new());
        store.add_change(operation, added);
        for _ in 0..2 {
            assert!(matches!(store.commit(operation), Err(StoreError::Full)));
        }
        store.abandon(operation);
        assert!(StoreError::Full.to_string().contains("free some space"));
        assert_eq!(store.boxes().unwrap().len(), 1);
        assert_eq!(store.configurations(&name).unwrap()[0].text, "one");
        store.apply(&[StoreChange::SetRunning(name, false)]).unwrap();
    }
}
