//! The journal: events whose numbers continue across restarts of the daemon.

use crate::history::{History, HistoryLimits};
use crate::limits::{MAX_JOURNAL_BYTES, MAX_JOURNAL_EVENTS};
use crate::news::News;
use crate::owners::Owners;
use api::Subject;
use api::{Event, EventKind, Time};
use std::sync::Arc;

/// The events.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) history: History<Event>,
    /// The owners of the objects that events are about.
    pub(crate) owners: Owners,
    news: Arc<News>,
}

impl Journal {
    /// A journal with the events of an earlier daemon. The next one gets the number after `last`. New events are
    /// announced, so that they are stored.
    pub(crate) fn new(earlier: Vec<Event>, last: u64, news: Arc<News>) -> Self {
        let size_of = |event: &Event| event.subject.len() + event.message.len();
        let limits = HistoryLimits { entries: MAX_JOURNAL_EVENTS, bytes: MAX_JOURNAL_BYTES, size_of };
        let earlier = earlier.into_iter().map(|event| (event.sequence, event)).collect();
        Self { history: History::restored(limits, earlier, last), owners: Owners::default(), news }
    }

    /// Records an event of the fabric, with a number of this journal.
    pub(crate) fn forward(&self, event: Event) {
        let owner = event.subject.parse().ok().and_then(|subject| self.owners.of(&subject));
        self.history.push(|sequence| Event { sequence, owner, ..event });
    }

    /// Records an event. Texts from a box must already be escaped in `message`.
    pub(crate) fn note(&self, kind: EventKind, subject: impl Into<Subject>, message: impl Into<String>) {
        let (object, message, time) = (subject.into(), message.into(), Time::now());
        let (subject, owner) = (object.to_string(), self.owners.of(&object));
        self.history.push(|sequence| Event { sequence, time, kind, subject, owner, message });
        if matches!(kind, EventKind::BoxRemoved | EventKind::SwitchRemoved | EventKind::StackRemoved) {
            self.owners.remove(&object);
        }
        self.news.announce();
    }
}
