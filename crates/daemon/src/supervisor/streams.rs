//! Streams: logs, events, files and captures.

use super::state::Supervisor;
use crate::boxes::{Contents, OutputStatus};
use crate::error::OperationError;
use crate::fabric::CaptureStream;
use crate::history::HistoryPage;
use crate::limits::{CAPTURE_QUEUE_LENGTH, MAX_CAPTURES};
use api::Subject;
use api::{
    BoxName, CapturePoint, CaptureQuery, Event, EventKind, EventQuery, LogLine, LogQuery, Size, Time,
    WrittenFile,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{mpsc, watch};

/// Maximum entries of a page.
const PAGE_ENTRIES: usize = 256;

type FetchPage<T> = Box<dyn Fn(u64) -> Option<HistoryPage<T>> + Send + Sync>;

/// A reader of a history, optionally following it.
pub(crate) struct HistoryReader<T> {
    fetch: FetchPage<T>,
    /// Creates an entry that reports lost entries.
    lost_entry: fn(u64, u64) -> T,
    position: u64,
    /// Notifies of further entries. `None` if the reader does not follow.
    more: Option<watch::Receiver<u64>>,
}

impl<T> std::fmt::Debug for HistoryReader<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistoryReader").field("position", &self.position).finish_non_exhaustive()
    }
}

impl<T> HistoryReader<T> {
    /// The entries that are already available. `None` if there are none.
    fn available(&mut self) -> Option<Vec<T>> {
        let page = (self.fetch)(self.position)?;
        let mut found = Vec::new();
        if page.lost > 0 {
            found.push((self.lost_entry)(self.position + page.lost, page.lost));
        }
        for (number, entry) in page.entries {
            self.position = number;
            found.push(entry);
        }
        Some(found).filter(|found| !found.is_empty())
    }

    /// The next entries. Waits for some if the reader follows; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Vec<T>> {
        loop {
            if let Some(found) = self.available() {
                return Some(found);
            }
            self.more.as_mut()?.changed().await.ok()?;
        }
    }
}

/// A running capture.
#[derive(Debug)]
pub(crate) struct Capture {
    /// Its bytes: the file header, then records.
    pub(crate) bytes: mpsc::Receiver<Vec<u8>>,
    _slot: CaptureSlot,
}

#[derive(Debug)]
struct CaptureSlot(Arc<AtomicUsize>);

