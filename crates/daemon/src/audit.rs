//! The audit log: a file beside the store to which entries are only appended, one line of JSON each.
//!
//! An entry is in the file, and on the disk, before its request is answered. That of an operation is in the store's
//! transaction with the changes, so that the request waits for the disk once, and neither is there without the other. Its
//! line in the file may reach the disk later; then the row in the store is removed. The next daemon appends the entries of
//! rows that the file lacks. That of a write to a handler which changes no configuration is in the file before, and on the disk
//! within a second: a power failure ends the box too. Other entries wait for the file; those that come together wait for the
//! disk once. The file is renamed when it is long; the oldest files are removed.

use crate::history::{History, HistoryLimits};
use api::{AuditEntry, Time};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Entries that are kept in memory for readers, and their bytes.
const MAX_ENTRIES: usize = 8192;
const MAX_BYTES: usize = 8 << 20;

/// Bytes after which a file is renamed, and how many such files are kept: requests must not fill the disk.
const MAX_FILE_BYTES: u64 = 8 << 20;
const KEPT_FILES: u32 = 7;

/// Requests that wait for the disk at once.
const MAX_BATCH: usize = 1024;

/// Time after which lines without a waiting request are on the disk.
const SYNC_DELAY: Duration = Duration::from_secs(1);

/// Entries that are kept in the store because the file can't be written: they must not fill the disk.
pub(crate) const MAX_STORED: i64 = 8192;

/// Time after a report that writing fails in which it is not reported again.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The result of a request that succeeded.
pub(crate) const DONE: &str = "done";

/// Maximum characters of a detail: a request may be long.
pub(crate) const MAX_DETAIL: usize = 200;

/// Why the audit log can't be used.
#[derive(Debug)]
pub struct AuditError {
    path: PathBuf,
    cause: io::Error,
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the audit log {} can't be used", self.path.display())
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Waits until an entry is on the disk.
pub(crate) type Synced = oneshot::Receiver<io::Result<()>>;

/// An entry in the store, and its number there.
pub(crate) type StoredEntry = (i64, AuditEntry);

/// The entry of a request in progress, which an operation stores with its changes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingEntry(Arc<Mutex<Pending>>);

#[derive(Debug, Default)]
struct Pending {
    /// `None`: the request is not recorded, or its entry was taken.
    entry: Option<AuditEntry>,
    /// What the body of the request adds to the detail.
    detail: String,
    kept: Kept,
}

/// Where an entry is when the power fails before its line in the file is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nowhere: its request waits for the line.
    #[default]
    Nowhere,
    /// In the store, with this number, as one that has succeeded.
    Stored(i64),
    /// Nowhere, and its request does not wait if it succeeds: what it does is lost with the power too.
    Unneeded,
}

