//! Writes to handlers of boxes that changed their configurations.

use super::boxes::parsed;
use super::change::StoreChange;
use super::error::StoreError;
use super::schema::Store;
use api::{BoxName, RecordedWrite, WriteEffect};
use rusqlite::Transaction;

fn number(of_write: u64) -> i64 {
    i64::try_from(of_write).unwrap_or(i64::MAX)
}

impl Store {
    /// The recorded writes of a box, in order. A box that an operation removes has none. Those that cannot be read are left
    /// out.
    pub(crate) fn writes(&self, name: &BoxName) -> Result<Vec<RecordedWrite>, StoreError> {
        let is_removed = |change: &StoreChange| matches!(change, StoreChange::RemoveBox(of) if of == name);
        if self.pending_changes().any(is_removed) {
            return Ok(Vec::new());
        }
        let mut query =
            self.connection.prepare_cached("SELECT entry FROM writes WHERE box = ?1 ORDER BY number")?;
        let texts = query.query_map([name.as_str()], |row| row.get::<_, String>(0))?;
        Ok(texts.flatten().filter_map(|text| parsed(&text).ok()).collect())
    }
}

fn insert(transaction: &Transaction, name: &BoxName, write: &RecordedWrite) -> Result<(), StoreError> {
    let entry = serde_json::to_string(write).map_err(|error| StoreError::Entry("write", error))?;
    let order = "INSERT OR REPLACE INTO writes VALUES (?1, ?2, ?3)";
    transaction.prepare_cached(order)?.execute((name.as_str(), number(write.number), entry))?;
    Ok(())
}

/// Adds a write. A setting replaces the earlier write to its handler.
pub(super) fn add_write(
    transaction: &Transaction,
    name: &BoxName,
    write: &RecordedWrite,
) -> Result<(), StoreError> {
    if write.effect == WriteEffect::Setting {
        let order = "DELETE FROM writes WHERE box = ?1 AND entry ->> 'handler' = ?2 AND entry ->> 'configuration' = ?3";
        let key = (name.as_str(), &write.handler, write.configuration.as_str());
        transaction.prepare_cached(order)?.execute(key)?;
    }
    insert(transaction, name, write)
}

/// Makes the writes up to number `last` these.
pub(super) fn replace_writes(
    transaction: &Transaction,
    name: &BoxName,
    writes: &[RecordedWrite],
    last: u64,
) -> Result<(), StoreError> {
    let order = "DELETE FROM writes WHERE box = ?1 AND number <= ?2";
    transaction.prepare_cached(order)?.execute((name.as_str(), number(last)))?;
    // A box that was removed meanwhile has none.
    let query = "SELECT count(*) FROM boxes WHERE name = ?1";
    if transaction.query_row(query, [name.as_str()], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(());
    }
    writes.iter().try_for_each(|write| insert(transaction, name, write))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{StoredBox, StoredConfiguration};
    use api::{ConfigurationName, CreateBox, Time, WriteOrigin};

    #[test]
    fn writes_are_stored_replaced_and_removed_with_their_box() {
        let mut store = Store::open(None, None).unwrap();
        let name: BoxName = "fw".parse().unwrap();
        let definition = CreateBox::new(name.clone(), "");
        let stored = StoredBox { definition, stack: None, created: Time::now(), running: true };
        let main = StoredConfiguration {
            id: 0,
            name: ConfigurationName::main(),
            source: None,
            installed: Time::now(),
            swaps: 0,
            text: String::new(),
        };
        store.apply(&[StoreChange::AddBox(Box::new(stored), main, Vec::new())]).unwrap();
        let write = |number, handler: &str, effect| RecordedWrite {
            number,
            origin: WriteOrigin::Client,
            configuration: ConfigurationName::main(),
            handler: handler.into(),
            value: api::Value(vec![0xff, number as u8]),
            times: None,
            effect,
            in_config: true,
            time: Time::now(),
        };
        let add = |write: &RecordedWrite| StoreChange::RecordWrite(name.clone(), write.clone());
        let all = [
            write(1, "f.rules", WriteEffect::Setting),
            write(2, "r.add", WriteEffect::Edit),
            write(3, "r.add", WriteEffect::Edit),
            write(4, "f.rules", WriteEffect::Setting),
        ];
        all.iter().for_each(|write| store.apply(&[add(write)]).unwrap());
        assert_eq!(store.writes(&name).unwrap(), all[1..]);
        // What a fabric reports replaces what it knows of, and nothing later.
        let reported = StoreChange::ReplaceWrites(name.clone(), vec![all[2].clone()], 3);
        store.apply(&[reported]).unwrap();
        assert_eq!(store.writes(&name).unwrap(), all[2..]);
        store.apply(&[StoreChange::RemoveBox(name.clone())]).unwrap();
        assert_eq!(store.writes(&name).unwrap(), []);
        store.apply(&[StoreChange::ReplaceWrites(name.clone(), all.to_vec(), 4)]).unwrap();
        assert_eq!(store.writes(&name).unwrap(), []);
        assert!(store.apply(&[add(&all[0])]).is_err());
    }
}
