//! A bounded history with readers who follow it: logs of boxes, and the journal.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// The last entries of something, numbered from 1 or from where an earlier life ended. The oldest go when there are too
/// many.
#[derive(Debug)]
pub(crate) struct History<T> {
    bounds: HistoryLimits<T>,
    entries: Mutex<Entries<T>>,
    /// The number of the last entry, for those who wait.
    last: watch::Sender<u64>,
}

/// How much a ring keeps.
#[derive(Debug)]
pub(crate) struct HistoryLimits<T> {
    /// Entries.
    pub(crate) entries: usize,
    /// Bytes of all of them; the last one is kept, however long it is.
    pub(crate) bytes: usize,
    /// Bytes of one.
    pub(crate) weigh: fn(&T) -> usize,
}

#[derive(Debug)]
struct Entries<T> {
    queue: VecDeque<T>,
    /// Bytes of all of them.
    bytes: usize,
    /// The number of the last one.
    last: u64,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HistoryPage<T> {
    /// The entries, each with its number.
    pub(crate) entries: Vec<(u64, T)>,
    /// How many were wanted and are gone already.
    pub(crate) lost: u64,
}

impl<T: Clone> History<T> {
    /// An empty ring, whose first entry has the number after `last`.
    pub(crate) fn new(bounds: HistoryLimits<T>, last: u64) -> Self {
        let entries = Mutex::new(Entries { queue: VecDeque::new(), bytes: 0, last });
        Self { bounds, entries, last: watch::Sender::new(last) }
    }

    /// Adds an entry, made from its number; the number.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> T) -> u64 {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let number = entries.last;
        let entry = make(number);
        entries.bytes += (self.bounds.weigh)(&entry);
        entries.queue.push_back(entry);
        while entries.queue.len() > 1
            && (entries.queue.len() > self.bounds.entries || entries.bytes > self.bounds.bytes)
            && let Some(oldest) = entries.queue.pop_front()
        {
            entries.bytes -= (self.bounds.weigh)(&oldest);
        }
        drop(entries);
        self.last.send_replace(number);
        number
    }

    /// The number of the last entry.
    pub(crate) fn last(&self) -> u64 {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// All entries after the one with this number that are still there, at most `most` of them.
    pub(crate) fn after(&self, number: u64, most: usize) -> HistoryPage<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let first = entries.last + 1 - entries.queue.len() as u64;
        let from = (number + 1).max(first);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        let there = entries.queue.iter().skip(skip).take(most).cloned();
        HistoryPage { entries: (from..).zip(there).collect(), lost: from - (number + 1) }
    }

    /// What tells the number of the last entry whenever it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept_and_numbered() {
        let ring = History::new(HistoryLimits { entries: 3, bytes: 9, weigh: |text: &&str| text.len() }, 10);
        assert_eq!(ring.after(10, 9), HistoryPage { entries: vec![], lost: 0 });
        for value in ["a", "b", "c", "d"] {
            ring.push(|_| value);
        }
        assert_eq!(ring.last(), 14);
        assert_eq!(
            ring.after(10, 9),
            HistoryPage { entries: vec![(12, "b"), (13, "c"), (14, "d")], lost: 1 }
        );
        assert_eq!(ring.after(12, 1), HistoryPage { entries: vec![(13, "c")], lost: 0 });
        assert_eq!(ring.after(14, 9), HistoryPage { entries: vec![], lost: 0 });
        assert_eq!(ring.after(99, 9).entries, vec![]);
        // Long ones push more than one out, and one that is too long all others.
        ring.push(|_| "eight...");
        assert_eq!(ring.after(13, 9).entries, vec![(14, "d"), (15, "eight...")]);
        ring.push(|_| "much too long");
        assert_eq!(ring.after(13, 9), HistoryPage { entries: vec![(16, "much too long")], lost: 2 });
        ring.push(|_| "f");
        assert_eq!(ring.after(13, 9), HistoryPage { entries: vec![(17, "f")], lost: 3 });
    }

    #[test]
    fn who_waits_is_told() {
        let ring = History::new(HistoryLimits { entries: 3, bytes: 9, weigh: |_| 1 }, 0);
        let mut watch = ring.watch();
        assert!(!watch.has_changed().unwrap());
        ring.push(|number| number);
        assert!(watch.has_changed().unwrap());
        assert_eq!(*watch.borrow_and_update(), 1);
    }
}
