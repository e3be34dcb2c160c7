//! Boxes and their configurations in the store.

use super::error::StoreError;
use super::schema::Store;
use api::{BoxName, ConfigurationName, CreateBox, File, StackName, Time, Value};
use rusqlite::{OptionalExtension, Row, Transaction};

/// A box as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredBox {
    /// Its definition, with every MAC address filled in, but without texts and files.
    pub(crate) definition: CreateBox,
    /// The stack that it belongs to.
    pub(crate) stack: Option<StackName>,
    /// When it was created.
    pub(crate) created: Time,
    /// Whether it should run.
    pub(crate) running: bool,
}

/// A configuration as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredConfiguration {
    /// The id of its row.
    pub(crate) id: i64,
    /// Its name.
    pub(crate) name: ConfigurationName,
    /// Its source name in diagnostics.
    pub(crate) source: Option<String>,
    /// When it was installed or last swapped.
    pub(crate) installed: Time,
    /// How often it was swapped.
    pub(crate) swaps: u32,
    /// Its text.
    pub(crate) text: String,
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

fn insert_configuration(
    transaction: &Transaction,
    name: &BoxName,
    configuration: &StoredConfiguration,
    files: &[File],
    active: bool,
) -> Result<i64, StoreError> {
    transaction.execute(
        "INSERT INTO configurations (box, name, active, position, source, installed, swaps, text)
         VALUES (?1, ?2, ?3, (SELECT coalesce(max(position), 0) + 1 FROM configurations WHERE box = ?1), ?4, ?5, ?6, ?7)",
        (
            name.as_str(),
            configuration.name.as_str(),
            active,
            &configuration.source,
            configuration.installed.to_string(),
            configuration.swaps,
            &configuration.text,
        ),
    )?;
    let id = transaction.last_insert_rowid();
    for file in files {
        let order = "INSERT INTO files (configuration, name, contents) VALUES (?1, ?2, ?3)";
        transaction.execute(order, (id, &file.name, &file.contents.0))?;
    }
    Ok(id)
}