impl Drop for CaptureSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Supervisor {
    /// A box's console output.
    pub(crate) fn log(
        &self,
        name: &BoxName,
        query: &LogQuery,
    ) -> Result<HistoryReader<LogLine>, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.collect_messages(&managed);
        let last = managed.log.last();
        let position = query.lines.map_or(0, |lines| last.saturating_sub(u64::from(lines)));
        // Entries that were removed before the request do not count as lost.
        let kept = managed.log.after(0, 1).entries.first().map_or(last, |(first, _)| first - 1);
        let more = query.follow.then(|| managed.log.watch());
        // A reader does not keep the log of a removed box alive.
        let weak = Arc::downgrade(&managed);
        Ok(HistoryReader {
            fetch: Box::new(move |position| Some(weak.upgrade()?.log.after(position, PAGE_ENTRIES))),
            lost_entry: |_, lost| LogLine {
                time: Time::now(),
                configuration: None,
                text: String::new(),
                lost,
            },
            position: position.max(kept),
            more,
        })
    }

    /// The files that a box has written.
    pub fn files(&self, name: &BoxName) -> Result<Vec<WrittenFile>, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.collect_messages(&managed);
        let file =
            |OutputStatus { name, bytes, lost }| WrittenFile { name, bytes: Size(bytes), lost: Size(lost) };
        Ok(managed.outputs.list().into_iter().map(file).collect())
    }

    /// The current contents of a file that a box writes.
    pub(crate) fn file(&self, name: &BoxName, file: &str) -> Result<Contents, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.collect_messages(&managed);
        let contents =
            managed.outputs.open(file).ok_or_else(|| OperationError::NoFile(name.clone(), file.into()))?;
        contents.map_err(|error| OperationError::system("read a file of the box", error))
    }

    /// The current contents of a file that a box writes, in pieces.
    pub fn file_bytes(
        &self,
        name: &BoxName,
        file: &str,
    ) -> Result<impl Iterator<Item = Vec<u8>> + use<>, OperationError> {
        let mut contents = self.file(name, file)?;
        Ok(std::iter::from_fn(move || contents.next()))
    }

    /// A reader of the journal.
    pub(crate) fn events(&self, query: &EventQuery) -> HistoryReader<Event> {
        let journal = &self.0.journal.0;
        let (last, kept) = (journal.last(), journal.after(0, 1));
        let first = kept.entries.first().map_or(last, |(first, _)| first - 1);
        let position = match query.since {
            Some(since) => since.min(last),
            None if query.follow => last,
            None => first,
        };
        let more = query.follow.then(|| journal.watch());
        let core = Arc::downgrade(&self.0);
        HistoryReader {
            fetch: Box::new(move |position| Some(core.upgrade()?.journal.0.after(position, PAGE_ENTRIES))),
            lost_entry: |sequence, lost| Event {
                sequence,
                time: Time::now(),
                kind: EventKind::EventsLost,
                subject: Subject::Daemon.to_string(),
                message: format!("{lost} older events were discarded"),
            },
            position,
            more,
        }
    }

    /// The events so far.
    pub fn event_list(&self, query: &EventQuery) -> Vec<Event> {
        let mut follow = self.events(&EventQuery { follow: false, ..query.clone() });
        std::iter::from_fn(|| follow.available()).flatten().collect()
    }

    /// A box's console output so far.
    pub fn log_list(&self, name: &BoxName, query: &LogQuery) -> Result<Vec<LogLine>, OperationError> {
        let mut follow = self.log(name, &LogQuery { follow: false, ..query.clone() })?;
        Ok(std::iter::from_fn(|| follow.available()).flatten().collect())
    }

    /// Captures the packets that pass a port, for a caller that blocks for each piece: the file header, then records.
    pub fn capture_bytes(
        &self,
        query: &CaptureQuery,
    ) -> Result<impl Iterator<Item = Vec<u8>> + use<>, OperationError> {
        let mut capture = self.capture(query)?;
        Ok(std::iter::from_fn(move || capture.bytes.blocking_recv()))
    }

    /// Records that a client over TCP presented too many wrong tokens.
    pub(crate) fn note_wrong_tokens(&self, address: IpAddr) {
        let message = format!("{address} presented too many wrong tokens");
        self.0.journal.note(EventKind::WrongTokens, Subject::Daemon, message);
    }

    /// Packets that all captures dropped because their readers were too slow.
    pub(crate) fn capture_lost(&self) -> u64 {
        self.0.capture_lost.load(Ordering::Relaxed)
    }

    /// Captures the packets that pass a port, without delaying them.
    pub(crate) fn capture(&self, query: &CaptureQuery) -> Result<Capture, OperationError> {
        if let CapturePoint::Box(name, _) = &query.port {
            self.0.managed_box(name)?;
        }
        let slot = CaptureSlot(self.0.captures.clone());
        if slot.0.fetch_add(1, Ordering::Relaxed) >= MAX_CAPTURES {
            return Err(OperationError::Limit("captures", MAX_CAPTURES));
        }
        let (sender, bytes) = mpsc::channel(CAPTURE_QUEUE_LENGTH);
        let sink = Box::new(CaptureStream { sender, lost: self.0.capture_lost.clone() });
        // The queue is new, so it has room for the file header.
        let port_capture = switch::Capture::new(sink, query.snap, query.count.unwrap_or(u64::MAX));
        let point = query.port.clone();
        self.0.fabric.ask(move |network| network.capture(&point, port_capture))??;
        Ok(Capture { bytes, _slot: slot })
    }
}
