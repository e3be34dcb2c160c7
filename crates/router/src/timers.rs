//! Timers, ordered by expiry; with equal expiry in the order in which their spans began.

use alloc::collections::BTreeMap;

use packet::Timestamp;

/// All timers of all elements.
#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeMap<(Timestamp, u64), (usize, usize)>,
    set: BTreeMap<(usize, usize), (Timestamp, u64)>,
    sequence: u64,
    /// For each expired timer, when it was due and its rank.
    came: BTreeMap<(usize, usize), (Timestamp, u64)>,
}

impl Timers {
    /// Sets the expiry of a timer. An expired timer that is set to a later time keeps its start: as in Click, it is
    /// then a whole number of spans after its start, and precedes timers that started a moment later.
    pub(crate) fn set(&mut self, element: usize, timer: usize, at: Timestamp) {
        match self.came.get(&(element, timer)).filter(|(due, _)| at > *due) {
            Some(&(_, rank)) => self.insert(element, timer, (at, rank)),
            None => self.start(element, timer, at),
        }
    }

    /// Sets a timer to the end of a span that begins now.
    pub(crate) fn start(&mut self, element: usize, timer: usize, at: Timestamp) {
        let rank = self.sequence;
        self.sequence += 1;
        self.insert(element, timer, (at, rank));
    }

    fn insert(&mut self, element: usize, timer: usize, key: (Timestamp, u64)) {
        self.clear(element, timer);
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

    /// The next expiry.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// The elements that have a timer.
    pub(crate) fn elements(&self) -> impl Iterator<Item = usize> {
        self.set.keys().map(|(element, _)| *element)
    }

    /// The number of expired timers.
    pub(crate) fn due_count(&self, now: Timestamp) -> usize {
        self.due.range(..=(now, u64::MAX)).count()
    }

    /// Removes the next expired timer.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<(usize, usize)> {
        let (key, timer) = self.due.first_key_value().map(|(key, timer)| (*key, *timer))?;
        if key.0 > now {
            return None;
        }
        self.due.remove(&key);
        self.set.remove(&timer);
        self.came.insert(timer, key);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn simultaneous_timers_fire_in_order_of_start() {
        let at = Timestamp::from_millis;
        let mut timers = Timers::default();
        timers.start(0, 0, at(10));
        timers.start(1, 0, at(20));
        assert_eq!(timers.take(at(10)), Some((0, 0)));
        timers.set(0, 0, at(20));
        timers.set(2, 0, at(20));
        assert_eq!(timers.due_count(at(20)), 3);
        let order: Vec<_> = core::iter::from_fn(|| timers.take(at(20))).map(|(element, _)| element).collect();
        assert_eq!(order, [0, 1, 2]);
        // A timer that sets itself to a past time runs after the others.
        timers.start(3, 0, at(20));
        assert_eq!(timers.take(at(20)), Some((3, 0)));
        timers.start(4, 0, at(20));
        timers.set(3, 0, at(20));
        assert_eq!((timers.take(at(20)), timers.take(at(20))), (Some((4, 0)), Some((3, 0))));
    }
}
