//! Operations: groups of changes that take effect together, in one transaction, or not at all.
//!
//! An operation begins with a record in the table `operations`, which says what is being done. Its changes wait in
//! memory, large texts and files in rows that are not active, while the supervisor realises them. The tables therefore
//! always hold what was acknowledged, and [`Store::commit`] replaces that by the new state and removes the record in
//! one transaction. If the daemon ends before, the next opening removes the record and the inactive rows.
//!
//! Only the commit waits for the disk. What is written before it lies in front of it in the write-ahead log, so a power
//! failure may lose both, but never the commit alone.

use super::audit::change_audit;
use super::boxes::{insert_box, insert_configuration};
use super::change::{Action, Interrupted, OperationId, OperationRecord, Staged, StoreChange};
use super::entries::{StoredBox, StoredConfiguration};
use super::error::StoreError;
use super::port_numbers::{forget_port_numbers, put_port_numbers};
use super::schema::{Store, Synchronous};
use super::switches::SwitchEntry;
use super::writes::{add_write, replace_writes};
use api::{BoxName, ConfigurationName, File, StackName, Subject, Time};
use rusqlite::{Connection, OptionalExtension, Transaction};

impl Store {
    /// Begins an operation. Its record does not wait for the disk.
    pub(crate) fn begin(&mut self, action: Action, subject: &Subject) -> Result<OperationId, StoreError> {
        let (id, record) = (self.next_operation(), record(action, subject));
        self.change_unsynced(|connection| insert_record(connection, id, &record))?;
        self.staged.insert(id, Staged::default());
        Ok(id)
    }

    /// Begins an operation that creates a box. Its record is written together with the [box](Self::stage_box).
    pub(crate) fn begin_with_box(&mut self, action: Action, subject: &Subject) -> OperationId {
        let id = self.next_operation();
        let record = Some(record(action, subject));
        self.staged.insert(id, Staged { record, changes: Vec::new() });
        id
    }

    fn next_operation(&mut self) -> OperationId {
        self.last_operation += 1;
        OperationId(self.last_operation)
    }

    /// Adds a change to an operation. Readers of configurations see it at once.
    pub(crate) fn add_change(&mut self, operation: OperationId, change: StoreChange) {
        self.staged.entry(operation).or_default().changes.push(change);
    }

    /// Adds a configuration to an operation, with the given files and those of the active one that they do not replace.
    /// It is written now, so that an operation that needs too much space fails before it has changed anything.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoBox`] if the box was removed meanwhile.
    pub(crate) fn stage(
        &mut self,
        operation: OperationId,
        name: &BoxName,
        configuration: &StoredConfiguration,
        files: &[File],
    ) -> Result<(), StoreError> {
        let id = self.change_unsynced(|connection| {
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
        })?;
        self.add_change(operation, StoreChange::Activate(name.clone(), configuration.name.clone(), id));
        Ok(())
    }

    /// Adds a box with its main configuration to an operation. It is written now, like a [configuration](Self::stage),
    /// unless the operation replaces a box of this name.
    pub(crate) fn stage_box(
        &mut self,
        operation: OperationId,
        stored: StoredBox,
        configuration: StoredConfiguration,
        files: Vec<File>,
    ) -> Result<(), StoreError> {
        let record = self.staged.get(&operation).and_then(|staged| staged.record.clone());
        let id = self.change_unsynced(|connection| {
            let transaction = connection.transaction()?;
            let name = &stored.definition.name;
            let is_there = {
                let mut query = transaction.prepare_cached("SELECT 1 FROM boxes WHERE name = ?1")?;
                query.exists([name.as_str()])?
            };
            if is_there {
                return Ok(None);
            }
            record.iter().try_for_each(|record| insert_record(&transaction, operation, record))?;
            insert_box(&transaction, &stored, Some(operation))?;
            let id = insert_configuration(&transaction, name, &configuration, &files, false)?;
            transaction.commit()?;
            Ok(Some(id))
        })?;
        self.staged.entry(operation).and_modify(|staged| staged.record = None);
        self.add_change(
            operation,
            match id {
                Some(id) => StoreChange::AdmitBox(stored.definition.name, id),
                None => StoreChange::AddBox(Box::new(stored), configuration, files),
            },
        );
        Ok(())
    }

