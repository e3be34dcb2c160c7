//! Unix sockets behind ports: those that listen for peers, and connections to peers that listen.
//!
//! No call waits. The launcher may be root, and a server at another path may trust root, so a connection is handed out only
//! when its server has sent what a peer sends first: other servers wait for their clients.

use protocol::launcher::SocketProtocol;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, lstat, unlink};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
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
/// Bytes of a memif message.
const MEMIF_MESSAGE: usize = 128;
/// The types of the memif messages that a server may send first: a greeting, and why it accepts no client.
const MEMIF_FIRST: [u16; 2] = [2, 8];

fn kind(protocol: SocketProtocol) -> SocketType {
    match protocol {
        SocketProtocol::VhostUser => SocketType::STREAM,
        SocketProtocol::Memif => SocketType::SEQPACKET,
    }
}

fn socket(protocol: SocketProtocol) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, kind(protocol), flags, None)
}

/// Listens at a path. A socket there at which no one listens is replaced. Only this process's user and root can connect.
pub(crate) fn listen_at(protocol: SocketProtocol, path: &Path) -> io::Result<OwnedFd> {
    remove_stale(protocol, path)?;
    let socket = socket(protocol)?;
    let address = SocketAddrUnix::new(path)?;
    // The umask sets the mode at creation, so that no other user can connect in between.
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &address);
    umask(before);
    bound?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Whether a descriptor is that of a socket of the right kind that listens at a path, and the path still leads to a socket.
pub(crate) fn listens_at(protocol: SocketProtocol, descriptor: &OwnedFd, path: &Path) -> bool {
    let address = getsockname(descriptor).ok().and_then(|address| SocketAddrUnix::try_from(address).ok());
    let has_path = address.is_some_and(|address| Some(address) == SocketAddrUnix::new(path).ok());
    let is_kind = socket_type(descriptor).is_ok_and(|found| found == kind(protocol));
    has_path && is_kind && is_socket(path).unwrap_or(false) && socket_acceptconn(descriptor).unwrap_or(false)
}

/// Removes the socket at a path if no one listens there.
///
/// # Errors
///
/// The path names something else than a socket, or somebody listens.
pub(crate) fn remove_stale(protocol: SocketProtocol, path: &Path) -> io::Result<()> {
    match is_socket(path) {
        Ok(true) => {}
        Ok(false) => return Err(Errno::EXIST.into()),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    match connect(&socket(protocol)?, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => Ok(unlink(path)?),
        Err(Errno::NOENT) => Ok(()),
        _ => Err(Errno::ADDRINUSE.into()),
    }
}

fn is_socket(path: &Path) -> rustix::io::Result<bool> {
    lstat(path).map(|found| FileType::from_raw_mode(found.st_mode).is_socket())
}

/// Connects to the server at a path.
pub(crate) fn connect_to(protocol: SocketProtocol, path: &Path) -> io::Result<OwnedFd> {
    let socket = socket(protocol)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Whether the server at the other end of a connection has begun to speak as a peer does.
///
/// # Errors
///
/// It has closed the connection, or speaks in another way. `WouldBlock`: it has not spoken yet.
pub(crate) fn check_first_message(protocol: SocketProtocol, socket: &OwnedFd) -> io::Result<()> {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&FIRST_MESSAGE_TIME))?;
    let mut message = [0u8; MEMIF_MESSAGE];
    let wanted = match protocol {
        SocketProtocol::VhostUser => &mut message[..12],
        SocketProtocol::Memif => &mut message[..],
    };
    let (length, _) = recv(socket, &mut *wanted, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    if length == 0 {
        return Err(Errno::CONNRESET.into());
    }
    let is_first = match (protocol, length == wanted.len()) {
        // The rest of a stream may come later.
        (SocketProtocol::VhostUser, false) => return Err(Errno::AGAIN.into()),
        (SocketProtocol::VhostUser, true) => is_request(wanted),
        (SocketProtocol::Memif, is_whole) => {
            let kind = wanted.first_chunk().map(|word| u16::from_ne_bytes(*word));
            is_whole && kind.is_some_and(|kind| MEMIF_FIRST.contains(&kind))
        }
    };
    if is_first { Ok(()) } else { Err(Errno::PROTO.into()) }
}

/// Whether the header of a vhost-user message is that of a request: its number, and the version in flags without that of an
/// answer.
fn is_request(header: &[u8]) -> bool {
    let word =
        |at: usize| header.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_le_bytes(*word));
    word(0).is_some_and(|number| (1..=MAX_REQUEST).contains(&number))
        && word(4).is_some_and(|flags| flags & 7 == 1)
}