impl Store {
    /// Stores a new box with its main configuration. Returns the configuration's id.
    pub(crate) fn add_box(
        &mut self,
        stored: &StoredBox,
        configuration: &StoredConfiguration,
        files: &[File],
    ) -> Result<i64, StoreError> {
        let definition =
            serde_json::to_string(&stored.definition).map_err(|error| StoreError::Entry("box", error))?;
        self.change(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "INSERT INTO boxes VALUES (?1, ?2, ?3, ?4, ?5)",
                (
                    stored.definition.name.as_str(),
                    &definition,
                    stored.stack.as_ref().map(StackName::as_str),
                    stored.created.to_string(),
                    stored.running,
                ),
            )?;
            let id = insert_configuration(&transaction, &stored.definition.name, configuration, files, true)?;
            transaction.commit()?;
            Ok(id)
        })
    }

    /// Stores a box's changed definition.
    pub(crate) fn define_box(&mut self, definition: &CreateBox) -> Result<(), StoreError> {
        let text = serde_json::to_string(definition).map_err(|error| StoreError::Entry("box", error))?;
        let order = "UPDATE boxes SET definition = ?2 WHERE name = ?1";
        self.connection.execute(order, (definition.name.as_str(), text))?;
        Ok(())
    }

    /// Stores whether a box should run.
    pub(crate) fn set_running(&mut self, name: &BoxName, running: bool) -> Result<(), StoreError> {
        let order = "UPDATE boxes SET running = ?2 WHERE name = ?1";
        self.connection.execute(order, (name.as_str(), running))?;
        Ok(())
    }

    /// Removes a box with its configurations.
    pub(crate) fn remove_box(&mut self, name: &BoxName) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM boxes WHERE name = ?1", [name.as_str()])?;
            Ok(())
        })
    }

    /// All boxes, by name.
    pub(crate) fn boxes(&self) -> Result<Vec<StoredBox>, StoreError> {
        let mut query =
            self.connection.prepare("SELECT definition, stack, created, running FROM boxes ORDER BY name")?;
        query.query_and_then([], stored_box)?.collect()
    }

    /// One box.
    pub(super) fn read_box(&self, name: &str) -> Result<StoredBox, StoreError> {
        let query = "SELECT definition, stack, created, running FROM boxes WHERE name = ?1";
        self.connection.query_row_and_then(query, [name], stored_box)
    }

    /// Stores a configuration beside the active one, with the given files and those of the active one that they do not
    /// replace. Returns its id. It takes effect with [`activate`](Self::activate).
    ///
    /// # Errors
    ///
    /// [`StoreError::NoBox`] if the box was removed meanwhile.
    pub(crate) fn stage(
        &mut self,
        name: &BoxName,
        configuration: &StoredConfiguration,
        files: &[File],
    ) -> Result<i64, StoreError> {
        self.change(|connection| {
            let transaction = connection.transaction()?;
            let query = "SELECT 1 FROM boxes WHERE name = ?1";
            if transaction.query_row(query, [name.as_str()], |_| Ok(())).optional()?.is_none() {
                return Err(StoreError::NoBox(name.clone()));
            }
            let id = insert_configuration(&transaction, name, configuration, files, false)?;
            transaction.execute(
                "INSERT INTO files (configuration, name, contents)
                 SELECT ?1, old.name, old.contents FROM files old JOIN configurations c ON c.id = old.configuration
                 WHERE c.box = ?2 AND c.name = ?3 AND c.active
                   AND old.name NOT IN (SELECT name FROM files WHERE configuration = ?1)",
                (id, name.as_str(), configuration.name.as_str()),
            )?;
            transaction.commit()?;
            Ok(id)
        })
    }

    /// Replaces the active configuration by a staged one.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoBox`] if the box was removed meanwhile.
    pub(crate) fn activate(
        &mut self,
        name: &BoxName,
        configuration: &ConfigurationName,
        id: i64,
    ) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        let activated = transaction.execute(
            "UPDATE configurations SET active = 1, position = coalesce((SELECT position FROM configurations
             WHERE box = ?1 AND name = ?2 AND active), position) WHERE id = ?3",
            (name.as_str(), configuration.as_str(), id),
        )?;
        if activated == 0 {
            return Err(StoreError::NoBox(name.clone()));
        }
        transaction.execute(
            "DELETE FROM configurations WHERE box = ?1 AND name = ?2 AND id <> ?3",
            (name.as_str(), configuration.as_str(), id),
        )?;
        Ok(transaction.commit()?)
    }

    /// Removes a staged configuration.
    pub(crate) fn unstage(&mut self, id: i64) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM configurations WHERE id = ?1 AND NOT active", [id])?;
        Ok(())
    }

    /// Removes a configuration.
    pub(crate) fn remove_configuration(
        &mut self,
        name: &BoxName,
        configuration: &ConfigurationName,
    ) -> Result<(), StoreError> {
        let order = "DELETE FROM configurations WHERE box = ?1 AND name = ?2";
        self.connection.execute(order, (name.as_str(), configuration.as_str()))?;
        Ok(())
    }

    /// A box's configurations, in the order of installation.
    pub(crate) fn configurations(&self, name: &BoxName) -> Result<Vec<StoredConfiguration>, StoreError> {
        let mut query = self.connection.prepare_cached(
            "SELECT id, name, source, installed, swaps, text FROM configurations WHERE box = ?1 AND active
             ORDER BY position",
        )?;
        let rows = query.query_map([name.as_str()], configuration)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One configuration of a box.
    pub(crate) fn configuration(
        &self,
        name: &BoxName,
        wanted: &ConfigurationName,
    ) -> Result<Option<StoredConfiguration>, StoreError> {
        let query = "SELECT id, name, source, installed, swaps, text FROM configurations
                     WHERE box = ?1 AND name = ?2 AND active";
        let found = self.connection.query_row(query, (name.as_str(), wanted.as_str()), configuration);
        Ok(found.optional()?)
    }

    /// The files of a configuration.
    pub(crate) fn files(&self, id: i64) -> Result<Vec<File>, StoreError> {
        let mut query = self
            .connection
            .prepare_cached("SELECT name, contents FROM files WHERE configuration = ?1 ORDER BY rowid")?;
        let rows =
            query.query_map([id], |row| Ok(File { name: row.get(0)?, contents: Value(row.get(1)?) }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn stored_box(row: &Row) -> Result<StoredBox, StoreError> {
    let definition: String = row.get(0)?;
    let definition = serde_json::from_str(&definition).map_err(|error| StoreError::Entry("box", error))?;
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

    #[test]
    fn a_swap_takes_effect_when_it_is_activated() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        let main = ConfigurationName::main();
        store.add_box(&stored("fw"), &text("main", "one"), &[file("a", "1"), file("b", "1")]).unwrap();
        let second = store.stage(&name, &text("second", "two"), &[]).unwrap();
        store.activate(&name, &"second".parse().unwrap(), second).unwrap();
        let names = |store: &Store| -> Vec<String> {
            let all = store.configurations(&name).unwrap();
            all.iter().map(|one| format!("{} {}", one.name, one.text)).collect()
        };
        assert_eq!(names(&store), ["main one", "second two"]);
        let dropped = store.stage(&name, &text("main", "three"), &[]).unwrap();
        store.unstage(dropped).unwrap();
        let swapped = store.stage(&name, &text("main", "four"), &[file("b", "2")]).unwrap();
        assert_eq!(names(&store), ["main one", "second two"]);
        store.activate(&name, &main, swapped).unwrap();
        assert_eq!(names(&store), ["main four", "second two"]);
        let found = store.configuration(&name, &main).unwrap().unwrap();
        assert_eq!(store.files(found.id).unwrap(), [file("b", "2"), file("a", "1")]);
        store.remove_box(&name).unwrap();
        assert!(names(&store).is_empty() && store.boxes().unwrap().is_empty());
        assert!(store.files(found.id).unwrap().is_empty());
    }

    #[test]
    fn a_removed_box_takes_no_configuration() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        store.add_box(&stored("fw"), &text("main", "one"), &[]).unwrap();
        let staged = store.stage(&name, &text("main", "two"), &[]).unwrap();
        store.remove_box(&name).unwrap();
        let activated = store.activate(&name, &ConfigurationName::main(), staged);
        assert!(matches!(&activated, Err(StoreError::NoBox(missing)) if *missing == name), "{activated:?}");
        let again = store.stage(&name, &text("main", "three"), &[file("a", "1")]);
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
            store.add_box(&wanted, &text("main", "one"), &[]).unwrap();
            store.stage(&wanted.definition.name, &text("main", "lost"), &[]).unwrap();
            store.set_running(&wanted.definition.name, false).unwrap();
            store.set_counter("events", 77).unwrap();
            assert!(matches!(Store::open(Some(&path), None), Err(StoreError::InUse)));
            let others = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o077;
            assert_eq!((others(&path), others(&folder.join("store-wal"))), (0, 0));
        }
        let store = Store::open(Some(&path), None).unwrap();
        let found = store.boxes().unwrap().remove(0);
        assert_eq!((&found.definition, found.running), (&wanted.definition, false));
        assert_eq!(store.configurations(&wanted.definition.name).unwrap().len(), 1);
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
            store.add_box(&wanted, &text("main", "one"), &[]).unwrap();
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
        store.add_box(&stored("fw"), &text("main", "one"), &[]).unwrap();
        let large = "x".repeat(1 << 20);
        let name: BoxName = "fw".parse().unwrap();
        assert!(matches!(store.stage(&name, &text("main", &large), &[]), Err(StoreError::Full)));
        let second = store.add_box(&stored("fw2"), &text("main", &large), &[]);
        assert!(matches!(second, Err(StoreError::Full)), "{second:?}");
        assert!(StoreError::Full.to_string().contains("free some space"));
        assert_eq!(store.boxes().unwrap().len(), 1);
        assert_eq!(store.configurations(&name).unwrap()[0].text, "one");
        store.set_running(&name, false).unwrap();
    }
}
