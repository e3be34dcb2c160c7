//! The Unix socket: served by one daemon, and accessible to its user only.

use listenfd::ListenFd;
use rustix::fs::Mode;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Why the socket cannot be opened.
#[derive(Debug)]
pub enum ListenError {
    /// Another daemon serves it.
    InUse(PathBuf),
    /// It cannot be created.
    Make(PathBuf, io::Error),
    /// The descriptor that was passed at the start is not a Unix socket.
    Handed(io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "another daemon serves the socket {}: stop it, or use another socket",
                path.display()
            ),
            Self::Make(path, _) => write!(f, "can't create the socket {}", path.display()),
            Self::Handed(_) => f.write_str("the socket that the service manager passed can't be used"),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InUse(_) => None,
            Self::Make(_, error) | Self::Handed(error) => Some(error),
        }
    }
}

/// A listening socket. Dropping it removes the file, unless the socket was passed in.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    /// Its path, if it was created here.
    path: Option<PathBuf>,
    /// Held as long as the socket is served.
    lock: Option<File>,
}

impl Socket {
    /// Uses the socket that the parent process passed (`LISTEN_FDS`), or creates one that only this user can connect
    /// to.
    pub(super) fn open(path: &Path) -> Result<Self, ListenError> {
        let handed = ListenFd::from_env().take_unix_listener(0).map_err(ListenError::Handed)?;
        let (listener, made, lock) = match handed {
            Some(listener) => (listener, None, None),
            None => {
                let lock = lock(path)?;
                let listener = bind(path).map_err(|error| ListenError::Make(path.into(), error))?;
                (listener, Some(path.to_path_buf()), Some(lock))
            }
        };
        listener.set_nonblocking(true).map_err(ListenError::Handed)?;
        Ok(Self { listener, path: made, lock })
    }
}

impl Socket {
    /// The socket of another daemon, with its lock, if it made the socket at this path.
    pub(super) fn take_over(path: &Path, listener: UnixListener, lock: Option<File>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: lock.as_ref().map(|_| path.to_path_buf()), lock })
    }

    /// The lock, if this process or the one before made the socket.
    pub(super) fn lock(&self) -> Option<&File> {
        self.lock.as_ref()
    }

    /// Leaves the file to the process that has taken over.
    pub(super) fn release(&mut self) {
        self.path = None;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The file may already be removed.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The time for the lock of a daemon that was killed to be released: a process that it was just creating has the lock
/// too, until it ends a moment later.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// Locks the file beside the socket. The kernel releases the lock when this process ends, however it ends.
fn lock(path: &Path) -> Result<File, ListenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let make = |error| ListenError::Make(path.into(), error);
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&name).map_err(make)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_TIMEOUT / 50);
            }
            Err(TryLockError::WouldBlock) => return Err(ListenError::InUse(path.into())),
            Err(TryLockError::Error(error)) => return Err(make(error)),
        }
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    // The lock is held, so a socket at this path belongs to a daemon that has ended. Other files are left alone.
    match std::fs::symlink_metadata(path) {
        Ok(there) if std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => {
            std::fs::remove_file(path)?;
        }
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the path names a file that is not a socket",
            ));
        }
        Err(_) => {}
    }
    // The umask sets the mode at creation, so that no other user can connect in between.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    listener
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_socket_is_private_and_served_by_one_daemon() {
        let folder = std::env::temp_dir().join(format!("clickbox-socket-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let socket = Socket::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = Socket::open(&path).unwrap_err();
        assert!(matches!(second, ListenError::InUse(_)));
        assert!(second.to_string().contains("another daemon serves"), "{second}");
        // A daemon that was killed leaves the file; its lock is released.
        let left = folder.join("left");
        drop(UnixListener::bind(&left).unwrap());
        drop(Socket::open(&left).unwrap());
        assert!(!left.exists());
        drop(socket);
        assert!(!path.exists());
        let file = folder.join("file");
        std::fs::write(&file, b"kept").unwrap();
        assert!(Socket::open(&file).is_err() && std::fs::read(&file).unwrap() == b"kept");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
