//! The files that a box writes (`ToDump` and similar elements), as stored on the host.
//!
//! The host's file never has a name: it is created without one (`O_TMPFILE`) in a folder that the daemon opened. Nothing
//! that a box sends becomes a path, and the files vanish with the box. The bytes of one box and of all boxes are limited; excess bytes
//! are dropped and counted.

use crate::limits::{MAX_OUTPUT_BYTES, MAX_OUTPUT_FILES, MAX_TOTAL_OUTPUT_BYTES};
use protocol::fabric::FileStatus;
use rustix::fs::{Mode, OFlags, openat};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folder for boxes' files, and their total size. Clones share both.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputStore {
    /// The folder, which the daemon opens. Until then files can't be created.
    folder: Arc<Mutex<Option<OwnedFd>>>,
    /// Bytes of all files.
    bytes: Arc<AtomicU64>,
}

impl OutputStore {
    /// Creates files in this folder from now on.
    pub(crate) fn set_folder(&self, folder: OwnedFd) {
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    }

    /// Creates a file without a name.
    pub(crate) fn create(&self) -> io::Result<File> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // It cannot get a name later (EXCL). The system call filter permits files to write in this way only.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(folder, ".", flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Reserves `bytes` bytes, if the limit allows it.
    fn reserve(&self, bytes: u64) -> bool {
        let room = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= MAX_TOTAL_OUTPUT_BYTES);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Output {
    /// `None` if the file could not be created.
    file: Option<File>,
    bytes: u64,
    lost: u64,
    /// The expected position of the next piece.
    next: u64,
}

/// The files of one box.
#[derive(Debug, Default)]
pub(crate) struct Outputs(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    output_store: Option<OutputStore>,
    outputs: BTreeMap<String, Output>,
}

/// The result of storing a piece, as far as it should be logged.
#[derive(Debug)]
pub(crate) enum StoreResult {
    /// The piece was stored, or was dropped like earlier ones.
    Unremarkable,
    /// The piece was stored and is the first of a file.
    NewFile,
    /// The piece is the first of this file to be dropped, for this reason.
    FirstDrop(OutputError),
}

/// Why a piece was dropped.
#[derive(Debug)]
pub(crate) enum OutputError {
    /// The box has too many files.
    TooManyFiles,
    /// The limit on the box's files, or on those of all boxes, is reached.
    TooManyBytes,
    /// The file cannot be created or written.
    System(io::Error),
}

impl std::fmt::Display for OutputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyFiles => write!(f, "a box has at most {MAX_OUTPUT_FILES} files"),
            Self::TooManyBytes => {
                write!(
                    f,
                    "a box may write {} MB, all together {} MB",
                    MAX_OUTPUT_BYTES >> 20,
                    MAX_TOTAL_OUTPUT_BYTES >> 20
                )
            }
            Self::System(_) => f.write_str("the fabric can't store it"),
        }
    }
}

impl std::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(error) => Some(error),
            Self::TooManyFiles | Self::TooManyBytes => None,
        }
    }
}

impl Outputs {
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a piece of a file. A piece at position 0 truncates the file. All others are appended, so that bytes lost
    /// on the way leave no hole: elements write whole records.
    pub(crate) fn append(
        &self,
        output_store: &OutputStore,
        name: &str,
        position: u64,
        bytes: &[u8],
    ) -> StoreResult {
        let mut files = self.lock();
        files.output_store.get_or_insert_with(|| output_store.clone());
        if position == 0 {
            files.remove(name);
        }
        let sum: u64 = files.outputs.values().map(|output| output.bytes).sum();
        let (count, length) = (files.outputs.len(), bytes.len() as u64);
        let is_new = !files.outputs.contains_key(name);
        if is_new && count >= MAX_OUTPUT_FILES {
            return if position == 0 {
                StoreResult::FirstDrop(OutputError::TooManyFiles)
            } else {
                StoreResult::Unremarkable
            };
        }
        let mut failure = None;
        let output = files.outputs.entry(name.to_string()).or_insert_with(|| {
            let file = output_store.create().map_err(|error| failure = Some(OutputError::System(error))).ok();
            Output { file, bytes: 0, lost: 0, next: position }
        });
        let before = output.lost;
        output.lost = output.lost.saturating_add(position.saturating_sub(output.next));
        output.next = position.saturating_add(length);
        if failure.is_none() && output.file.is_some() {
            let room = sum + length <= MAX_OUTPUT_BYTES && output_store.reserve(length);
            match output.file.as_ref().filter(|_| room).map(|file| file.write_all_at(bytes, output.bytes)) {
                Some(Ok(())) => {
                    output.bytes += length;
                    return if is_new { StoreResult::NewFile } else { StoreResult::Unremarkable };
                }
                Some(Err(error)) => {
                    output_store.release(length);
                    failure = Some(OutputError::System(error));
                }
                None => failure = Some(OutputError::TooManyBytes),
            }
        }
        output.lost = output.lost.saturating_add(length);
        failure.filter(|_| before == 0).map_or(StoreResult::Unremarkable, StoreResult::FirstDrop)
    }