    /// Makes all changes of an operation, and ends it. They are on the disk when this returns.
    ///
    /// # Errors
    ///
    /// Nothing is changed, and the operation is not ended: [abandon](Self::abandon) it.
    pub(crate) fn commit(&mut self, operation: OperationId) -> Result<(), StoreError> {
        let staged = self.staged.remove(&operation).unwrap_or_default();
        let done = self.make(&staged.changes, Some(operation));
        if done.is_err() {
            self.staged.insert(operation, staged);
        }
        done
    }

    /// Takes the entry of the audit log out of an operation whose commit has failed.
    pub(crate) fn withdraw_audit(&mut self, operation: OperationId) {
        if let Some(staged) = self.staged.get_mut(&operation) {
            staged.changes.retain(|change| !matches!(change, StoreChange::Audit(_)));
        }
    }

    /// Makes changes that need no operation, because nothing remains to be done when they are stored.
    pub(crate) fn apply(&mut self, changes: &[StoreChange]) -> Result<(), StoreError> {
        self.make(changes, None)
    }

    /// Ends an operation without its changes.
    pub(crate) fn abandon(&mut self, operation: OperationId) {
        let staged = self.staged.remove(&operation).unwrap_or_default();
        let done = self.change_unsynced(|connection| {
            let transaction = connection.transaction()?;
            for change in &staged.changes {
                if let StoreChange::Activate(_, _, id) = change {
                    transaction.execute("DELETE FROM configurations WHERE id = ?1 AND NOT active", [id])?;
                }
            }
            transaction.execute("DELETE FROM boxes WHERE operation = ?1", [operation.0])?;
            end(&transaction, operation)?;
            Ok(transaction.commit()?)
        });
        // What cannot be removed now, for example because the disk is full, has no effect, and the next opening of the
        // store removes it.
        drop(done);
    }

    fn make(&mut self, changes: &[StoreChange], operation: Option<OperationId>) -> Result<(), StoreError> {
        self.set_synchronous(Synchronous::Full)?;
        #[cfg(test)]
        let commits_fail = self.commits_fail;
        self.change(|connection| {
            let transaction = connection.transaction()?;
            changes.iter().try_for_each(|change| make_change(&transaction, change))?;
            let removed = changes.iter().filter_map(|change| match change {
                StoreChange::RemoveSwitch(name) => Some(name),
                _ => None,
            });
            removed.into_iter().try_for_each(|name| forget_port_numbers(&transaction, name))?;
            if let Some(operation) = operation {
                end(&transaction, operation)?;
            }
            #[cfg(test)]
            if commits_fail {
                return Err(StoreError::Full);
            }
            Ok(transaction.commit()?)
        })
    }

    /// Makes the commits of operations fail.
    #[cfg(test)]
    pub(crate) fn fail_commits(&mut self, fail: bool) {
        self.commits_fail = fail;
    }

