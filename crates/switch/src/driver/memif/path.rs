//! Sockets at paths: what needs the privileges to create or to reach them.

use crate::driver::kernel::check;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Connections that wait to be accepted.
const BACKLOG: libc::c_int = 16;

/// Listens at a path. A socket that a process left there is replaced, unless one still listens.
pub(super) fn listen(path: &Path) -> io::Result<OwnedFd> {
    match bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path)?;
            bind(path)
        }
        result => result,
    }
}

/// Connects to who listens at a path. Does not wait for it.
pub(super) fn connect(path: &Path) -> io::Result<OwnedFd> {
    let ((address, size), socket) = (address(path)?, socket()?);
    // SAFETY: the kernel reads the address, which is live and has this size.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) } as isize)?;
    Ok(socket)
}

/// Removes a socket at a path at which no process listens any more.
pub(super) fn remove(path: &Path) {
    if is_abandoned(path) {
        // If another process has removed it, the aim is reached.
        let _ = fs::remove_file(path);
    }
}

/// Whether a descriptor is a socket that listens at this path.
pub(super) fn listens_at(socket: &OwnedFd, path: &Path) -> bool {
    let Ok((wanted, _)) = address(path) else { return false };
    // SAFETY: all-zero bytes are a valid address, and the kernel writes at most its size to it.
    let found = unsafe {
        let mut found: libc::sockaddr_un = zeroed();
        let mut size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let result = libc::getsockname(socket.as_raw_fd(), (&raw mut found).cast(), &raw mut size);
        check(result as isize).map(|_| found)
    };
    let is_same =
        found.is_ok_and(|found| found.sun_family == wanted.sun_family && found.sun_path == wanted.sun_path);
    is_same
        && is_listener(socket)
        && fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket())
}

/// Whether a descriptor is a socket of the kind that memif uses, and listens.
pub(super) fn is_listener(socket: &OwnedFd) -> bool {
    option(socket, libc::SO_ACCEPTCONN) == Some(1) && is_of_kind(socket)
}

/// Whether a descriptor is a socket of the kind that memif uses.
pub(super) fn is_of_kind(socket: &OwnedFd) -> bool {
    option(socket, libc::SO_TYPE) == Some(libc::SOCK_SEQPACKET)
        && option(socket, libc::SO_DOMAIN) == Some(libc::AF_UNIX)
}

fn option(socket: &OwnedFd, name: libc::c_int) -> Option<libc::c_int> {
    let (mut value, mut size) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `size` bytes to the variable.
    let result = unsafe {
        let value: *mut libc::c_int = &raw mut value;
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value.cast(), &raw mut size)
    };
    (result == 0).then_some(value)
}

/// Whether a path is that of a socket at which no process listens.
fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket());
    // A socket of another kind gives another error.
    is_socket && connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn bind(path: &Path) -> io::Result<OwnedFd> {
    let ((address, size), socket) = (address(path)?, socket()?);
    // SAFETY: the kernel reads the address, which is live and has this size.
    unsafe {
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) as isize)?;
        check(libc::listen(socket.as_raw_fd(), BACKLOG) as isize)?;
    }
    Ok(socket)
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: nothing else owns the new descriptor.
    unsafe {
        let descriptor = check(libc::socket(libc::AF_UNIX, kind, 0) as isize)?;
        Ok(OwnedFd::from_raw_fd(descriptor as libc::c_int))
    }
}

/// The address of a path, and its size. A path that is too long fails with `ENAMETOOLONG`.
fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all-zero bytes are a valid address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    if bytes.len() >= address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let size = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, size as libc::socklen_t))
}
