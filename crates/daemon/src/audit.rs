//! The audit log: a file beside the store to which entries are only appended, one line of JSON each.
//!
//! An entry is on the disk before its request is answered. Entries that come together are written together, and wait for
//! the disk once. The file is renamed when it is long; the oldest files are removed.

use crate::history::{History, HistoryLimits};
use api::AuditEntry;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Entries that are kept in memory for readers, and their bytes.
const MAX_ENTRIES: usize = 8192;
const MAX_BYTES: usize = 8 << 20;

/// Bytes after which a file is renamed, and how many such files are kept: requests must not fill the disk.
const MAX_FILE_BYTES: u64 = 8 << 20;
const KEPT_FILES: u32 = 7;

/// Entries that are written at once.
const MAX_BATCH: usize = 1024;

/// Time after a report that writing fails in which it is not reported again.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

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

/// A line for the file, and who waits until it is on the disk.
type Line = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// The audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    pub(crate) history: History<AuditEntry>,
    /// To the thread that writes the file. The lock keeps the lines in the order of their numbers.
    writer: Option<Mutex<mpsc::Sender<Line>>>,
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

/// The file, and its length.
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = open(path)?;
        let bytes = file.metadata()?.len();
        if bytes > 0 {
            // The last line may be incomplete, if the disk was full or the power failed.
            file.write_all(b"\n")?;
        }
        Ok(Self { path: path.to_path_buf(), file, bytes })
    }

    /// Appends lines, and waits for the disk.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if self.bytes > MAX_FILE_BYTES {
            self.rotate()?;
        }
        self.file.write_all(text)?;
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        self.file.sync_data()
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..KEPT_FILES).rev() {
            match std::fs::rename(numbered(&self.path, number), numbered(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, numbered(&self.path, 1))?;
        (self.file, self.bytes) = (open(&self.path)?, 0);
        Ok(())
    }

    /// Writes what arrives until the log is dropped.
    fn run(mut self, lines: &mpsc::Receiver<Line>) {
        while let Ok(first) = lines.recv() {
            let batch: Vec<Line> = std::iter::once(first).chain(lines.try_iter()).take(MAX_BATCH).collect();
            let text: Vec<u8> = batch.iter().flat_map(|(line, _)| line).copied().collect();
            let written = self.append(&text);
            for (_, done) in batch {
                let result = match &written {
                    Ok(()) => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                };
                // Nobody waits for an unanswered request.
                let _ = done.send(result);
            }
        }
    }
}

impl Audit {
    /// Opens the log at a path, or one in memory.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, AuditError> {
        let limits = HistoryLimits {
            entries: MAX_ENTRIES,
            bytes: MAX_BYTES,
            size_of: |entry: &AuditEntry| size_of::<AuditEntry>() + entry.object.len() + entry.detail.len(),
        };
        let Some(path) = path else {
            let history = History::restored(limits, Vec::new(), 0);
            return Ok(Self {
                history,
                writer: None,
                is_failing: AtomicBool::new(false),
                reported: Mutex::default(),
            });
        };
        let failed = |cause| AuditError { path: path.to_path_buf(), cause };
        let mut earlier = entries(&numbered(path, 1)).map_err(failed)?;
        earlier.extend(entries(path).map_err(failed)?);
        let surplus = earlier.len().saturating_sub(MAX_ENTRIES);
        earlier.drain(..surplus);
        let file = LogFile::open(path).map_err(failed)?;
        let (sender, lines) = mpsc::channel();
        let thread = std::thread::Builder::new().name("audit".into());
        thread.spawn(move || file.run(&lines)).map_err(failed)?;
        let history = History::restored(limits, earlier, 0);
        Ok(Self {
            history,
            writer: Some(Mutex::new(sender)),
            is_failing: AtomicBool::new(false),
            reported: Mutex::default(),
        })
    }

    /// Adds an entry, which gets the next number. The result arrives when it is on the disk.
    pub(crate) fn record(&self, entry: AuditEntry) -> Option<oneshot::Receiver<io::Result<()>>> {
        let Some(writer) = &self.writer else {
            self.history.push(|sequence| AuditEntry { sequence, ..entry });
            return None;
        };
        let (done, result) = oneshot::channel();
        let writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = Vec::new();
        self.history.push(|sequence| {
            let entry = AuditEntry { sequence, ..entry };
            // All types of the API can be written as JSON.
            let _ = serde_json::to_writer(&mut line, &entry);
            entry
        });
        line.push(b'\n');
        // The thread ends with this log only. If it panicked, the result says so.
        let _ = writer.send((line, done));
        Some(result)
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

#[cfg(test)]
mod tests {
    use super::*;
    use api::Time;
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

    #[test]
    fn entries_are_on_the_disk_and_continue_after_a_torn_line() {
        let folder = folder("audit");
        let path = folder.join("store.audit");
        let audit = Audit::open(Some(&path)).unwrap();
        for object in ["box/a", "box/b"] {
            audit.record(entry(object)).unwrap().blocking_recv().unwrap().unwrap();
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 2);
        drop(audit);
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let audit = Audit::open(Some(&path)).unwrap();
        assert_eq!(kept(&audit), [(1, "box/a".to_string())]);
        audit.record(entry("box/c")).unwrap().blocking_recv().unwrap().unwrap();
        let audit = Audit::open(Some(&path)).unwrap();
        assert_eq!(kept(&audit), [(1, "box/a".to_string()), (2, "box/c".to_string())]);
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
        let audit = Audit::open(None).unwrap();
        let start = Instant::now();
        let begun = [(true, 0), (true, 1), (false, 2), (true, 3), (false, 4), (true, 60)];
        let begun =
            begun.map(|(failed, at)| audit.has_begun_to_fail(failed, start + Duration::from_secs(at)));
        assert_eq!(begun, [true, false, false, false, false, true]);
        // A file to which nothing can be written.
        let file =
            LogFile { path: "/dev/full".into(), file: open(Path::new("/dev/full")).unwrap(), bytes: 0 };
        let (sender, lines) = mpsc::channel();
        let (done, result) = oneshot::channel();
        sender.send((b"{}\n".to_vec(), done)).unwrap();
        drop(sender);
        file.run(&lines);
        assert_eq!(result.blocking_recv().unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