impl PendingEntry {
    pub(crate) fn new(entry: AuditEntry) -> Self {
        Self(Arc::new(Mutex::new(Pending { entry: Some(entry), ..Pending::default() })))
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the object of the request, such as `box/fw`.
    pub(crate) fn set_object(&self, object: String) {
        if let Some(entry) = &mut self.pending().entry {
            entry.object = object;
        }
    }

    /// Sets what the body of the request adds to the detail.
    pub(crate) fn set_detail(&self, detail: String) {
        self.pending().detail = detail;
    }

    /// Records that what the request does is lost with the power.
    pub(crate) fn set_unneeded(&self) {
        self.pending().kept = Kept::Unneeded;
    }

    /// The entry if the request succeeds. `None` if the request is not recorded.
    fn done(&self) -> Option<AuditEntry> {
        let pending = self.pending();
        let mut entry = pending.with_detail(pending.entry.clone()?);
        (entry.time, entry.result) = (Time::now(), DONE.into());
        Some(entry)
    }

    /// Takes the entry with its result.
    pub(crate) fn take(&self, result: Option<String>) -> Option<(AuditEntry, Kept)> {
        let mut pending = self.pending();
        let entry = pending.entry.take()?;
        let mut entry = pending.with_detail(entry);
        if !matches!(pending.kept, Kept::Stored(_)) {
            entry.time = Time::now();
        }
        if let Some(result) = result {
            entry.result = result;
        }
        Some((entry, pending.kept))
    }
}

impl Pending {
    fn with_detail(&self, mut entry: AuditEntry) -> AuditEntry {
        if !self.detail.is_empty() {
            let separator = if entry.detail.is_empty() { "" } else { ": " };
            entry.detail = format!("{}{separator}{}", entry.detail, self.detail);
        }
        entry
    }
}

/// What a transaction of the store changes in its entries of the audit log.
#[derive(Clone, Debug)]
pub(crate) struct StoredChange {
    pub(crate) row: i64,
    time: Time,
    /// As JSON.
    pub(crate) entry: String,
    /// Entries whose lines in the file are on the disk.
    pub(crate) removed: Vec<i64>,
}

/// The audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    pub(crate) history: History<AuditEntry>,
    /// The lock keeps the lines in the order of their numbers. `None`: the log is in memory.
    file: Option<Mutex<LogFile>>,
    /// To the thread that waits for the disk.
    syncs: Sender<Unsynced>,
    /// The number of the last entry in the store.
    last_row: AtomicI64,
    /// What the thread did for entries without a waiting request.
    unawaited: Arc<Mutex<Unawaited>>,
    /// Whether the last write failed.
    is_failing: AtomicBool,
    /// When it was last reported that writing fails.
    reported: Mutex<Option<Instant>>,
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).read(true).mode(0o600).open(path)
}

/// The entries in a file. Lines that cannot be read are left out.
fn entries(path: &Path) -> io::Result<Vec<(u64, AuditEntry)>> {
    let mut text = Vec::new();
    match File::open(path) {
        // A file is only a little longer than the limit.
        Ok(file) => file.take(4 * MAX_FILE_BYTES).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let lines = text.split(|byte| *byte == b'\n');
    let parsed = lines.filter_map(|line| serde_json::from_slice::<AuditEntry>(line).ok());
    Ok(parsed.map(|entry| (entry.sequence, entry)).collect())
}

/// What tells an entry from others, without its number and result.
fn key(entry: &AuditEntry) -> impl Ord + use<> {
    let entry = entry.clone();
    let who = (entry.time, entry.user, entry.owner, entry.peer);
    (who, entry.operation, entry.object, entry.detail)
}

/// The file, and its length.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
    /// Whether the last line may be incomplete, because the disk was full or the power failed.
    is_torn: bool,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_path_buf(), file: Arc::new(file), bytes, is_torn: bytes > 0 })
    }

    /// Appends lines. They may not be on the disk yet.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if self.bytes > MAX_FILE_BYTES {
            self.rotate()?;
        }
        // Lines are not continued: both would be lost.
        if self.is_torn && !text.is_empty() {
            (&*self.file).write_all(b"\n")?;
            self.bytes = self.bytes.saturating_add(1);
        }
        self.is_torn = true;
        (&*self.file).write_all(text)?;
        self.is_torn = false;
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        // Later, only the new file is waited for.
        self.file.sync_data()?;
        for number in (1..KEPT_FILES).rev() {
            match std::fs::rename(numbered(&self.path, number), numbered(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, numbered(&self.path, 1))?;
        (self.file, self.bytes, self.is_torn) = (Arc::new(open(&self.path)?), 0, false);
        Ok(())
    }
}

/// A line that is to be on the disk.
#[derive(Debug)]
struct Unsynced {
    file: Arc<File>,
    line: SyncedLine,
}

#[derive(Debug)]
enum SyncedLine {
    /// A request waits for it.
    Awaited(oneshot::Sender<io::Result<()>>),
    /// No request does. Its entry may be in the store, with this number.
    Unawaited(Option<i64>),
}

/// Lines in the file that no request waits for.
#[derive(Debug, Default)]
struct Unawaited {
    /// The entries in the store whose lines are on the disk.
    synced: Vec<i64>,
    /// Why the last ones did not get there, until somebody is told.
    failed: Option<io::Error>,
    /// The file of which the thread knows that it will wait for the disk.
    told: Option<Arc<File>>,
}

