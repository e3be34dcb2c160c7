//! A bounded history with numbered entries: boxes' logs, and the fabric's events.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The last entries, numbered from 1. The oldest are removed when a limit is exceeded.
#[derive(Debug)]
pub(crate) struct History<T> {
    limits: HistoryLimits<T>,
    entries: Mutex<Entries<T>>,
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
    /// The number of the first entry that is kept; one more than `last` if there is none.
    pub(crate) first: u64,
    /// The number of the last entry.
    pub(crate) last: u64,
}

impl<T: Clone> History<T> {
    /// An empty history.
    pub(crate) fn new(limits: HistoryLimits<T>) -> Self {
        Self { limits, entries: Mutex::new(Entries { queue: VecDeque::new(), bytes: 0, last: 0 }) }
    }

    /// Adds an entry, created from its number.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> T) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let entry = make(entries.last);
        entries.bytes += (self.limits.size_of)(&entry);
        entries.queue.push_back(entry);
        while entries.queue.len() > 1
            && (entries.queue.len() > self.limits.entries || entries.bytes > self.limits.bytes)
            && let Some(oldest) = entries.queue.pop_front()
        {
            entries.bytes -= (self.limits.size_of)(&oldest);
        }
    }

    /// The number of the last entry.
    pub(crate) fn last(&self) -> u64 {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// The entries after `number` that are still kept, at most `most`.
    pub(crate) fn after(&self, number: u64, most: usize) -> HistoryPage<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let first = entries.last + 1 - entries.queue.len() as u64;
        let wanted = number.saturating_add(1);
        let from = wanted.max(first);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        let there = entries.queue.iter().skip(skip).take(most).cloned();
        HistoryPage { entries: (from..).zip(there).collect(), lost: from - wanted, first, last: entries.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept_and_numbered() {
        let ring = History::new(HistoryLimits { entries: 3, bytes: 9, size_of: |text: &&str| text.len() });
        assert_eq!(ring.after(0, 9), HistoryPage { entries: vec![], lost: 0, first: 1, last: 0 });
        for value in ["a", "b", "c", "d"] {
            ring.push(|_| value);
        }
        assert_eq!(ring.last(), 4);
        let page = ring.after(0, 9);
        assert_eq!((page.entries, page.lost), (vec![(2, "b"), (3, "c"), (4, "d")], 1));
        assert_eq!(ring.after(2, 1).entries, [(3, "c")]);
        assert_eq!(ring.after(u64::MAX, 9).entries, []);
        // A long entry removes several others; one that is too long removes all others.
        ring.push(|_| "eight...");
        assert_eq!(ring.after(3, 9).entries, [(4, "d"), (5, "eight...")]);
        ring.push(|_| "much too long");
        let page = ring.after(3, 9);
        assert_eq!((page.entries, page.lost), (vec![(6, "much too long")], 2));
    }
}
