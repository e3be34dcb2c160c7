//! The socket: served by one launcher, and accessible to its user and root only.

use crate::error::RunError;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::{geteuid, umask};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// The listening socket. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    /// Held as long as the socket is served.
    _lock: OwnedFd,
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
        let socket = create(path).map_err(|error| failed(error.into()))?;
        Ok(Self { socket, path: path.into(), _lock: lock })
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
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
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

fn create(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    // The umask sets the mode at creation, so that no other user can connect in between.
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &address);
    umask(before);
    bound?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
