//! Entries of the audit log in the store: of operations whose lines in the log's file may not be on the disk yet.

use super::boxes::parsed;
use super::error::StoreError;
use super::schema::Store;
use crate::audit::{MAX_STORED, StoredChange, StoredEntry};
use rusqlite::Transaction;

impl Store {
    /// The entries, each with its number, in order. Those that cannot be read are left out.
    pub(crate) fn audit_entries(&self) -> Result<Vec<StoredEntry>, StoreError> {
        let mut query = self.connection.prepare("SELECT id, entry FROM audit ORDER BY id")?;
        let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        Ok(rows.flatten().filter_map(|(id, text)| Some((id, parsed(&text).ok()?))).collect())
    }
}

/// Adds an entry, and removes those that the file has. The oldest go when there are too many.
pub(super) fn change_audit(transaction: &Transaction, change: &StoredChange) -> Result<(), StoreError> {
    let mut remove = transaction.prepare_cached("DELETE FROM audit WHERE id = ?1")?;
    change.removed.iter().try_for_each(|row| remove.execute([row]).map(drop))?;
    let oldest = change.row.saturating_sub(MAX_STORED);
    transaction.prepare_cached("DELETE FROM audit WHERE id <= ?1")?.execute([oldest])?;
    let order = "INSERT OR REPLACE INTO audit VALUES (?1, ?2)";
    transaction.prepare_cached(order)?.execute((change.row, &change.entry))?;
    Ok(())
}
