//! Files that clients upload before the request that uses them, as they are, without JSON.
//!
//! Invariants:
//! - The size of an upload is known, within the limits, and reserved before a byte of it is read.
//! - An upload is never in the memory as a whole before it is used. Its file has no name, so it ends with the daemon at the
//!   latest, however that ends.
//! - An upload belongs to the owner of the caller, and does not exist for others.

use super::memory::RequestMemory;
use super::respond::ErrorResponse;
use crate::caller::Caller;
use crate::error::{AccessError, OperationError};
use crate::file_system::FileSystem;
use crate::limits::{BODY_TIMEOUT, MAX_FILE_BYTES};
use api::{ErrorCode, File, Owner, UploadName, UploadedFile};
use axum::body::{Body, HttpBody};
use futures_util::StreamExt;
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, fallocate, openat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Bytes of all uploads of an owner whose token has no quota for them: two of the largest sets of files.
const MAX_OF_OWNER: u64 = 2 * MAX_FILE_BYTES as u64;

/// Bytes of all uploads of all users, and of all administrators: a few owners must not fill the disk.
const MAX_OF_ALL: u64 = 2 << 30;

/// Number of uploads of an owner, and of all users or administrators: each has a descriptor.
const MAX_COUNT_OF_OWNER: usize = 1024;
const MAX_COUNT: usize = 4096;

/// The time after which an upload is removed that no request has used.
const UPLOAD_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// How often uploads are removed that are too old.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);

/// Bytes that must arrive in a second on average, after the first [`BODY_TIMEOUT`]: a slow client must not hold its place
/// for hours.
const MIN_RATE: u64 = 64 << 10;

/// The time for the next bytes.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes that are written at once.
const WRITE_SIZE: usize = 256 << 10;

/// The owner of an upload (`None`: administrators), and its name.
type Key = (Option<Owner>, UploadName);

/// An upload.
#[derive(Debug)]
struct Upload {
    bytes: u64,
    /// `None` while it arrives.
    file: Option<Arc<fs::File>>,
    /// When it was complete, or last used.
    since: Instant,
}

/// The uploads of a daemon. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Uploads {
    folder: Arc<PathBuf>,
    table: Arc<Mutex<HashMap<Key, Upload>>>,
}

fn owner_of(caller: &Caller) -> Option<Owner> {
    match caller {
        Caller::Administrator => None,
        Caller::User(user) => Some(user.owner.clone()),
    }
}

/// A failure of the file system, with advice.
fn failed(folder: &Path, error: &io::Error) -> ErrorResponse {
    if let Some(libc::EMFILE | libc::ENFILE) = error.raw_os_error() {
        let message = "the daemon has no free descriptor for the upload: try again later";
        return ErrorResponse::new(ErrorCode::Limit, message);
    }
    let message = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("{} is full: free some space there, and upload the file again", FileSystem::of(folder))
        }
        _ => format!("can't store the upload in {}: {error}", folder.display()),
    };
    ErrorResponse::new(ErrorCode::Store, message)
}

