//! Entries that are unreadable: they are set aside and reported, never deleted.

use super::damage::{Damage, EntryKind};
use super::error::StoreError;
use super::schema::Store;
use api::{ConfigurationName, Time, with_causes};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

/// Most findings of a check of the file that are reported.
const MAX_FINDINGS: usize = 10;

impl Store {
    /// Checks the structure of the file. Returns the findings.
    pub(super) fn check(&self) -> Result<Vec<Damage>, StoreError> {
        let mut query = self.connection.prepare(&format!("PRAGMA quick_check({MAX_FINDINGS})"))?;
        let findings: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(findings.into_iter().filter(|finding| finding != "ok").map(Damage::Finding).collect())
    }

    /// Sets aside every entry that cannot be read, in one transaction, after trying again those that were set aside
    /// before: a newer version may be able to read them.
    pub(super) fn set_unreadable_aside(&mut self) -> Result<Vec<Damage>, StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let found = self.retry_entries().and_then(|()| {
            let mut found = Vec::new();
            for kind in EntryKind::ALL {
                found.extend(self.set_kind_aside(kind)?);
            }
            Ok(found)
        });
        let end = if found.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end);
        ended.map_err(StoreError::from).and(found)
    }

    fn set_kind_aside(&self, kind: EntryKind) -> Result<Vec<Damage>, StoreError> {
        let names = {
            let mut query = self.connection.prepare(&format!("SELECT name FROM {}", kind.table()))?;
            let names = query.query_map([], |row| row.get::<_, Value>(0))?;
            names.collect::<Result<Vec<_>, _>>()?
        };
        let mut found = Vec::new();
        for name in names {
            match self.check_entry(kind, &name) {
                Ok(()) => {}
                Err(error) if error.is_about_one_entry() => {
                    let reason = match &error {
                        StoreError::Database(rusqlite::Error::InvalidColumnType(_, column, _)) => {
                            format!("its column {column} can't be read")
                        }
                        error => with_causes(error),
                    };
                    set_aside(&self.connection, kind, &name, &reason)?;
                    found.push(Damage::Entry { kind, name: shown(&name), reason });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Reads one entry and all that belongs to it.
    pub(super) fn check_entry(&self, kind: EntryKind, key: &Value) -> Result<(), StoreError> {
        let name = match key {
            Value::Text(name) => name.as_str(),
            _ => return Err(StoreError::Inconsistent("its name is no text")),
        };
        let is_equal = match kind {
            EntryKind::Box => {
                let stored = self.read_box(name)?;
                let configurations = self.configurations(&stored.definition.name)?;
                for configuration in &configurations {
                    self.files(&stored.definition.name, configuration.id)?;
                }
                let main = ConfigurationName::main();
                if stored.definition.name.as_str() == name
                    && !configurations.iter().any(|configuration| configuration.name == main)
                {
                    return Err(StoreError::Inconsistent("its main configuration is missing"));
                }
                stored.definition.name.as_str() == name
            }
            EntryKind::Switch => self.read_switch(name)?.definition.name.as_str() == name,
            EntryKind::Stack => self.read_stack(name)?.name.as_str() == name,
            EntryKind::Unconfirmed => self.read_unconfirmed(name)?.name.as_str() == name,
        };
        match is_equal {
            true => Ok(()),
            false => Err(StoreError::Inconsistent("its definition has another name")),
        }
    }

    /// Sets aside an entry that is readable but cannot be restored.
    pub(crate) fn set_aside(
        &mut self,
        kind: EntryKind,
        name: &str,
        reason: String,
    ) -> Result<Damage, StoreError> {
        let transaction = self.connection.transaction()?;
        set_aside(&transaction, kind, &Value::Text(name.into()), &reason)?;
        transaction.commit()?;
        Ok(Damage::Entry { kind, name: name.into(), reason })
    }

    /// Puts back all entries that were set aside and whose names are free.
    fn retry_entries(&self) -> Result<(), StoreError> {
        let entries = {
            let mut query = self.connection.prepare("SELECT id, source, name FROM set_aside ORDER BY id")?;
            let read = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            query.query_map([], read)?.collect::<Result<Vec<(i64, String, Value)>, _>>()?
        };
        for (entry, source, name) in entries {
            let Some(kind) = EntryKind::ALL.into_iter().find(|kind| kind.table() == source) else { continue };
            self.retry_entry(entry, kind, &name)?;
        }
        Ok(())
    }

    /// Puts an entry back. Returns whether its name was free.
    pub(super) fn retry_entry(&self, entry: i64, kind: EntryKind, name: &Value) -> Result<bool, StoreError> {
        let (table, columns) = (kind.table(), kind.columns());
        let query = format!("SELECT 1 FROM {table} WHERE name = ?1");
        if self.connection.query_row(&query, [name], |_| Ok(())).optional()?.is_some() {
            return Ok(false);
        }
        let order = format!(
            "INSERT INTO {table} ({columns}) SELECT {columns} FROM set_aside_{table} WHERE entry = ?1"
        );
        self.connection.execute(&order, [entry])?;
        if kind == EntryKind::Box {
            self.put_configurations_back(entry)?;
        }
        self.connection.execute(&format!("DELETE FROM set_aside_{table} WHERE entry = ?1"), [entry])?;
        self.connection.execute("DELETE FROM set_aside WHERE id = ?1", [entry])?;
        Ok(true)
    }

    /// Puts back a box's configurations. They get new ids, because theirs may be used by others.
    fn put_configurations_back(&self, entry: i64) -> Result<(), StoreError> {
        let ids = {
            let mut query = self
                .connection
                .prepare("SELECT id FROM set_aside_configurations WHERE entry = ?1 ORDER BY rowid")?;
            query.query_map([entry], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?
        };
        for id in ids {
            self.connection.execute(
                "INSERT INTO configurations (box, name, active, position, source, installed, swaps, text)
                 SELECT box, name, active, position, source, installed, swaps, text
                 FROM set_aside_configurations WHERE entry = ?1 AND id = ?2",
                [entry, id],
            )?;
            let order = "INSERT INTO files SELECT ?3, name, contents FROM set_aside_files
                         WHERE entry = ?1 AND configuration = ?2 ORDER BY rowid";
            self.connection.execute(order, [entry, id, self.connection.last_insert_rowid()])?;
        }
        self.connection.execute("DELETE FROM set_aside_files WHERE entry = ?1", [entry])?;
        self.connection.execute("DELETE FROM set_aside_configurations WHERE entry = ?1", [entry])?;
        Ok(())
    }
}

/// Moves an entry, with all that belongs to it, to the tables of entries that were set aside.
fn set_aside(connection: &Connection, kind: EntryKind, name: &Value, reason: &str) -> Result<(), StoreError> {
    let table = kind.table();
    let order = "INSERT INTO set_aside (source, name, reason, time) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(order, (table, name, reason, Time::now().to_string()))?;
    let entry = connection.last_insert_rowid();
    let order =
        format!("INSERT INTO set_aside_{table} SELECT ?1, {} FROM {table} WHERE name = ?2", kind.columns());
    connection.execute(&order, (entry, name))?;
    if kind == EntryKind::Box {
        connection.execute(
            "INSERT INTO set_aside_configurations
             SELECT ?1, id, box, name, active, position, source, installed, swaps, text
             FROM configurations WHERE box = ?2",
            (entry, name),
        )?;
        connection.execute(
            "INSERT INTO set_aside_files SELECT ?1, f.configuration, f.name, f.contents
             FROM files f JOIN configurations c ON c.id = f.configuration WHERE c.box = ?2 ORDER BY f.rowid",
            (entry, name),
        )?;
    }
    connection.execute(&format!("DELETE FROM {table} WHERE name = ?1"), [name])?;
    Ok(())
}

/// A key for a message.
pub(super) fn shown(name: &Value) -> String {
    match name {
        Value::Text(name) => name.clone(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{
        StoreChange, StoredBox, StoredConfiguration, StoredStack, StoredSwitch, StoredUnconfirmed,
    };
    use api::{BoxName, CreateBox, CreateSwitch, File, Stack};
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn add_box(store: &mut Store, name: &str) {
        let definition = CreateBox::new(name.parse().unwrap(), "");
        let stored = StoredBox { definition, stack: None, created: Time::now(), running: true };
        let configuration = StoredConfiguration {
            id: 0,
            name: ConfigurationName::main(),
            source: None,
            installed: Time::now(),
            swaps: 0,
            text: format!("text of {name}"),
        };
        let files = [File { name: "rules".into(), contents: "deny all".into() }];
        let added = StoreChange::AddBox(Box::new(stored), configuration, files.to_vec());
        store.apply(&[added]).unwrap();
    }

    fn names(store: &Store) -> Vec<String> {
        store.boxes().unwrap().iter().map(|stored| stored.definition.name.to_string()).collect()
    }

    fn in_folder(name: &str, test: impl FnOnce(&Path)) {
        let folder = std::env::temp_dir().join(format!("clickbox-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        test(&folder.join("store"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Each kind of damage to a box's rows: a change of the rows, the change back, and what the report says.
    const BOX_DAMAGE: &[(&str, &str, &str)] = &[
        (
            "UPDATE boxes SET definition = '{' || definition WHERE name = 'b'",
            "UPDATE set_aside_boxes SET definition = substr(definition, 2)",
            "key must be a string",
        ),
        (
            r#"UPDATE boxes SET definition = replace(definition, '"sandbox"', '"later":1,"sandbox"') WHERE name = 'b'"#,
            r#"UPDATE set_aside_boxes SET definition = replace(definition, '"later":1,', '')"#,
            "unknown field `later`",
        ),
        (
            r#"UPDATE boxes SET definition = replace(definition, '"name":"b"', '"name":"a"') WHERE name = 'b'"#,
            r#"UPDATE set_aside_boxes SET definition = replace(definition, '"name":"a"', '"name":"b"')"#,
            "its definition has another name",
        ),
        (
            "UPDATE boxes SET created = 'noon' WHERE name = 'b'",
            "UPDATE set_aside_boxes SET created = (SELECT created FROM boxes)",
            "its column created can't be read",
        ),
        (
            "UPDATE configurations SET text = x'ff' WHERE box = 'b'",
            "UPDATE set_aside_configurations SET text = 'text of b'",
            "its column text can't be read",
        ),
        (
            "UPDATE configurations SET name = 'other' WHERE box = 'b'",
            "UPDATE set_aside_configurations SET name = 'main'",
            "its main configuration is missing",
        ),
    ];

    #[test]
    fn an_unreadable_box_is_set_aside_and_tried_again() {
        for (damage, repair, expected) in BOX_DAMAGE {
            in_folder("aside", |path| {
                let mut store = Store::open(Some(path), None).unwrap();
                for name in ["a", "b", "c"] {
                    add_box(&mut store, name);
                }
                assert!(store.connection.execute(damage, []).unwrap() > 0, "{damage}");
                drop(store);
                // Every start tries again and reports.
                for _ in 0..2 {
                    let mut store = Store::open(Some(path), None).unwrap();
                    assert_eq!(names(&store), ["a", "c"]);
                    let found = store.take_damage();
                    assert_eq!(found.len(), 1, "{found:?}");
                    assert_eq!(found[0].subject().to_string(), "box/b");
                    let message = found[0].to_string();
                    assert!(
                        message.starts_with("box b was set aside") && message.contains(expected),
                        "{message}"
                    );
                }
                // Another box may take the id of its configuration.
                let mut store = Store::open(Some(path), None).unwrap();
                add_box(&mut store, "d");
                assert!(store.connection.execute(repair, []).unwrap() > 0, "{repair}");
                drop(store);
                let mut store = Store::open(Some(path), None).unwrap();
                assert!(store.take_damage().is_empty());
                assert_eq!(names(&store), ["a", "b", "c", "d"]);
                for name in names(&store) {
                    let name: BoxName = name.parse().unwrap();
                    let main = store.configuration(&name, &ConfigurationName::main()).unwrap().unwrap();
                    assert_eq!(main.text, format!("text of {name}"));
                    assert_eq!(store.files(&name, main.id).unwrap()[0].contents, "deny all".into());
                }
            });
        }
    }

    #[test]
    fn an_entry_stays_aside_while_its_name_is_taken() {
        in_folder("taken", |path| {
            let mut store = Store::open(Some(path), None).unwrap();
            add_box(&mut store, "b");
            store.set_aside(EntryKind::Box, "b", "it is odd".into()).unwrap();
            add_box(&mut store, "b");
            drop(store);
            let mut store = Store::open(Some(path), None).unwrap();
            assert_eq!((names(&store).len(), store.take_damage().len()), (1, 0));
            store.apply(&[StoreChange::RemoveBox("b".parse().unwrap())]).unwrap();
            drop(store);
            assert_eq!(names(&Store::open(Some(path), None).unwrap()), ["b"]);
        });
    }

    #[test]
    fn unreadable_switches_and_stacks_are_set_aside() {
        in_folder("others", |path| {
            let mut store = Store::open(Some(path), None).unwrap();
            for name in ["one", "two"] {
                let definition = CreateSwitch::new(name.parse().unwrap());
                let created = Time::now();
                let switch = StoredSwitch {
                    definition,
                    addresses: Vec::new(),
                    flows: crate::store::StoredFlows::default(),
                    steering: crate::store::StoredSteering::default(),
                    makers: std::collections::BTreeMap::new(),
                    stack: None,
                    created,
                };
                let (name, definition) = (name.parse().unwrap(), Stack::default());
                let stack = StoredStack { name, definition: definition.clone(), applied: created };
                let name = "one".parse().unwrap();
                let unconfirmed = StoredUnconfirmed { name, before: Some(definition) };
                let changes = [
                    StoreChange::PutSwitch(switch),
                    StoreChange::PutStack(stack),
                    StoreChange::PutUnconfirmed(unconfirmed),
                ];
                store.apply(&changes).unwrap();
            }
            let damage = "UPDATE switches SET definition = 'no' WHERE name = 'one';
                          UPDATE stacks SET applied = 'never' WHERE name = 'one';
                          UPDATE unconfirmed SET before = 'no';
                          INSERT INTO stacks VALUES ('no' || char(27) || 'name', '{}', '');";
            store.connection.execute_batch(damage).unwrap();
            drop(store);
            let mut store = Store::open(Some(path), None).unwrap();
            let found = store.take_damage();
            let subjects: Vec<String> = found.iter().map(|damage| damage.subject().to_string()).collect();
            assert_eq!(subjects, ["switch/one", "daemon", "stack/one", "stack/one"]);
            assert!(found.iter().all(|damage| !damage.to_string().contains('\x1b')));
            assert_eq!((store.switches().unwrap().len(), store.stacks().unwrap().len()), (1, 1));
            assert!(store.unconfirmed().unwrap().is_empty());
        });
    }

    #[test]
    fn a_damaged_file_is_reported() {
        in_folder("damaged", |path| {
            let mut store = Store::open(Some(path), None).unwrap();
            add_box(&mut store, "a");
            // The rows are readable, and only a check of the file finds that they violate the schema.
            let damage = "PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'running INTEGER', 'running INTEGER CHECK (running > 7)')
                WHERE name = 'boxes';
                PRAGMA writable_schema = OFF;";
            store.connection.execute_batch(damage).unwrap();
            drop(store);
            let mut store = Store::open(Some(path), None).unwrap();
            let found = store.take_damage();
            assert!(matches!(&found[..], [Damage::Finding(_)]), "{found:?}");
            assert!(found[0].to_string().contains("CHECK constraint failed in boxes"), "{}", found[0]);
            assert_eq!(names(&store), ["a"]);
        });
    }

    /// Opening includes the check of the file and of every entry.
    #[test]
    fn a_store_of_a_thousand_boxes_opens_quickly() {
        const OPEN_TIME_LIMIT: Duration = Duration::from_secs(2);
        in_folder("thousand", |path| {
            let mut store = Store::open(Some(path), None).unwrap();
            for number in 0..1000 {
                add_box(&mut store, &format!("box{number}"));
            }
            drop(store);
            let start = Instant::now();
            let store = Store::open(Some(path), None).unwrap();
            let time = start.elapsed();
            println!("a store of 1,000 boxes opened in {time:?}");
            assert!(time < OPEN_TIME_LIMIT, "{time:?}");
            assert_eq!(names(&store).len(), 1000);
        });
    }
}
