//! The socket: served by one launcher, and accessible to its user and root only. The file that locks it has the identity of
//! the store that is served, for the next launcher.

use crate::error::RunError;
use protocol::StoreIdentity;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::{geteuid, umask};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// The listening socket. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    /// Held as long as the socket is served.
    lock: File,
}

impl Listener {
    /// Locks the path, replaces the socket of a launcher that has ended, and listens.
    pub(crate) fn open(path: &Path) -> Result<Self, RunError> {
        let failed = |error: io::Error| RunError::Listen(path.into(), error);
        let lock = lock(path).map_err(|error| match error {
            Errno::WOULDBLOCK => RunError::InUse(path.into()),
            error => failed(error.into()),
        })?;
        remove_stale(path).map_err(failed)?;
        let socket = bind_private(path, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        let socket = socket.map_err(|error| failed(error.into()))?;
        listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
        Ok(Self { socket, path: path.into(), lock: lock.into() })
    }

    /// The store that was served last, possibly by an earlier launcher.
    pub(crate) fn store(&self) -> Option<StoreIdentity> {
        let mut store = StoreIdentity::default();
        self.lock.read_exact_at(&mut store, 0).is_ok().then_some(store)
    }

    /// Notes the store that is served, for the next launcher.
    pub(crate) fn note_store(&self, store: StoreIdentity) {
        // Without it, the next launcher adopts no fabric.
        let _ = self.lock.write_all_at(&store, 0);
    }

    /// The next client, if one waits and may connect.
    pub(crate) fn accept(&self) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let client = accept_with(&self.socket, flags).ok()?;
        let peer = socket_peercred(&client).ok()?;
        (peer.uid.is_root() || peer.uid == geteuid()).then_some(client)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The file may already be removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks the file beside the socket. The kernel releases the lock when this process ends, however it ends. The file
/// stays: a launcher that removed it could remove the one that the next launcher has locked.
fn lock(path: &Path) -> rustix::io::Result<OwnedFd> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = open(&name, flags, Mode::RUSR | Mode::WUSR)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// The lock is held, so a socket at this path belongs to a launcher that has ended. Other files are left alone.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if FileType::from_raw_mode(found.mode()).is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path names a file that is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A socket of messages, bound to a path to which only this process's user and root can connect.
pub(crate) fn bind_private(path: &Path, flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    // The umask sets the mode at creation, so that no other user can connect in between.
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &address);
    umask(before);
    bound?;
    Ok(socket)
}

/// The numbers of the sockets of this process's user whose paths are `path`, `suffix` and a number.
pub(crate) fn own_sockets(path: &Path, suffix: &str) -> Vec<u32> {
    let Some(mut start) = path.file_name().map(ToOwned::to_owned) else { return Vec::new() };
    start.push(suffix);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name();
        let digits = str::from_utf8(name.as_bytes().strip_prefix(start.as_bytes())?).ok()?;
        let number = digits.parse::<u32>().ok().filter(|number| number.to_string() == digits)?;
        let found = entry.metadata().ok()?;
        let is_own_socket = found.file_type().is_socket() && found.uid() == geteuid().as_raw();
        is_own_socket.then_some(number)
    });
    numbered.collect()
}