impl Uploads {
    /// No uploads. Their files will be on the file system of the store, or without a store on that of temporary files.
    pub(super) fn new(store: Option<&Path>) -> Self {
        let folder = match store.map(Path::parent) {
            Some(Some(folder)) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            Some(_) => PathBuf::from("."),
            None => std::env::temp_dir(),
        };
        Self { folder: Arc::new(folder), table: Arc::default() }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Upload>> {
        // A panic leaves the table as it was: each change is complete.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves an upload of this size. It replaces a complete one of this name.
    fn begin(&self, caller: &Caller, name: &UploadName, bytes: u64) -> Result<Arrival, ErrorResponse> {
        if bytes > File::MAX_BYTES as u64 {
            let message = format!("the upload has {bytes} bytes; the limit is {}", File::MAX_BYTES);
            return Err(ErrorResponse::new(ErrorCode::TooLarge, message));
        }
        let owner = owner_of(caller);
        let key = (owner.clone(), name.clone());
        let mut table = self.table();
        if table.get(&key).is_some_and(|there| there.file.is_none()) {
            let message = format!("upload {name} is just arriving: choose another name, or try again later");
            return Err(ErrorResponse::new(ErrorCode::Busy, message));
        }
        let others =
            || table.iter().filter(|(there, _)| **there != key && there.0.is_some() == owner.is_some());
        let own = || others().filter(|((of, _), _)| *of == owner);
        let used: u64 = own().map(|(_, upload)| upload.bytes).sum();
        if let Caller::User(user) = caller {
            let quota = user.quota.uploads.map_or(MAX_OF_OWNER, |size| size.0);
            if used.saturating_add(bytes) > quota {
                let [limit, used, more] = [quota, used, bytes].map(|bytes| api::Size(bytes).to_string());
                let error = AccessError::Quota { name: "bytes of uploads", limit, used, more };
                return Err(OperationError::from(error).into());
            }
        }
        let all: u64 = others().map(|(_, upload)| upload.bytes).sum();
        if own().count() >= MAX_COUNT_OF_OWNER
            || others().count() >= MAX_COUNT
            || all.saturating_add(bytes) > MAX_OF_ALL
        {
            let message = "there are too many uploads that no request has used: try again later";
            return Err(ErrorResponse::new(ErrorCode::Limit, message));
        }
        table.insert(key.clone(), Upload { bytes, file: None, since: Instant::now() });
        Ok(Arrival { uploads: self.clone(), key: Some(key), bytes })
    }

    /// Creates a file without a name, with room for an upload.
    fn create(folder: &Path, bytes: u64) -> io::Result<fs::File> {
        // It cannot get a name later (EXCL). In a program that is linked statically, `open` of such a file is another system call,
        // which the filter of the daemon does not have.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = match openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => fs::File::from(file),
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => Self::create_and_unlink(folder)?,
            Err(error) => return Err(error.into()),
        };
        if bytes > 0 {
            match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
                // Some file systems can't; then a full one is found later.
                Ok(()) | Err(Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(file)
    }

    /// Creates a file that loses its name at once, on a file system where each file has one at first.
    fn create_and_unlink(folder: &Path) -> io::Result<fs::File> {
        let number = RandomState::new().hash_one(std::process::id());
        let path = folder.join(format!(".clickbox-upload-{number:016x}"));
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }

    /// Receives the body of a request as an upload.
    pub(super) async fn receive(
        &self,
        caller: &Caller,
        name: &UploadName,
        body: Body,
    ) -> Result<u64, ErrorResponse> {
        let Some(bytes) = body.size_hint().exact() else {
            let message = "an upload needs a Content-Length, which is checked before it is read";
            return Err(ErrorResponse::new(ErrorCode::Invalid, message));
        };
        let arrival = self.begin(caller, name, bytes)?;
        let folder = self.folder.clone();
        let file = blocking(move || Self::create(&folder, bytes)).await;
        let file = Arc::new(file.map_err(|error| failed(&self.folder, &error))?);
        self.store(&file, bytes, body).await?;
        arrival.complete(file);
        Ok(bytes)
    }

    /// Writes a body into a file.
    async fn store(&self, file: &Arc<fs::File>, bytes: u64, body: Body) -> Result<(), ErrorResponse> {
        let began = Instant::now();
        let (mut chunks, mut waiting, mut written) = (body.into_data_stream(), Vec::new(), 0u64);
        let broken = |cause: String| {
            ErrorResponse::new(ErrorCode::Invalid, format!("the upload was broken off: {cause}"))
        };
        loop {
            let arrived = written + waiting.len() as u64;
            let slowest = began + BODY_TIMEOUT + Duration::from_secs(arrived / MIN_RATE);
            let chunk = match timeout_at(slowest.min(Instant::now() + CHUNK_TIMEOUT), chunks.next()).await {
                Ok(None) if arrived == bytes => None,
                Ok(None) => return Err(broken(format!("it has {arrived} bytes of {bytes}"))),
                Ok(Some(Ok(chunk))) if chunk.len() as u64 <= bytes - arrived => Some(chunk),
                Ok(Some(Ok(_))) => return Err(broken("it is longer than announced".into())),
                Ok(Some(Err(error))) => return Err(broken(error.to_string())),
                Err(_) => return Err(ErrorResponse::new(ErrorCode::Timeout, "the upload is too slow")),
            };
            let is_last = chunk.is_none();
            waiting.extend_from_slice(&chunk.unwrap_or_default());
            if waiting.len() >= WRITE_SIZE || is_last {
                let (file, block, at) = (file.clone(), std::mem::take(&mut waiting), written);
                written += block.len() as u64;
                let stored = blocking(move || file.write_all_at(&block, at)).await;
                stored.map_err(|error| failed(&self.folder, &error))?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Removes an upload.
    pub(super) fn remove(&self, caller: &Caller, name: &UploadName) -> Result<(), ErrorResponse> {
        let key = (owner_of(caller), name.clone());
        let mut table = self.table();
        match table.get(&key) {
            Some(upload) if upload.file.is_some() => {
                table.remove(&key);
                Ok(())
            }
            // What arrives is removed by its own request.
            Some(_) => Err(ErrorResponse::new(ErrorCode::Busy, format!("upload {name} is just arriving"))),
            None => Err(missing(name)),
        }
    }

    /// Reads uploads into the files of a request. They stay until [`remove_used`](Self::remove_used).
    pub(super) async fn load(
        &self,
        caller: &Caller,
        memory: &RequestMemory,
        sets: Vec<(&mut Vec<UploadedFile>, &mut Vec<File>)>,
    ) -> Result<UsedUploads, ErrorResponse> {
        let owner = owner_of(caller);
        let (mut found, mut sum) = (Vec::new(), 0u64);
        for (uploads, files) in sets {
            let mut of_set = Vec::new();
            for UploadedFile { name, upload } in std::mem::take(uploads) {
                let (file, bytes) = {
                    let mut table = self.table();
                    let there = table.get_mut(&(owner.clone(), upload.clone()));
                    let there = there.ok_or_else(|| missing(&upload))?;
                    there.since = Instant::now();
                    (there.file.clone().ok_or_else(|| missing(&upload))?, there.bytes)
                };
                // An upload counts as often as it is used.
                sum = sum.saturating_add(bytes);
                of_set.push((name, upload, file, bytes));
            }
            found.push((of_set, files));
        }
        if sum > MAX_FILE_BYTES as u64 {
            return Err(OperationError::TooLarge("all files together", clamp(sum), MAX_FILE_BYTES).into());
        }
        let wait = tokio::time::timeout(BODY_TIMEOUT, memory.take(clamp(sum))).await;
        wait.map_err(|_| {
            ErrorResponse::new(
                ErrorCode::Timeout,
                "other requests take all memory for files: try again later",
            )
        })??;
        let mut used = Vec::new();
        for (of_set, files) in found {
            for (name, upload, file, bytes) in of_set {
                let source = file.clone();
                let read = move || {
                    let mut contents = vec![0; clamp(bytes)];
                    source.read_exact_at(&mut contents, 0).map(|()| contents)
                };
                let contents = blocking(read).await.map_err(|error| failed(&self.folder, &error))?;
                files.push(File { name, contents: api::Value(contents) });
                used.push(((owner.clone(), upload), file));
            }
        }
        Ok(UsedUploads(used))
    }

    /// Removes uploads that a request has installed. One that was replaced meanwhile stays.
    pub(super) fn remove_used(&self, used: UsedUploads) {
        let mut table = self.table();
        for (key, file) in used.0 {
            let present = table.get(&key).and_then(|upload| upload.file.as_ref());
            if present.is_some_and(|present| Arc::ptr_eq(present, &file)) {
                table.remove(&key);
            }
        }
    }

    /// Removes uploads that are too old, now and then. Does not end.
    pub(super) async fn expire(self) {
        loop {
            tokio::time::sleep(EXPIRY_INTERVAL).await;
            self.table()
                .retain(|_, upload| upload.file.is_none() || upload.since.elapsed() < UPLOAD_LIFETIME);
        }
    }
}

/// Uploads whose contents a request has.
#[derive(Debug)]
pub(super) struct UsedUploads(Vec<(Key, Arc<fs::File>)>);

impl UsedUploads {
    /// Adds those of another part of the request.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

fn missing(name: &UploadName) -> ErrorResponse {
    let message = format!(
        "there is no upload {name}: unused ones are removed after {} minutes, and when the daemon ends",
        UPLOAD_LIFETIME.as_secs() / 60
    );
    ErrorResponse::new(ErrorCode::NotFound, message)
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Runs a call of the file system on a thread that may block.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// An upload that arrives. If it is dropped before it is complete, it is removed.
#[derive(Debug)]
struct Arrival {
    uploads: Uploads,
    key: Option<Key>,
    bytes: u64,
}

impl Arrival {
    fn complete(mut self, file: Arc<fs::File>) {
        if let Some(key) = self.key.take() {
            let upload = Upload { bytes: self.bytes, file: Some(file), since: Instant::now() };
            self.uploads.table().insert(key, upload);
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.uploads.table().remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryPool;
    use super::*;

    /// An upload is in memory only while a request uses it, and then counts against the memory of its caller.
    #[tokio::test(start_paused = true)]
    async fn uploads_in_use_take_memory_of_their_caller() {
        let (uploads, caller) = (Uploads::new(None), Caller::Administrator);
        let upload: UploadName = "rules".parse().unwrap();
        uploads.receive(&caller, &upload, Body::from(vec![7; 60])).await.unwrap();
        let pool = MemoryPool::new(100, 100);
        let load = async |memory: &RequestMemory, count: usize| {
            let (mut named, mut files) = (Vec::new(), Vec::new());
            let name = |number: usize| UploadedFile { name: format!("f{number}"), upload: upload.clone() };
            named.extend((0..count).map(name));
            let loaded = uploads.load(&caller, memory, vec![(&mut named, &mut files)]).await;
            loaded.map(|_| files).map_err(|error| error.0.code)
        };
        assert_eq!(pool.left(), 100, "it is in a file");
        let first = pool.for_request(&caller);
        let file = File { name: "f0".into(), contents: api::Value(vec![7; 60]) };
        assert_eq!(load(&first, 1).await, Ok(vec![file.clone()]));
        assert_eq!(pool.left(), 40);
        // Another request waits for its memory, but not forever.
        let second = pool.for_request(&caller);
        assert_eq!(load(&second, 1).await, Err(ErrorCode::Timeout));
        assert_eq!(pool.left(), 40);
        drop(first);
        assert_eq!(load(&second, 1).await, Ok(vec![file]));
        drop(second);
        // What is used twice counts twice, and exceeds what one request may have.
        assert_eq!(load(&pool.for_request(&caller), 2).await, Err(ErrorCode::TooLarge));
        assert_eq!(pool.left(), 100);
    }
}
