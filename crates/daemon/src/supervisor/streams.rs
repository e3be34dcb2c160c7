//! Streams: logs, events, files and captures.

use super::state::Supervisor;
use crate::audit::{Kept, Synced};
use crate::caller::Caller;
use crate::error::OperationError;
use crate::file_system::FileSystem;
use crate::history::HistoryPage;
use crate::limits::CAPTURE_QUEUE_LENGTH;
use api::Subject;
use api::{
    AuditEntry, AuditQuery, BoxName, CapturePoint, CaptureQuery, Event, EventKind, EventQuery, LogLine,
    LogQuery, Size, Time, WrittenFile,
};
use protocol::fabric::{FabricError, FileStatus, orders};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};

/// Bytes per read of a file.
const READ_SIZE: u64 = 64 << 10;

/// Maximum entries of a page.
const PAGE_ENTRIES: usize = 256;

type FetchPage<T> = Box<dyn Fn(u64) -> Option<HistoryPage<T>> + Send + Sync>;

/// A reader of a history, optionally following it.
pub(crate) struct HistoryReader<T> {
    /// It may wait for the fabric.
    fetch: Arc<FetchPage<T>>,
    /// Creates an entry that reports lost entries.
    lost_entry: fn(u64, u64) -> T,
    position: u64,
    /// Notifies of further entries. `None` if the reader does not follow.
    more: Option<HasMore>,
    /// Whether the reader may see an entry.
    is_visible: Box<dyn Fn(&T) -> bool + Send + Sync>,
}

/// Notifies of further entries.
pub(crate) enum HasMore {
    /// Of the journal.
    Journal(watch::Receiver<u64>),
    /// Of a box's log.
    Log(watch::Receiver<()>),
}

impl HasMore {
    async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        match self {
            Self::Journal(more) => more.changed().await,
            Self::Log(more) => more.changed().await,
        }
    }
}

impl<T> std::fmt::Debug for HistoryReader<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistoryReader").field("position", &self.position).finish_non_exhaustive()
    }
}

impl<T> HistoryReader<T> {
    /// The entries that are already available. `None` if there are none.
    fn available(&mut self) -> Option<Vec<T>> {
        loop {
            let page = (self.fetch)(self.position)?;
            if page.is_empty() {
                return None;
            }
            let found = self.entries(page);
            if !found.is_empty() {
                return Some(found);
            }
        }
    }

    /// The entries of a page that the reader may see.
    fn entries(&mut self, page: HistoryPage<T>) -> Vec<T> {
        let mut found = Vec::new();
        if page.lost > 0 {
            self.position += page.lost;
            found.push((self.lost_entry)(self.position, page.lost));
        }
        for (number, entry) in page.entries {
            self.position = number;
            found.push(entry);
        }
        found.retain(|entry| (self.is_visible)(entry));
        found
    }

