//! The journal in the store.

use super::boxes::parsed;
use super::error::StoreError;
use super::schema::{Store, Synchronous};
use api::Event;

impl Store {
    /// The stored events, by number. Those that cannot be read are left out.
    pub(crate) fn events(&self) -> Result<Vec<Event>, StoreError> {
        let mut query = self.connection.prepare("SELECT event FROM events ORDER BY sequence")?;
        let texts = query.query_map([], |row| row.get::<_, String>(0))?;
        Ok(texts.flatten().filter_map(|text| parsed(&text).ok()).collect())
    }

    /// Stores events, and removes those with numbers below `first`. `fetched` has counters and their new values: the
    /// numbers of the fabrics' last events among all so far. Does not wait for the disk.
    pub(crate) fn save_events(
        &mut self,
        events: &[Event],
        first: u64,
        fetched: &[(String, u64)],
    ) -> Result<(), StoreError> {
        self.set_synchronous(Synchronous::Normal)?;
        // Unlike the changes of an operation, this is not tried again after a checkpoint: operations must not wait for
        // the journal.
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT OR REPLACE INTO events VALUES (?1, ?2)")?;
            for event in events {
                let text = serde_json::to_string(event).map_err(|error| StoreError::Entry("event", error))?;
                insert.execute((number(event.sequence), text))?;
            }
            transaction.prepare_cached("DELETE FROM events WHERE sequence < ?1")?.execute([number(first)])?;
            let order = "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
            let mut set = transaction.prepare_cached(order)?;
            for (name, value) in fetched {
                set.execute((name, number(*value)))?;
            }
        }
        Ok(transaction.commit()?)
    }
}

fn number(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{EventKind, Time};

    #[test]
    fn events_are_stored_within_bounds() {
        let mut store = Store::open(None, None).unwrap();
        let event = |sequence: u64| Event {
            sequence,
            time: Time::now(),
            kind: EventKind::BoxCrashed,
            subject: "box/fw".into(),
            owner: None,
            message: format!("the box crashed: {}", "x".repeat(100)),
        };
        let events: Vec<Event> = (1..=20).map(event).collect();
        store.save_events(&events[..12], 1, &[]).unwrap();
        store.save_events(&events[12..], 6, &[]).unwrap();
        assert_eq!(store.events().unwrap(), events[5..]);
        store.connection.execute("UPDATE events SET event = '{' WHERE sequence = 7", []).unwrap();
        store.connection.execute("UPDATE events SET event = x'ff' WHERE sequence = 9", []).unwrap();
        assert_eq!(store.events().unwrap().len(), 13);
    }
}
