//! The journal: events whose numbers continue across restarts of the daemon.

use crate::history::{History, HistoryLimits};
use crate::limits::{MAX_JOURNAL_BYTES, MAX_JOURNAL_EVENTS};
use api::Subject;
use api::{Event, EventKind, Time};

/// The events.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) History<Event>);

impl Journal {
    /// A journal whose first event gets the number after `last`.
    pub(crate) fn new(last: u64) -> Self {
        let size_of = |event: &Event| event.subject.len() + event.message.len();
        Self(History::new(
            HistoryLimits { entries: MAX_JOURNAL_EVENTS, bytes: MAX_JOURNAL_BYTES, size_of },
            last,
        ))
    }

    /// Records an event. Texts from a box must already be escaped in `message`.
    pub(crate) fn note(&self, kind: EventKind, subject: impl Into<Subject>, message: impl Into<String>) {
        let (subject, message, time) = (subject.into().to_string(), message.into(), Time::now());
        self.0.push(|sequence| Event { sequence, time, kind, subject, message });
    }
}