    /// Makes a change that does not wait for the disk.
    pub(super) fn change_unsynced<T>(
        &mut self,
        change: impl Fn(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.set_synchronous(Synchronous::Normal)?;
        self.change(change)
    }

    /// Removes what operations left that had not ended, and returns them.
    pub(super) fn take_interrupted_back(&mut self) -> Result<Vec<Interrupted>, StoreError> {
        let transaction = self.connection.transaction()?;
        let interrupted = {
            let mut query =
                transaction.prepare("SELECT action, subject, began FROM operations ORDER BY id")?;
            let rows = query.query_map([], |row| {
                let (action, subject): (String, String) = (row.get(0)?, row.get(1)?);
                Ok(Interrupted {
                    action: Action::ALL.into_iter().find(|known| known.name() == action),
                    subject: subject.parse().unwrap_or(Subject::Daemon),
                    began: row.get(2)?,
                })
            })?;
            rows.collect::<Result<Vec<_>, _>>()?
        };
        transaction.execute("DELETE FROM operations", [])?;
        transaction.execute("DELETE FROM boxes WHERE operation IS NOT NULL", [])?;
        transaction.execute("DELETE FROM configurations WHERE NOT active", [])?;
        transaction.commit()?;
        Ok(interrupted)
    }

    /// The changes of all operations that have not ended.
    pub(super) fn pending_changes(&self) -> impl Iterator<Item = &StoreChange> {
        self.staged.values().flat_map(|staged| &staged.changes)
    }
}

fn record(action: Action, subject: &Subject) -> OperationRecord {
    OperationRecord { action, subject: subject.to_string(), began: Time::now().to_string() }
}

fn insert_record(
    connection: &Connection,
    id: OperationId,
    record: &OperationRecord,
) -> Result<(), StoreError> {
    let OperationRecord { action, subject, began } = record;
    let order = "INSERT INTO operations (id, action, subject, began) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(order)?.execute((id.0, action.name(), subject, began))?;
    Ok(())
}

/// Removes the record of an operation.
fn end(transaction: &Transaction, operation: OperationId) -> Result<(), StoreError> {
    transaction.prepare_cached("DELETE FROM operations WHERE id = ?1")?.execute([operation.0])?;
    Ok(())
}

fn make_change(transaction: &Transaction, change: &StoreChange) -> Result<(), StoreError> {
    match change {
        StoreChange::AddBox(stored, configuration, files) => {
            insert_box(transaction, stored, None)?;
            insert_configuration(transaction, &stored.definition.name, configuration, files, true)?;
        }
        StoreChange::AdmitBox(name, id) => {
            let order = "UPDATE boxes SET operation = NULL WHERE name = ?1";
            if transaction.prepare_cached(order)?.execute([name.as_str()])? == 0 {
                return Err(StoreError::NoBox(name.clone()));
            }
            let order = "UPDATE configurations SET active = 1 WHERE id = ?1";
            transaction.prepare_cached(order)?.execute([id])?;
        }
        StoreChange::DefineBox(definition) => {
            let text = serde_json::to_string(definition).map_err(|error| StoreError::Entry("box", error))?;
            let order = "UPDATE boxes SET definition = ?2 WHERE name = ?1";
            let found = transaction.execute(order, (definition.name.as_str(), text))?;
            if found == 0 {
                return Err(StoreError::NoBox(definition.name.clone()));
            }
        }
        StoreChange::SetRunning(name, running) => {
            let order = "UPDATE boxes SET running = ?2 WHERE name = ?1";
            transaction.execute(order, (name.as_str(), running))?;
        }
        StoreChange::RemoveBox(name) => {
            transaction.execute("DELETE FROM boxes WHERE name = ?1", [name.as_str()])?;
        }
        StoreChange::Activate(name, configuration, id) => {
            activate(transaction, name, configuration, *id)?;
        }
        StoreChange::RecordWrite(name, write) => add_write(transaction, name, write)?,
        StoreChange::ReplaceWrites(name, writes, last) => {
            replace_writes(transaction, name, writes, *last)?;
        }
        StoreChange::RemoveConfiguration(name, configuration) => {
            let order = "DELETE FROM configurations WHERE box = ?1 AND name = ?2";
            transaction.execute(order, (name.as_str(), configuration.as_str()))?;
        }
        StoreChange::PutSwitch(stored) => {
            let entry = serde_json::to_string(&SwitchEntry::of(stored));
            let entry = entry.map_err(|error| StoreError::Entry("switch", error))?;
            transaction.execute(
                "INSERT INTO switches VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (name) DO UPDATE SET definition = ?2, stack = ?3, created = ?4",
                (
                    stored.definition.name.as_str(),
                    entry,
                    stored.stack.as_ref().map(StackName::as_str),
                    stored.created.to_string(),
                ),
            )?;
        }
        StoreChange::RemoveSwitch(name) => {
            transaction.execute("DELETE FROM switches WHERE name = ?1", [name.as_str()])?;
        }
        StoreChange::PutPortNumbers(switch, numbers) => put_port_numbers(transaction, switch, numbers)?,
        StoreChange::PutStack(stored) => {
            let definition = serde_json::to_string(&stored.definition);
            let definition = definition.map_err(|error| StoreError::Entry("stack", error))?;
            transaction.execute(
                "INSERT INTO stacks VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET definition = ?2, applied = ?3",
                (stored.name.as_str(), definition, stored.applied.to_string()),
            )?;
        }
        StoreChange::RemoveStack(name) => {
            transaction.execute("DELETE FROM stacks WHERE name = ?1", [name.as_str()])?;
        }
        StoreChange::PutUnconfirmed(stored) => {
            let before = stored.before.as_ref().map(serde_json::to_string).transpose();
            let before = before.map_err(|error| StoreError::Entry("stack", error))?;
            transaction.execute(
                "INSERT INTO unconfirmed VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET before = ?2",
                (stored.name.as_str(), before),
            )?;
        }
        StoreChange::RemoveUnconfirmed(name) => {
            transaction.execute("DELETE FROM unconfirmed WHERE name = ?1", [name.as_str()])?;
        }
        StoreChange::Audit(change) => change_audit(transaction, change)?,
    }
    Ok(())
}

/// Replaces the active configuration by a staged one.
fn activate(
    transaction: &Transaction,
    name: &BoxName,
    configuration: &ConfigurationName,
    id: i64,
) -> Result<(), StoreError> {
    let activated = transaction.execute(
        "UPDATE configurations SET active = 1, position = coalesce((SELECT position FROM configurations
         WHERE box = ?1 AND name = ?2 AND active), position) WHERE id = ?3",
        (name.as_str(), configuration.as_str(), id),
    )?;
    if activated == 0 {
        return Err(StoreError::NoBox(name.clone()));
    }
    transaction.execute(
        "DELETE FROM configurations WHERE box = ?1 AND name = ?2 AND active AND id <> ?3",
        (name.as_str(), configuration.as_str(), id),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What precedes each page in a write-ahead log, and the log's own header.
    const FRAME_HEADER: usize = 24;
    const LOG_HEADER: usize = 32;

    /// A power failure may lose a part of the log and keep what follows it. The next daemon writes again over the lost
    /// part. If it writes the same, the rest of the log must not become valid again.
    #[test]
    fn what_a_power_failure_lost_never_comes_back() {
        let folder = std::env::temp_dir().join(format!("clickbox-store-lost-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let copy = |from: &str, to: &str| {
            for suffix in ["", "-wal"] {
                let [from, to] = [from, to].map(|name| path(&format!("{name}{suffix}")));
                std::fs::copy(from, to).unwrap();
            }
        };
        let mut store = Store::open(Some(&path("first")), None).unwrap();
        let before = std::fs::metadata(path("first-wal")).unwrap().len() as usize;
        let abandoned = store.begin(Action::Change, &Subject::Daemon).unwrap();
        store.abandon(abandoned);
        store.begin(Action::Change, &Subject::Daemon).unwrap();
        copy("first", "second");
        let mut log = std::fs::read(path("second-wal")).unwrap();
        let page: u32 = store.connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
        let frame = FRAME_HEADER + page as usize;
        assert_eq!((before % frame, log.len()), (LOG_HEADER, before + 3 * frame), "each change is one frame");
        log[before + frame + FRAME_HEADER] ^= 0xff;
        std::fs::write(path("second-wal"), log).unwrap();
        let mut second = Store::open(Some(&path("second")), None).unwrap();
        assert_eq!(second.take_interrupted().len(), 1, "the first, whose end is lost");
        copy("second", "third");
        let mut third = Store::open(Some(&path("third")), None).unwrap();
        assert_eq!(third.take_interrupted().len(), 0);
        drop((store, second, third));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
