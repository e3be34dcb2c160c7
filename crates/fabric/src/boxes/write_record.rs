//! The writes to handlers that changed a box's configurations: what its definition does not have.

use crate::limits::{MAX_OWN_WRITE_EVENTS, MAX_OWN_WRITES, MAX_RECORDED_BYTES, MAX_RECORDED_WRITES};
use model::{ConfigurationName, RecordedWrite, Time, Value, WriteEffect, WriteOrigin};
use std::collections::BTreeMap;

/// The writes, in order. For a setting only the last write is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteRecord {
    writes: Vec<RecordedWrite>,
    /// The number of the last write.
    last: u64,
    /// The oldest writes of clients, and the box's own to further handlers, which are not kept because there were too many.
    omitted: u64,
    omitted_own: BTreeMap<ConfigurationName, u64>,
    /// Events about the box's own writes since a client last started it or installed a configuration.
    own_events: u32,
}

/// What a box wrote to a handler of its own, as it says itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnWrite<'a> {
    pub(crate) write: NewWrite<'a>,
    pub(crate) times: u64,
}

/// A write to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewWrite<'a> {
    pub(crate) configuration: &'a ConfigurationName,
    pub(crate) handler: &'a str,
    pub(crate) value: &'a [u8],
    pub(crate) effect: WriteEffect,
    pub(crate) in_config: bool,
}

fn size(write: &RecordedWrite) -> usize {
    write.handler.len() + write.value.0.len()
}

impl WriteRecord {
    /// The writes, in order.
    pub(crate) fn writes(&self) -> &[RecordedWrite] {
        &self.writes
    }

    /// The writes of clients, in order.
    pub(crate) fn of_clients(&self) -> Vec<RecordedWrite> {
        self.writes.iter().filter(|write| !write.is_own()).cloned().collect()
    }

    /// The number of the last write that was ever recorded.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The number of writes that are not kept.
    pub(crate) fn omitted(&self) -> u64 {
        // A box chooses its own numbers.
        self.omitted_own.values().fold(self.omitted, |sum, count| sum.saturating_add(*count))
    }

    /// The writes of clients to a configuration, in order.
    pub(crate) fn of(&self, configuration: &ConfigurationName) -> Vec<RecordedWrite> {
        let mut writes = self.of_clients();
        writes.retain(|write| write.configuration == *configuration);
        writes
    }

    /// Whether a write to this handler can be recorded without omitting another one.
    pub(crate) fn has_room(&self, configuration: &ConfigurationName, handler: &str, bytes: usize) -> bool {
        let others = || {
            let is_other = |write: &&RecordedWrite| {
                !write.is_own()
                    && (write.effect != WriteEffect::Setting
                        || write.handler != handler
                        || write.configuration != *configuration)
            };
            self.writes.iter().filter(is_other)
        };
        others().count() < MAX_RECORDED_WRITES
            && others().map(size).sum::<usize>() + handler.len() + bytes <= MAX_RECORDED_BYTES
    }

    /// Records a write of a client. A setting replaces the earlier writes to its handler. If there are too many, the oldest
    /// are omitted.
    pub(crate) fn add(&mut self, new: NewWrite) -> RecordedWrite {
        if new.effect == WriteEffect::Setting {
            self.writes
                .retain(|write| write.handler != new.handler || write.configuration != *new.configuration);
        }
        let write = self.push(new, WriteOrigin::Client, None);
        let is_client = |write: &&RecordedWrite| !write.is_own();
        let mut bytes: usize = self.writes.iter().filter(is_client).map(size).sum();
        let mut count = self.writes.iter().filter(is_client).count();
        let omitted = &mut self.omitted;
        self.writes.retain(|write| {
            let is_surplus =
                !write.is_own() && (count > MAX_RECORDED_WRITES || bytes > MAX_RECORDED_BYTES && count > 1);
            if is_surplus {
                (bytes, count) = (bytes - size(write), count - 1);
                *omitted += 1;
            }
            !is_surplus
        });
        write
    }

