//! A bounded history whose readers can follow it: boxes' logs, and the journal.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// The last entries, numbered from 1 or from where an earlier daemon ended. The oldest are removed when a limit is
/// exceeded.
#[derive(Debug)]
pub(crate) struct History<T> {
    bounds: HistoryLimits<T>,
    entries: Mutex<Entries<T>>,
    /// The number of the last entry, for readers that wait.
    last: watch::Sender<u64>,
}

/// The limits of a history.
#[derive(Debug)]
pub(crate) struct HistoryLimits<T> {
    /// Maximum number of entries.
    pub(crate) entries: usize,
    /// Maximum bytes of all entries. The last entry is always kept, however long it is.
    pub(crate) bytes: usize,
    /// The size of an entry in bytes.
    pub(crate) size_of: fn(&T) -> usize,
}

#[derive(Debug)]
struct Entries<T> {
    queue: VecDeque<T>,
    /// Bytes of all entries.
    bytes: usize,
    /// The number of the last entry.
    last: u64,
}

/// A page of entries for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HistoryPage<T> {
    /// The entries, each with its number.
    pub(crate) entries: Vec<(u64, T)>,
    /// The number of requested entries that were already removed.
    pub(crate) lost: u64,
}

impl<T: Clone> History<T> {
    /// An empty history whose first entry gets the number after `last`.
    pub(crate) fn new(bounds: HistoryLimits<T>, last: u64) -> Self {
        let entries = Mutex::new(Entries { queue: VecDeque::new(), bytes: 0, last });
        Self { bounds, entries, last: watch::Sender::new(last) }
    }

    /// Adds an entry, created from its number, and returns the number.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> T) -> u64 {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let number = entries.last;
        let entry = make(number);
        entries.bytes += (self.bounds.size_of)(&entry);
        entries.queue.push_back(entry);
        while entries.queue.len() > 1
            && (entries.queue.len() > self.bounds.entries || entries.bytes > self.bounds.bytes)
            && let Some(oldest) = entries.queue.pop_front()
        {
            entries.bytes -= (self.bounds.size_of)(&oldest);
        }
        drop(entries);
        self.last.send_replace(number);
        number
    }

    /// The number of the last entry.
    pub(crate) fn last(&self) -> u64 {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// The entries after `number` that are still kept, at most `most`.
    pub(crate) fn after(&self, number: u64, most: usize) -> HistoryPage<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let first = entries.last + 1 - entries.queue.len() as u64;
        let from = (number + 1).max(first);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        let there = entries.queue.iter().skip(skip).take(most).cloned();
        HistoryPage { entries: (from..).zip(there).collect(), lost: from - (number + 1) }
    }

    /// A receiver of the number of the last entry, notified whenever it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept_and_numbered() {
        let ring =
            History::new(HistoryLimits { entries: 3, bytes: 9, size_of: |text: &&str| text.len() }, 10);
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
        // A long entry removes several others; one that is too long removes all others.
        ring.push(|_| "eight...");
        assert_eq!(ring.after(13, 9).entries, vec![(14, "d"), (15, "eight...")]);
        ring.push(|_| "much too long");
        assert_eq!(ring.after(13, 9), HistoryPage { entries: vec![(16, "much too long")], lost: 2 });
        ring.push(|_| "f");
        assert_eq!(ring.after(13, 9), HistoryPage { entries: vec![(17, "f")], lost: 3 });
    }

    #[test]
    fn waiting_readers_are_notified() {
        let ring = History::new(HistoryLimits { entries: 3, bytes: 9, size_of: |_| 1 }, 0);
        let mut watch = ring.watch();
        assert!(!watch.has_changed().unwrap());
        ring.push(|number| number);
        assert!(watch.has_changed().unwrap());
        assert_eq!(*watch.borrow_and_update(), 1);
    }
}