fn lock(unawaited: &Mutex<Unawaited>) -> MutexGuard<'_, Unawaited> {
    unawaited.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the disk until the log is dropped.
fn sync(lines: &Receiver<Unsynced>, unawaited: &Mutex<Unawaited>) {
    let mut rows = Vec::new();
    let mut unsynced: Option<(Arc<File>, Instant)> = None;
    loop {
        let first = match &unsynced {
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((_, due)) => lines.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        let is_due = first.is_err();
        let has_ended = matches!(first, Err(RecvTimeoutError::Disconnected));
        let mut waiting = Vec::new();
        for Unsynced { file, line } in first.into_iter().chain(lines.try_iter()).take(MAX_BATCH) {
            let due = unsynced.take().map_or_else(|| Instant::now() + SYNC_DELAY, |(_, due)| due);
            unsynced = Some((file, due));
            match line {
                SyncedLine::Awaited(done) => waiting.push(done),
                SyncedLine::Unawaited(row) => rows.push(row),
            }
        }
        if (is_due || !waiting.is_empty())
            && let Some((file, _)) = unsynced.take()
        {
            // Lines that come from now on may be too late for it.
            lock(unawaited).told = None;
            let written = file.sync_data();
            let stored = std::mem::take(&mut rows);
            let copy =
                || written.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string()));
            match copy() {
                Ok(()) => lock(unawaited).synced.extend(stored.into_iter().flatten()),
                Err(_) if stored.is_empty() => {}
                Err(error) => lock(unawaited).failed = Some(error),
            }
            for done in waiting {
                // Nobody waits for an unanswered request.
                let _ = done.send(copy());
            }
        }
        if has_ended {
            return;
        }
    }
}

impl Audit {
    /// Opens the log at a path, or one in memory. Entries that are in the store, and not in the file, are appended to it.
    pub(crate) fn open(path: Option<&Path>, stored: Vec<StoredEntry>) -> Result<Self, AuditError> {
        let limits = HistoryLimits {
            entries: MAX_ENTRIES,
            bytes: MAX_BYTES,
            size_of: |entry: &AuditEntry| size_of::<AuditEntry>() + entry.object.len() + entry.detail.len(),
        };
        let last_row = stored.iter().map(|(row, _)| *row).max().unwrap_or(0);
        let (syncs, lines) = channel();
        let unawaited = Arc::<Mutex<Unawaited>>::default();
        let (mut earlier, mut opened) = (Vec::new(), None);
        if let Some(path) = path {
            let failed = |cause| AuditError { path: path.to_path_buf(), cause };
            earlier = entries(&numbered(path, 1)).map_err(failed)?;
            earlier.extend(entries(path).map_err(failed)?);
            let mut file = LogFile::open(path).map_err(failed)?;
            // If the disk is full, they stay in the store, and the next daemon tries again.
            match recover(&mut file, &mut earlier, stored) {
                Ok(rows) => lock(&unawaited).synced = rows,
                Err(error) => lock(&unawaited).failed = Some(error),
            }
            let surplus = earlier.len().saturating_sub(MAX_ENTRIES);
            earlier.drain(..surplus);
            let thread = std::thread::Builder::new().name("audit".into());
            let own = unawaited.clone();
            thread.spawn(move || sync(&lines, &own)).map_err(failed)?;
            opened = Some(Mutex::new(file));
        }
        Ok(Self {
            history: History::restored(limits, earlier, 0),
            file: opened,
            syncs,
            last_row: AtomicI64::new(last_row),
            unawaited,
            is_failing: AtomicBool::new(false),
            reported: Mutex::default(),
        })
    }