    /// Records what the box wrote itself. Returns whether the handler is a new one.
    pub(crate) fn add_own(&mut self, own: OwnWrite) -> bool {
        let OwnWrite { write: new, times } = own;
        let before = self.writes.len();
        self.writes.retain(|write| {
            !write.is_own() || write.handler != new.handler || write.configuration != *new.configuration
        });
        let is_new = self.writes.len() == before;
        if is_new && self.writes.iter().filter(|write| write.is_own()).count() >= MAX_OWN_WRITES {
            self.add_omitted_own(new.configuration, times);
            return false;
        }
        self.push(new, WriteOrigin::Box, Some(times));
        is_new
    }

    /// Records how many more writes of its own a box has made to a configuration.
    pub(crate) fn add_omitted_own(&mut self, configuration: &ConfigurationName, times: u64) {
        self.omitted_own.insert(configuration.clone(), times);
    }

    fn push(&mut self, new: NewWrite, origin: WriteOrigin, times: Option<u64>) -> RecordedWrite {
        self.last += 1;
        let write = RecordedWrite {
            number: self.last,
            origin,
            configuration: new.configuration.clone(),
            handler: new.handler.into(),
            value: Value(new.value.to_vec()),
            times,
            effect: new.effect,
            in_config: new.in_config,
            time: Time::now(),
        };
        self.writes.push(write.clone());
        write
    }

    /// Adds writes that an earlier fabric recorded. Those that this record has, or has had, are ignored.
    pub(crate) fn adopt(&mut self, writes: Vec<RecordedWrite>) {
        let last = self.last;
        self.writes.extend(writes.into_iter().filter(|write| write.number > last));
        sorting::sort_by_key(&mut self.writes, |write| write.number);
        self.last = self.writes.last().map_or(last, |write| write.number.max(last));
    }

    /// Replaces all writes to a configuration, also those of the box itself.
    pub(crate) fn redefine(&mut self, configuration: &ConfigurationName, writes: &[RecordedWrite]) {
        self.lose_own(configuration);
        self.replace(configuration, writes);
    }

    /// Replaces the writes of clients to a configuration, and returns those that no longer count.
    pub(crate) fn replace(
        &mut self,
        configuration: &ConfigurationName,
        writes: &[RecordedWrite],
    ) -> Vec<RecordedWrite> {
        let gone =
            self.writes.extract_if(.., |write| write.configuration == *configuration && !write.is_own());
        let gone: Vec<RecordedWrite> =
            gone.filter(|gone| !writes.iter().any(|kept| kept.number == gone.number)).collect();
        self.writes.extend_from_slice(writes);
        sorting::sort_by_key(&mut self.writes, |write| write.number);
        self.last = self.writes.last().map_or(self.last, |write| write.number.max(self.last));
        gone
    }

