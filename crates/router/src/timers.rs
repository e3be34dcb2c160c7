//! Timers, in the order of their times.

use alloc::collections::BTreeMap;

use packet::Timestamp;

/// All timers of all elements.
#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeMap<(Timestamp, u64), (usize, usize)>,
    set: BTreeMap<(usize, usize), (Timestamp, u64)>,
    sequence: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, element: usize, timer: usize, at: Timestamp) {
        self.clear(element, timer);
        let key = (at, self.sequence);
        self.sequence += 1;
        self.due.insert(key, (element, timer));
        self.set.insert((element, timer), key);
    }

    pub(crate) fn clear(&mut self, element: usize, timer: usize) {
        if let Some(key) = self.set.remove(&(element, timer)) {
            self.due.remove(&key);
        }
    }

    pub(crate) fn get(&self, element: usize, timer: usize) -> Option<Timestamp> {
        self.set.get(&(element, timer)).map(|(at, _)| *at)
    }

    /// When the next one comes.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// How many have come.
    pub(crate) fn due_count(&self, now: Timestamp) -> usize {
        self.due.range(..=(now, u64::MAX)).count()
    }

    /// Takes the next one that has come.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<(usize, usize)> {
        let (key, timer) = self.due.first_key_value().map(|(key, timer)| (*key, *timer))?;
        if key.0 > now {
            return None;
        }
        self.due.remove(&key);
        self.set.remove(&timer);
        Some(timer)
    }
}
