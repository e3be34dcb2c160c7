//! Unix stream sockets behind ports: those that listen for peers, and connections to peers that listen.
//!
//! No call waits. The launcher may be root, and a server at another path may trust root, so a connection is handed out only
//! when its server has sent what the front end of a vhost-user device sends first: other servers wait for their clients.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, lstat, unlink};
use rustix::io::Errno;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen,
    recv, socket_with,
};
use rustix::process::umask;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Peers that wait to be accepted.
const BACKLOG: i32 = 8;

/// How long a new connection is given for its server's first message. One that needs more time has it at the next try.
const FIRST_MESSAGE_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The largest number of a vhost-user request.
const MAX_REQUEST: u32 = 64;

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Listens at a path. A socket there at which no one listens is replaced. Only this process's user and root can connect.
pub(crate) fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    remove_stale(path)?;
    let socket = socket()?;
    let address = SocketAddrUnix::new(path)?;
    // The umask sets the mode at creation, so that no other user can connect in between.
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &address);
    umask(before);
    bound?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Whether a descriptor is that of a socket that listens at a path, and the path still leads to a socket.
pub(crate) fn listens_at(descriptor: &OwnedFd, path: &Path) -> bool {
    let address = getsockname(descriptor).ok().and_then(|address| SocketAddrUnix::try_from(address).ok());
    let has_path = address.is_some_and(|address| Some(address) == SocketAddrUnix::new(path).ok());
    has_path && is_socket(path).unwrap_or(false) && socket_acceptconn(descriptor).unwrap_or(false)
}

/// Removes the socket at a path if no one listens there.
///
/// # Errors
///
/// The path names something else than a socket, or somebody listens.
pub(crate) fn remove_stale(path: &Path) -> io::Result<()> {
    match is_socket(path) {
        Ok(true) => {}
        Ok(false) => return Err(Errno::EXIST.into()),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    match connect(&socket()?, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => Ok(unlink(path)?),
        Err(Errno::NOENT) => Ok(()),
        _ => Err(Errno::ADDRINUSE.into()),
    }
}

fn is_socket(path: &Path) -> rustix::io::Result<bool> {
    lstat(path).map(|found| FileType::from_raw_mode(found.st_mode).is_socket())
}

/// Connects to the server at a path.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Whether the server at the other end of a connection has begun to speak as a front end does.
///
/// # Errors
///
/// It has closed the connection, or speaks in another way. `WouldBlock`: it has not spoken yet.
pub(crate) fn check_front_end(socket: &OwnedFd) -> io::Result<()> {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&FIRST_MESSAGE_TIME))?;
    let mut header = [0u8; 12];
    let (length, _) = recv(socket, &mut header[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    let word =
        |at: usize| header.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_le_bytes(*word));
    match (length, word(0), word(4)) {
        (0, ..) => Err(Errno::CONNRESET.into()),
        // The number of the request; the version, in flags without that of an answer.
        (12, Some(1..=MAX_REQUEST), Some(flags)) if flags & 7 == 1 => Ok(()),
        (12, ..) => Err(Errno::PROTO.into()),
        _ => Err(Errno::AGAIN.into()),
    }
}
