//! The journal: events whose numbers continue across restarts of the daemon.

use crate::history::{History, HistoryLimits};
use crate::limits::{MAX_JOURNAL_BYTES, MAX_JOURNAL_EVENTS};
use crate::news::News;
use api::Subject;
use api::{Event, EventKind, Time};
use std::sync::Arc;

/// The events.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) History<Event>, Arc<News>);

impl Journal {
    /// A journal with the events of an earlier daemon. The next one gets the number after `last`. New events are
    /// announced, so that they are stored.
    pub(crate) fn new(earlier: Vec<Event>, last: u64, news: Arc<News>) -> Self {
        let size_of = |event: &Event| event.subject.len() + event.message.len();
        let limits = HistoryLimits { entries: MAX_JOURNAL_EVENTS, bytes: MAX_JOURNAL_BYTES, size_of };
        let earlier = earlier.into_iter().map(|event| (event.sequence, event)).collect();
        Self(History::restored(limits, earlier, last), news)
    }

    /// Records an event of the fabric, with a number of this journal.
    pub(crate) fn forward(&self, event: Event) {
        self.0.push(|sequence| Event { sequence, ..event });
    }

    /// Records an event. Texts from a box must already be escaped in `message`.
    pub(crate) fn note(&self, kind: EventKind, subject: impl Into<Subject>, message: impl Into<String>) {
        let (subject, message, time) = (subject.into().to_string(), message.into(), Time::now());
        self.0.push(|sequence| Event { sequence, time, kind, subject, message });
        self.1.announce();
    }
}
