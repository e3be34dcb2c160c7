//! The writes to handlers that changed a box's configurations: what its definition does not have.

use crate::limits::{MAX_RECORDED_BYTES, MAX_RECORDED_WRITES};
use model::{ConfigurationName, RecordedWrite, Time, Value, WriteEffect};

/// The writes, in order. For a setting only the last write is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteRecord {
    writes: Vec<RecordedWrite>,
    /// The number of the last write.
    last: u64,
    /// The oldest writes, which are not kept because there were too many.
    omitted: u64,
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

    /// The number of the last write that was ever recorded.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The number of writes that are not kept.
    pub(crate) fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The writes to a configuration, in order.
    pub(crate) fn of(&self, configuration: &ConfigurationName) -> Vec<RecordedWrite> {
        self.writes.iter().filter(|write| write.configuration == *configuration).cloned().collect()
    }

    /// Whether a write to this handler can be recorded without omitting another one.
    pub(crate) fn has_room(&self, configuration: &ConfigurationName, handler: &str, bytes: usize) -> bool {
        let others = || {
            let is_other = |write: &&RecordedWrite| {
                write.effect != WriteEffect::Setting
                    || write.handler != handler
                    || write.configuration != *configuration
            };
            self.writes.iter().filter(is_other)
        };
        others().count() < MAX_RECORDED_WRITES
            && others().map(size).sum::<usize>() + handler.len() + bytes <= MAX_RECORDED_BYTES
    }

    /// Records a write. A setting replaces the earlier write to its handler. If there are too many, the oldest are
    /// omitted.
    pub(crate) fn add(&mut self, new: NewWrite) -> RecordedWrite {
        if new.effect == WriteEffect::Setting {
            self.writes
                .retain(|write| write.handler != new.handler || write.configuration != *new.configuration);
        }
        self.last += 1;
        let write = RecordedWrite {
            number: self.last,
            configuration: new.configuration.clone(),
            handler: new.handler.into(),
            value: Value(new.value.to_vec()),
            effect: new.effect,
            in_config: new.in_config,
            time: Time::now(),
        };
        self.writes.push(write.clone());
        let mut bytes: usize = self.writes.iter().map(size).sum();
        let mut surplus = 0;
        while self.writes.len() - surplus > MAX_RECORDED_WRITES
            || bytes > MAX_RECORDED_BYTES && self.writes.len() - surplus > 1
        {
            bytes -= self.writes.get(surplus).map_or(0, size);
            surplus += 1;
        }
        self.writes.drain(..surplus);
        self.omitted += surplus as u64;
        write
    }

    /// Adds writes that an earlier fabric recorded. Those that this record has, or has had, are ignored.
    pub(crate) fn adopt(&mut self, writes: Vec<RecordedWrite>) {
        let last = self.last;
        self.writes.extend(writes.into_iter().filter(|write| write.number > last));
        self.writes.sort_by_key(|write| write.number);
        self.last = self.writes.last().map_or(last, |write| write.number.max(last));
    }

    /// Replaces the writes to a configuration, and returns those that no longer count.
    pub(crate) fn replace(
        &mut self,
        configuration: &ConfigurationName,
        writes: &[RecordedWrite],
    ) -> Vec<RecordedWrite> {
        let gone = self.writes.extract_if(.., |write| write.configuration == *configuration);
        let gone: Vec<RecordedWrite> =
            gone.filter(|gone| !writes.iter().any(|kept| kept.number == gone.number)).collect();
        self.writes.extend_from_slice(writes);
        self.writes.sort_by_key(|write| write.number);
        self.last = self.writes.last().map_or(self.last, |write| write.number.max(self.last));
        gone
    }

    /// Removes the writes that `is_lost` selects, and returns them.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&RecordedWrite) -> bool) -> Vec<RecordedWrite> {
        self.writes.extract_if(.., |write| is_lost(write)).collect()
    }

    /// Removes all writes, and returns them with the number of those that were not kept.
    pub(crate) fn lose_all(&mut self) -> (Vec<RecordedWrite>, u64) {
        (std::mem::take(&mut self.writes), std::mem::take(&mut self.omitted))
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
        assert_eq!(record.lose_all().1, MAX_RECORDED_WRITES as u64 + 1);
    }
}