    /// The box's files, by name.
    pub(crate) fn list(&self) -> Vec<FileStatus> {
        let files = self.lock();
        let status = |(name, output): (&String, &Output)| FileStatus {
            name: name.clone(),
            bytes: output.bytes,
            lost: output.lost,
        };
        files.outputs.iter().map(status).collect()
    }

    /// A file and its present length, for a reader.
    pub(crate) fn open(&self, name: &str) -> Option<io::Result<(File, u64)>> {
        let files = self.lock();
        let output = files.outputs.get(name)?;
        output.file.as_ref().map(|file| Ok((file.try_clone()?, output.bytes)))
    }
}

impl Files {
    fn remove(&mut self, name: &str) {
        if let (Some(output), Some(output_store)) = (self.outputs.remove(name), &self.output_store) {
            output_store.release(output.bytes);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let sum = self.outputs.values().map(|output| output.bytes).sum();
        if let Some(output_store) = &self.output_store {
            output_store.release(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store_in(folder: &std::path::Path) -> OutputStore {
        let output_store = OutputStore::default();
        output_store.set_folder(File::open(folder).unwrap().into());
        output_store
    }

    fn contents(outputs: &Outputs, name: &str) -> Vec<u8> {
        let (file, length) = outputs.open(name).unwrap().unwrap();
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn output_files_are_bounded_and_unnamed() {
        let folder = std::env::temp_dir().join(format!("clickbox-outputs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let output_store = store_in(&folder);
        let outputs = Outputs::default();
        assert!(matches!(outputs.append(&output_store, "../a\\u{1b}", 0, b"one"), StoreResult::NewFile));
        assert!(matches!(outputs.append(&output_store, "../a\\u{1b}", 3, b"two"), StoreResult::Unremarkable));
        // Two bytes were lost on the way.
        assert!(matches!(
            outputs.append(&output_store, "../a\\u{1b}", 8, b"three"),
            StoreResult::Unremarkable
        ));
        assert_eq!(contents(&outputs, "../a\\u{1b}"), b"onetwothree");
        let expected = FileStatus { name: "../a\\u{1b}".into(), bytes: 11, lost: 2 };
        assert_eq!(outputs.list(), [expected]);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        // A truncated file keeps nothing of its old contents.
        assert!(matches!(outputs.append(&output_store, "../a\\u{1b}", 0, b"new"), StoreResult::NewFile));
        assert_eq!(contents(&outputs, "../a\\u{1b}"), b"new");
        assert_eq!(output_store.bytes.load(Ordering::Relaxed), 3);
        assert!(outputs.open("b").is_none());
        for number in 1..MAX_OUTPUT_FILES {
            assert!(matches!(
                outputs.append(&output_store, &number.to_string(), 0, b""),
                StoreResult::NewFile
            ));
        }
        assert!(matches!(
            outputs.append(&output_store, "more", 0, b"x"),
            StoreResult::FirstDrop(OutputError::TooManyFiles)
        ));
        drop(outputs);
        assert_eq!(output_store.bytes.load(Ordering::Relaxed), 0);
        std::fs::remove_dir_all(&folder).unwrap();
        // If nothing can be written, this is reported once.
        let outputs = Outputs::default();
        assert!(matches!(
            outputs.append(&output_store, "a", 0, b"one"),
            StoreResult::FirstDrop(OutputError::System(_))
        ));
        assert!(matches!(outputs.append(&output_store, "a", 3, b"one"), StoreResult::Unremarkable));
        assert_eq!(outputs.list(), [FileStatus { name: "a".into(), bytes: 0, lost: 6 }]);
    }

    #[test]
    fn bytes_beyond_the_limit_are_counted() {
        let output_store = store_in(&std::env::temp_dir());
        let outputs = Outputs::default();
        let piece = vec![7; 1 << 20];
        let mut refused = 0;
        for number in 0..(MAX_OUTPUT_BYTES >> 20) + 3 {
            refused += usize::from(matches!(
                outputs.append(&output_store, "a", number << 20, &piece),
                StoreResult::FirstDrop(OutputError::TooManyBytes)
            ));
        }
        assert_eq!(refused, 1);
        assert_eq!(outputs.list(), [FileStatus { name: "a".into(), bytes: MAX_OUTPUT_BYTES, lost: 3 << 20 }]);
        // A box may send any position.
        for position in [u64::MAX, 1, u64::MAX - 1, 1, u64::MAX] {
            outputs.append(&output_store, "a", position, b"x");
        }
        assert_eq!(outputs.list()[0].lost, u64::MAX);
    }
}