    /// Removes the writes that `is_lost` selects, and returns them.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&RecordedWrite) -> bool) -> Vec<RecordedWrite> {
        self.writes.extract_if(.., |write| is_lost(write)).collect()
    }

    /// Whether an event about the box's own writes may be reported, which is then counted.
    pub(crate) fn takes_own_event(&mut self) -> bool {
        self.own_events += 1;
        self.own_events <= MAX_OWN_WRITE_EVENTS
    }

    /// Allows further events about the box's own writes.
    pub(crate) fn renew_own_events(&mut self) {
        self.own_events = 0;
    }

    /// Removes the box's own writes to a configuration, and returns them.
    pub(crate) fn lose_own(&mut self, configuration: &ConfigurationName) -> Vec<RecordedWrite> {
        self.omitted_own.remove(configuration);
        self.lose(|write| write.is_own() && write.configuration == *configuration)
    }

    /// Removes all of the box's own writes, and returns them.
    pub(crate) fn lose_all_own(&mut self) -> Vec<RecordedWrite> {
        self.omitted_own.clear();
        self.lose(RecordedWrite::is_own)
    }

    /// Makes these the box's own writes again.
    pub(crate) fn restore_own(&mut self, writes: Vec<RecordedWrite>) {
        self.lose_all_own();
        self.writes.extend(writes);
        sorting::sort_by_key(&mut self.writes, |write| write.number);
    }

    /// Removes the writes of clients, and returns them with the number of those that were not kept.
    pub(crate) fn lose_clients(&mut self) -> (Vec<RecordedWrite>, u64) {
        (self.lose(|write| !write.is_own()), std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(record: &mut WriteRecord, handler: &str, value: &str, effect: WriteEffect) {
        let configuration = &ConfigurationName::main();
        record.add(NewWrite { configuration, handler, value: value.as_bytes(), effect, in_config: false });
    }

    fn texts(record: &WriteRecord) -> Vec<String> {
        record.writes().iter().map(|write| format!("{} {}", write.handler, write.value.text())).collect()
    }

    #[test]
    fn settings_replace_each_other_and_edits_add_up() {
        let mut record = WriteRecord::default();
        add(&mut record, "f.rules", "1", WriteEffect::Setting);
        add(&mut record, "r.add", "a", WriteEffect::Edit);
        add(&mut record, "r.add", "b", WriteEffect::Edit);
        add(&mut record, "f.rules", "2", WriteEffect::Setting);
        assert_eq!(texts(&record), ["r.add a", "r.add b", "f.rules 2"]);
        assert_eq!(record.last(), 4);
        assert_eq!(RecordedWrite::summary(record.writes()), "f.rules, r.add (2 times)");
        // What an earlier fabric recorded is adopted once.
        let mut next = WriteRecord::default();
        next.adopt(record.writes().to_vec());
        next.adopt(record.writes().to_vec());
        assert_eq!((texts(&next), next.last()), (texts(&record), 4));
        assert_eq!(next.lose(|write| write.effect == WriteEffect::Edit).len(), 2);
        let restored = record.of(&ConfigurationName::main());
        assert_eq!(next.replace(&ConfigurationName::main(), &restored), []);
        assert_eq!(texts(&next), texts(&record));
        assert_eq!(next.replace(&ConfigurationName::main(), &restored[..1]).len(), 2);
        assert_eq!(next.last(), 4);
    }

    #[test]
    fn the_oldest_writes_are_omitted_and_counted() {
        let mut record = WriteRecord::default();
        let main = ConfigurationName::main();
        add(&mut record, "f.rules", "", WriteEffect::Setting);
        for _ in 0..MAX_RECORDED_WRITES - 1 {
            assert!(record.has_room(&main, "r.add", 1));
            add(&mut record, "r.add", "x", WriteEffect::Edit);
        }
        assert!(!record.has_room(&main, "r.add", 1));
        assert!(record.has_room(&main, "f.rules", 1), "a setting is replaced");
        add(&mut record, "r.add", "y", WriteEffect::Edit);
        assert_eq!((record.writes().len(), record.omitted()), (MAX_RECORDED_WRITES, 1));
        add(&mut record, "r.add", &"z".repeat(MAX_RECORDED_BYTES), WriteEffect::Edit);
        assert_eq!((record.writes().len(), record.omitted()), (1, MAX_RECORDED_WRITES as u64 + 1));
        assert_eq!(record.lose_clients().1, MAX_RECORDED_WRITES as u64 + 1);
    }

    #[test]
    fn a_box_that_reports_endless_writes_takes_bounded_memory() {
        let mut record = WriteRecord::default();
        let (main, other) = (ConfigurationName::main(), "other".parse().unwrap());
        add(&mut record, "f.rules", "1", WriteEffect::Setting);
        let own = |record: &mut WriteRecord, configuration: &ConfigurationName, handler: &str| {
            let effect = WriteEffect::Edit;
            let write = NewWrite { configuration, handler, value: b"x", effect, in_config: false };
            record.add_own(OwnWrite { write, times: u64::MAX })
        };
        for number in 0..2 * MAX_OWN_WRITES {
            assert_eq!(own(&mut record, &main, &format!("e{number}.add")), number < MAX_OWN_WRITES);
        }
        assert!(!own(&mut record, &main, "e0.add"), "it is known");
        record.add_omitted_own(&other, u64::MAX);
        assert_eq!((record.writes().len(), record.omitted()), (MAX_OWN_WRITES + 1, u64::MAX));
        let events = (0..1000).filter(|_| record.takes_own_event()).count();
        assert_eq!(events, MAX_OWN_WRITE_EVENTS as usize);
        // The writes of clients remain.
        assert_eq!(record.lose_all_own().len(), MAX_OWN_WRITES);
        assert_eq!((texts(&record), record.omitted()), (vec!["f.rules 1".to_string()], 0));
    }
}