    /// The change of the store that adds the entry of a request, as one that succeeds. `None` if it is not recorded, or not in a
    /// file.
    pub(crate) fn to_store(&self, pending: &PendingEntry) -> Option<StoredChange> {
        self.file.as_ref()?;
        let done = pending.done()?;
        let entry = serde_json::to_string(&done).ok()?;
        let row = match pending.pending().kept {
            Kept::Stored(row) => row,
            Kept::Nowhere | Kept::Unneeded => self.last_row.fetch_add(1, Ordering::Relaxed) + 1,
        };
        let removed = lock(&self.unawaited).synced.clone();
        Some(StoredChange { row, time: done.time, entry, removed })
    }

    /// Records that a change of the store is on the disk.
    pub(crate) fn stored(&self, pending: &PendingEntry, change: &StoredChange) {
        let mut pending = pending.pending();
        pending.kept = Kept::Stored(change.row);
        if let Some(entry) = &mut pending.entry {
            entry.time = change.time;
        }
        lock(&self.unawaited).synced.retain(|row| !change.removed.contains(row));
    }

    /// Adds an entry, which gets the next number. If its request must wait for the disk, returns what tells when the entry is
    /// there.
    ///
    /// # Errors
    ///
    /// The entry, or an earlier one without a waiting request, could not be written. Its readers see it.
    pub(crate) fn record(&self, entry: AuditEntry, kept: Kept) -> io::Result<Option<Synced>> {
        let Some(file) = &self.file else {
            self.history.push(|sequence| AuditEntry { sequence, ..entry });
            return Ok(None);
        };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let is_awaited = kept == Kept::Nowhere || entry.result != DONE;
        let mut line = Vec::new();
        self.history.push(|sequence| {
            let entry = AuditEntry { sequence, ..entry };
            // All types of the API can be written as JSON.
            let _ = serde_json::to_writer(&mut line, &entry);
            entry
        });
        line.push(b'\n');
        file.append(&line)?;
        // The thread ends with this log only. If it panicked, the result says so.
        let tell = |line| drop(self.syncs.send(Unsynced { file: file.file.clone(), line }));
        match kept {
            Kept::Stored(row) => tell(SyncedLine::Unawaited(Some(row))),
            Kept::Unneeded if !is_awaited => {
                let told = lock(&self.unawaited).told.replace(file.file.clone());
                // To wake the thread for each write would take longer than the rest.
                if !told.is_some_and(|told| Arc::ptr_eq(&told, &file.file)) {
                    tell(SyncedLine::Unawaited(None));
                }
            }
            Kept::Nowhere | Kept::Unneeded => {}
        }
        if !is_awaited {
            return lock(&self.unawaited).failed.take().map_or(Ok(None), Err);
        }
        let (done, result) = oneshot::channel();
        tell(SyncedLine::Awaited(done));
        Ok(Some(result))
    }

    /// Records whether an entry could be written. Returns true if writing fails since this one and that is to be reported: on a
    /// disk that is almost full, some entries still fit.
    pub(crate) fn has_begun_to_fail(&self, failed: bool, now: Instant) -> bool {
        if self.is_failing.swap(failed, Ordering::Relaxed) || !failed {
            return false;
        }
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = reported.is_some_and(|at| now.saturating_duration_since(at) < REPORT_INTERVAL);
        if !is_known {
            *reported = Some(now);
        }
        !is_known
    }
}