    /// The next entries. Waits for some if the reader follows; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Vec<T>>
    where
        T: Send + 'static,
    {
        loop {
            let (fetch, position) = (self.fetch.clone(), self.position);
            let page = tokio::task::spawn_blocking(move || fetch(position)).await.ok()??;
            let is_empty = page.is_empty();
            let found = self.entries(page);
            if !found.is_empty() {
                return Some(found);
            }
            if !is_empty {
                continue;
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
    _closer: CaptureCloser,
}

/// Ends a capture when its reader has gone.
#[derive(Debug)]
struct CaptureCloser(UnixStream);

impl Drop for CaptureCloser {
    fn drop(&mut self) {
        // It fails only if the fabric has ended the capture.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// The contents that a file had when it was opened for reading.
#[derive(Debug)]
pub(crate) struct Contents {
    file: File,
    at: u64,
    end: u64,
}

impl Contents {
    /// The next bytes. `None` at the end, or if reading fails.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from((self.end - self.at).min(READ_SIZE)).unwrap_or(0)];
        if bytes.is_empty() || self.file.read_exact_at(&mut bytes, self.at).is_err() {
            return None;
        }
        self.at += bytes.len() as u64;
        Some(bytes)
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
        let more = query.follow.then(|| HasMore::Log(managed.log.subscribe()));
        let page = self.0.fabrics.ask(orders::Log { name: name.clone(), after: 0, most: 0 })?;
        let position = query.lines.map_or(0, |lines| page.last.saturating_sub(u64::from(lines)));
        // A reader does not keep the log of a removed box alive.
        let (state, box_name) = (Arc::downgrade(&self.0), name.clone());
        let of = Arc::downgrade(&managed);
        let fetch = move |position| {
            let (state, _box) = (state.upgrade()?, of.upgrade()?);
            let order = orders::Log { name: box_name.clone(), after: position, most: PAGE_ENTRIES as u32 };
            let page = state.fabrics.ask(order).ok()?;
            Some(HistoryPage { entries: page.lines, lost: page.lost })
        };
        Ok(HistoryReader {
            fetch: Arc::new(Box::new(fetch)),
            lost_entry: |_, lost| LogLine {
                time: Time::now(),
                configuration: None,
                text: String::new(),
                lost,
            },
            // Entries that were removed before the request do not count as lost.
            position: position.max(page.first.saturating_sub(1)),
            more,
            is_visible: Box::new(|_| true),
        })
    }

    /// The files that a box has written.
    pub fn files(&self, name: &BoxName) -> Result<Vec<WrittenFile>, OperationError> {
        self.0.managed_box(name)?;
        let file = |file: FileStatus| WrittenFile {
            name: file.name,
            bytes: Size(file.bytes),
            lost: Size(file.lost),
        };
        Ok(self.0.fabrics.ask(orders::Files { name: name.clone() })?.into_iter().map(file).collect())
    }

    /// The current contents of a file that a box writes.
    pub(crate) fn file(&self, name: &BoxName, file: &str) -> Result<Contents, OperationError> {
        self.0.managed_box(name)?;
        let order = orders::OpenFile { name: name.clone(), file: file.into() };
        let (end, descriptors) = self.0.fabrics.ask_with(order, &[])?;
        let missing = || FabricError::Protocol("a file comes without a descriptor".into());
        let descriptor = descriptors.into_iter().next().ok_or_else(missing)?;
        Ok(Contents { file: descriptor.into(), at: 0, end })
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
        let journal = &self.0.journal.history;
        let (last, kept) = (journal.last(), journal.after(0, 1));
        let first = kept.entries.first().map_or(last, |(first, _)| first - 1);
        let position = match query.since {
            Some(since) => since.min(last),
            None if query.follow => last,
            None => first,
        };
        let more = query.follow.then(|| HasMore::Journal(journal.watch()));
        let (core, caller) = (Arc::downgrade(&self.0), self.1.clone());
        HistoryReader {
            fetch: Arc::new(Box::new(move |position| {
                Some(core.upgrade()?.journal.history.after(position, PAGE_ENTRIES))
            })),
            lost_entry: |sequence, lost| Event {
                sequence,
                time: Time::now(),
                kind: EventKind::EventsLost,
                subject: Subject::Daemon.to_string(),
                owner: None,
                message: format!("{lost} older events were discarded"),
            },
            position,
            more,
            is_visible: Box::new(move |event| match (&caller, &event.owner) {
                (Caller::Administrator, _) => true,
                (_, None) => false,
                (_, Some(owner)) => caller.sees(owner),
            }),
        }
    }

    /// A reader of the audit log.
    pub(crate) fn audit(&self, query: &AuditQuery) -> HistoryReader<AuditEntry> {
        let history = &self.0.audit.history;
        let position = match query.since {
            Some(since) => since.min(history.last()),
            None if query.follow => history.last(),
            None => history.first() - 1,
        };
        let core = Arc::downgrade(&self.0);
        HistoryReader {
            fetch: Arc::new(Box::new(move |position| {
                Some(core.upgrade()?.audit.history.after(position, PAGE_ENTRIES))
            })),
            lost_entry: |sequence, lost| AuditEntry {
                sequence,
                time: Time::now(),
                user: "daemon".into(),
                owner: None,
                peer: String::new(),
                operation: "audit".into(),
                object: String::new(),
                detail: format!("{lost} older entries are no longer in memory; see the files of the log"),
                result: String::new(),
            },
            position,
            more: query.follow.then(|| HasMore::Journal(history.watch())),
            is_visible: Box::new(|_| true),
        }
    }

    /// Adds an entry to the audit log, with the number of its row in the store if it has one. If it is not on the disk yet,
    /// returns what tells when it is.
    pub(crate) fn record(&self, entry: AuditEntry, kept: Kept) -> io::Result<Option<Synced>> {
        self.0.audit.record(entry, kept)
    }

    /// Records whether entries of the audit log can be written. That they can't is reported when it begins.
    pub(crate) fn note_recorded(&self, result: io::Result<()>) {
        if self.0.audit.has_begun_to_fail(result.is_err(), Instant::now())
            && let Err(error) = result
        {
            let at = match &self.0.store_file {
                Some(file) if error.kind() == io::ErrorKind::StorageFull => {
                    format!("; {} is full: free some space there", FileSystem::of(file))
                }
                _ => String::new(),
            };
            let message = format!("the audit log can't be written: {error}{at}");
            self.0.journal.note(EventKind::AuditFailed, Subject::Daemon, message);
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
        Ok(std::iter::from_fn(move || {
            // The closure must hold the whole capture, which ends when it is dropped.
            let capture = &mut capture;
            capture.bytes.blocking_recv()
        }))
    }

    /// Records that a client over TCP presented too many wrong tokens.
    pub(crate) fn note_wrong_tokens(&self, address: IpAddr) {
        let message = format!("{address} presented too many wrong tokens; further ones are counted");
        self.0.journal.note(EventKind::WrongTokens, Subject::Daemon, message);
    }

    /// Records that there is no descriptor for a new connection.
    pub(crate) fn note_exhausted_descriptors(&self) {
        let limit = getrlimit(Resource::Nofile).current.map_or("none".into(), |limit| limit.to_string());
        let message = format!(
            "no descriptor is free for a new connection (the limit is {limit}): connections without requests are closed; \
             raise LimitNOFILE of the service, or `ulimit -n`"
        );
        self.0.journal.note(EventKind::DescriptorsExhausted, Subject::Daemon, message);
    }

    /// Records that clients went on to present wrong tokens.
    pub(crate) fn note_more_wrong_tokens(&self, count: u64, last: IpAddr) {
        let message = format!("{count} more wrong tokens were refused, the last one from {last}");
        self.0.journal.note(EventKind::WrongTokens, Subject::Daemon, message);
    }

    /// Records that the file of tokens has changed.
    pub(crate) fn note_tokens(&self, message: String) {
        self.0.journal.note(EventKind::TokensChanged, Subject::Daemon, message);
    }

    /// Packets that all captures dropped because their readers were too slow.
    pub(crate) fn capture_lost(&self) -> Result<u64, OperationError> {
        Ok(self.0.fabrics.facts()?.iter().map(|(_, facts)| facts.capture_lost).sum())
    }

    /// Captures the packets that pass a port, without delaying them.
    pub(crate) fn capture(&self, query: &CaptureQuery) -> Result<Capture, OperationError> {
        self.require_own_point(&query.port)?;
        if let CapturePoint::Box(name, _) = &query.port {
            self.0.managed_box(name)?;
        }
        let order = orders::Capture { point: query.port.clone(), snap: query.snap, count: query.count };
        let ((), descriptors) = self.0.fabrics.ask_with(order, &[])?;
        let missing = || FabricError::Protocol("a capture comes without a descriptor".into());
        let mut source = UnixStream::from(descriptors.into_iter().next().ok_or_else(missing)?);
        let closer = source
            .try_clone()
            .map(CaptureCloser)
            .map_err(|error| OperationError::system("start a capture", error))?;
        let (sender, bytes) = mpsc::channel(CAPTURE_QUEUE_LENGTH);
        let run = move || {
            let mut piece = vec![0; READ_SIZE as usize];
            // It ends with the capture, or when the reader has gone.
            while let Ok(length @ 1..) = source.read(&mut piece) {
                if sender.blocking_send(piece.get(..length).unwrap_or_default().to_vec()).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("capture".into()).spawn(run);
        thread.map_err(|error| OperationError::system("start a capture", error))?;
        Ok(Capture { bytes, _closer: closer })
    }
}
