//! A bounded history whose readers can follow it: boxes' logs, and the journal.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// The last entries, in the order of their numbers, which start at 1 or continue those of an earlier daemon. The oldest
/// are removed when a limit is exceeded.
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
    /// Each with its number. Between those of an earlier daemon and new ones, numbers may be missing.
    queue: VecDeque<(u64, T)>,
    /// Bytes of all entries.
    bytes: usize,
    /// The number of the last entry.
    last: u64,
    /// The number of the last entry that is no longer kept.
    removed: u64,
}

/// A page of entries for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HistoryPage<T> {
    /// The entries, each with its number.
    pub(crate) entries: Vec<(u64, T)>,
    /// The number of requested entries that were already removed.
    pub(crate) lost: u64,
}

impl<T> HistoryPage<T> {
    /// Whether there is nothing to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.lost == 0
    }
}

impl<T: Clone> History<T> {
    /// An empty history whose first entry gets the number after `last`.
    #[cfg(test)]
    pub(crate) fn new(bounds: HistoryLimits<T>, last: u64) -> Self {
        let entries = Mutex::new(Entries { queue: VecDeque::new(), bytes: 0, last, removed: last });
        Self { bounds, entries, last: watch::Sender::new(last) }
    }

    /// A history with the numbered entries of an earlier daemon. The next one gets the number after `last`.
    pub(crate) fn restored(bounds: HistoryLimits<T>, earlier: Vec<(u64, T)>, last: u64) -> Self {
        let last = earlier.last().map_or(last, |(number, _)| last.max(*number));
        let removed = earlier.first().map_or(last, |(number, _)| number.saturating_sub(1));
        let bytes = earlier.iter().map(|(_, entry)| (bounds.size_of)(entry)).sum();
        let entries = Mutex::new(Entries { queue: earlier.into(), bytes, last, removed });
        Self { bounds, entries, last: watch::Sender::new(last) }
    }

    /// Adds an entry, created from its number, and returns the number.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> T) -> u64 {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let number = entries.last;
        let entry = make(number);
        entries.bytes += (self.bounds.size_of)(&entry);
        entries.queue.push_back((number, entry));
        while entries.queue.len() > 1
            && (entries.queue.len() > self.bounds.entries || entries.bytes > self.bounds.bytes)
            && let Some((number, oldest)) = entries.queue.pop_front()
        {
            entries.bytes -= (self.bounds.size_of)(&oldest);
            entries.removed = number;
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
        let skip = entries.queue.partition_point(|(there, _)| *there <= number);
        let there = entries.queue.iter().skip(skip).take(most).cloned();
        HistoryPage { entries: there.collect(), lost: entries.removed.saturating_sub(number) }
    }

    /// The number of the first entry that is kept, or that will be.
    pub(crate) fn first(&self) -> u64 {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.queue.front().map_or(entries.last + 1, |(number, _)| *number)
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
    fn earlier_entries_are_kept_before_a_gap() {
        let limits = || HistoryLimits { entries: 3, bytes: 9, size_of: |text: &&str| text.len() };
        let ring = History::restored(limits(), vec![(7, "a"), (8, "b")], 20);
        assert_eq!((ring.first(), ring.last()), (7, 20));
        ring.push(|_| "c");
        let page = |number| ring.after(number, 9);
        assert_eq!(page(6), HistoryPage { entries: vec![(7, "a"), (8, "b"), (21, "c")], lost: 0 });
        assert_eq!(page(8), HistoryPage { entries: vec![(21, "c")], lost: 0 });
        ring.push(|_| "d");
        assert_eq!(ring.after(6, 1), HistoryPage { entries: vec![(8, "b")], lost: 1 });
        // The number that was reserved may be too small.
        assert_eq!(History::restored(limits(), vec![(7, "a")], 3).push(|_| "b"), 8);
        assert_eq!(History::restored(limits(), Vec::new(), 3).after(0, 9).lost, 3);
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