/// Appends to a file the stored entries that it lacks, and to those that were read from it. Returns the numbers of all that are
/// there.
fn recover(
    file: &mut LogFile,
    there: &mut Vec<(u64, AuditEntry)>,
    stored: Vec<StoredEntry>,
) -> io::Result<Vec<i64>> {
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    let known: BTreeSet<_> = sorting::collect(there.iter().map(|(_, entry)| key(entry)));
    let rows = stored.iter().map(|(row, _)| *row).collect();
    let (mut lines, mut last) = (Vec::new(), there.last().map_or(0, |(number, _)| *number));
    for (_, entry) in stored.into_iter().filter(|(_, entry)| !known.contains(&key(entry))) {
        last += 1;
        let entry = AuditEntry { sequence: last, ..entry };
        serde_json::to_writer(&mut lines, &entry)?;
        lines.push(b'\n');
        there.push((last, entry));
    }
    let written = file.append(&lines).and_then(|()| file.file.sync_data());
    written.map(|()| rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreChange};
    use std::os::unix::fs::PermissionsExt;

    fn entry(object: &str) -> AuditEntry {
        AuditEntry {
            sequence: 0,
            time: Time::now(),
            user: "alice".into(),
            owner: Some("alice".parse().unwrap()),
            peer: "192.0.2.1".into(),
            operation: "create_box".into(),
            object: object.into(),
            detail: "x".repeat(MAX_DETAIL),
            result: "done".into(),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn kept(audit: &Audit) -> Vec<(u64, String)> {
        let page = audit.history.after(0, usize::MAX);
        page.entries.into_iter().map(|(number, entry)| (number, entry.object)).collect()
    }

    /// Records an entry, and waits until it is on the disk.
    fn record(audit: &Audit, entry: AuditEntry) {
        audit.record(entry, Kept::Nowhere).unwrap().unwrap().blocking_recv().unwrap().unwrap();
    }

    #[test]
    fn entries_are_on_the_disk_and_continue_after_a_torn_line() {
        let folder = folder("audit");
        let path = folder.join("store.audit");
        let audit = Audit::open(Some(&path), Vec::new()).unwrap();
        ["box/a", "box/b"].into_iter().for_each(|object| record(&audit, entry(object)));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 2);
        drop(audit);
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let audit = Audit::open(Some(&path), Vec::new()).unwrap();
        assert_eq!(kept(&audit), [(1, "box/a".to_string())]);
        record(&audit, entry("box/c"));
        let audit = Audit::open(Some(&path), Vec::new()).unwrap();
        assert_eq!(kept(&audit), [(1, "box/a".to_string()), (2, "box/c".to_string())]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_entry_of_an_operation_is_in_the_store_until_the_file_has_it() {
        let folder = folder("audit-stored");
        let path = folder.join("store.audit");
        let mut store = Store::open(Some(&folder.join("store")), None).unwrap();
        let audit = Audit::open(Some(&path), Vec::new()).unwrap();
        let operate = |audit: &Audit, store: &mut Store, object: &str| {
            let pending = PendingEntry::new(entry(""));
            pending.set_object(object.into());
            pending.set_detail("more".into());
            let change = audit.to_store(&pending).unwrap();
            store.apply(&[StoreChange::Audit(change.clone())]).unwrap();
            audit.stored(&pending, &change);
            pending
        };
        let objects = |store: &Store| {
            let entries = store.audit_entries().unwrap().into_iter();
            entries.map(|(row, entry)| (row, entry.object, entry.result)).collect::<Vec<_>>()
        };
        let is = |row, object: &str| (row, object.to_string(), DONE.to_string());
        // One whose line is written, one whose daemon ends before, one that fails after its commit, and one that is not recorded.
        let (written, row) = operate(&audit, &mut store, "box/a").take(Some(DONE.into())).unwrap();
        assert!(audit.record(written, row).unwrap().is_none(), "nothing is waited for");
        let lost = operate(&audit, &mut store, "box/b");
        let (failed, row) = operate(&audit, &mut store, "box/c").take(Some("internal".into())).unwrap();
        audit.record(failed, row).unwrap().unwrap().blocking_recv().unwrap().unwrap();
        assert!(audit.to_store(&PendingEntry::default()).is_none());
        assert_eq!(objects(&store), [is(1, "box/a"), is(2, "box/b"), is(3, "box/c")]);
        // The next change removes the two that the file has.
        operate(&audit, &mut store, "box/d");
        assert_eq!(objects(&store), [is(2, "box/b"), is(4, "box/d")]);
        drop((audit, lost));
        let audit = Audit::open(Some(&path), store.audit_entries().unwrap()).unwrap();
        let all = ["box/a", "box/c", "box/b", "box/d"];
        let numbered: Vec<_> = (1..).zip(all.map(str::to_string)).collect();
        assert_eq!(kept(&audit), numbered);
        drop(audit);
        // The file has them now: they are not added twice.
        let audit = Audit::open(Some(&path), store.audit_entries().unwrap()).unwrap();
        assert_eq!(kept(&audit), numbered);
        operate(&audit, &mut store, "box/e");
        assert_eq!(objects(&store), [is(5, "box/e")]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A line that could be written in part only takes no other one with it.
    #[test]
    fn a_torn_line_is_not_continued() {
        let folder = folder("audit-torn");
        let path = folder.join("store.audit");
        let audit = Audit::open(Some(&path), Vec::new()).unwrap();
        record(&audit, entry("box/a"));
        {
            let mut file = audit.file.as_ref().unwrap().lock().unwrap();
            (&*file.file).write_all(b"{\"sequence\":2,").unwrap();
            file.is_torn = true;
        }
        record(&audit, entry("box/c"));
        record(&audit, entry("box/d"));
        drop(audit);
        let audit = Audit::open(Some(&path), Vec::new()).unwrap();
        assert_eq!(
            kept(&audit).into_iter().map(|(_, object)| object).collect::<Vec<_>>(),
            ["box/a", "box/c", "box/d"]
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A failure without a waiting request is told with the next entry, once.
    #[test]
    fn a_failure_that_nobody_waited_for_is_told() {
        let folder = folder("audit-failed");
        let audit = Audit::open(Some(&folder.join("store.audit")), Vec::new()).unwrap();
        lock(&audit.unawaited).failed = Some(io::Error::other("no disk"));
        let done = || AuditEntry { result: DONE.into(), ..entry("box/a") };
        assert_eq!(audit.record(done(), Kept::Stored(1)).unwrap_err().to_string(), "no disk");
        assert!(audit.record(done(), Kept::Unneeded).unwrap().is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_without_a_waiting_request_reaches_the_disk() {
        let folder = folder("audit-later");
        let audit = Audit::open(Some(&folder.join("store.audit")), Vec::new()).unwrap();
        let done = AuditEntry { result: DONE.into(), ..entry("box/a") };
        assert!(audit.record(done.clone(), Kept::Stored(7)).unwrap().is_none());
        // That of a write which changes no configuration is in the file too, and waits only if the write has failed.
        assert!(audit.record(done, Kept::Unneeded).unwrap().is_none());
        assert_eq!(std::fs::read_to_string(folder.join("store.audit")).unwrap().lines().count(), 2);
        let start = Instant::now();
        while lock(&audit.unawaited).synced != [7] {
            assert!(start.elapsed() < 10 * SYNC_DELAY);
            std::thread::sleep(Duration::from_millis(5));
        }
        // The next one wakes the thread again.
        assert!(lock(&audit.unawaited).told.is_none());
        let failed = AuditEntry { result: "timeout".into(), ..entry("box/a") };
        audit.record(failed, Kept::Unneeded).unwrap().unwrap().blocking_recv().unwrap().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_files_of_the_audit_log_are_bounded() {
        let folder = folder("audit-files");
        let path = folder.join("store.audit");
        let mut file = LogFile::open(&path).unwrap();
        let text = vec![b'x'; (MAX_FILE_BYTES + 1) as usize];
        for _ in 0..KEPT_FILES + 4 {
            file.append(&text).unwrap();
        }
        let files = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(files, KEPT_FILES as usize + 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_reported_once() {
        let audit = Audit::open(None, Vec::new()).unwrap();
        let start = Instant::now();
        let begun = [(true, 0), (true, 1), (false, 2), (true, 3), (false, 4), (true, 60)];
        let begun =
            begun.map(|(failed, at)| audit.has_begun_to_fail(failed, start + Duration::from_secs(at)));
        assert_eq!(begun, [true, false, false, false, false, true]);
        // A file to which nothing can be written.
        let full = LogFile {
            path: "/dev/full".into(),
            file: Arc::new(open(Path::new("/dev/full")).unwrap()),
            bytes: 0,
            is_torn: false,
        };
        let audit = Audit { file: Some(Mutex::new(full)), ..audit };
        let refused = audit.record(entry("box/a"), Kept::Nowhere).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    }
}
