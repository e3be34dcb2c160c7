//! The sockets at which the next launcher reaches the fabrics of one that was killed.
//!
//! For each fabric, a launcher binds a socket in the folder of its own socket, and the fabric listens there. When the next
//! launcher connects, the kernel tells it which process listens, and as which user. It trusts no daemon and no file.

use crate::listener::{bind_private, own_sockets};
use protocol::Channel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What follows the name of the launcher's socket, before the number of the fabric.
const SUFFIX: &str = ".fabric-";

/// A fabric of a launcher that has ended.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) channel: Channel,
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    /// Its user, at the time when it began to listen.
    pub(crate) user: u32,
}

/// Why a launcher does not adopt a fabric that runs.
#[derive(Debug)]
pub enum AdoptError {
    /// The fabric can't be reached.
    Reach(io::Error),
    /// The process is that of another user than the fabric with this number has.
    OtherUser {
        /// The user.
        found: u32,
        /// The user of the fabric with this number.
        expected: u32,
    },
    /// It is not known which store the fabric serves.
    NoStore,
    /// There are too many fabrics.
    TooMany,
}

/// The path of the socket of the fabric with this number.
fn path(launcher: &Path, number: u32) -> PathBuf {
    let mut path = launcher.as_os_str().to_owned();
    path.push(format!("{SUFFIX}{number}"));
    path.into()
}

/// Makes the socket of the fabric with this number. Returns it bound, for the fabric.
pub(crate) fn bind(launcher: &Path, number: u32) -> io::Result<OwnedFd> {
    // One that is there belonged to a fabric that has ended.
    remove(launcher, number);
    Ok(bind_private(&path(launcher, number), SocketFlags::CLOEXEC)?)
}

/// Removes the socket of a fabric that has ended, or is not adopted.
pub(crate) fn remove(launcher: &Path, number: u32) {
    // It may already be removed.
    let _ = fs::remove_file(path(launcher, number));
}

/// The fabrics of a launcher that has ended, with their numbers. Sockets without a listener are removed.
pub(crate) fn orphans(launcher: &Path) -> Vec<(u32, Result<Orphan, AdoptError>)> {
    let numbers = own_sockets(launcher, SUFFIX).into_iter();
    let reached = numbers.map(|number| (number, reach(&path(launcher, number))));
    let alive = reached.filter(|(number, orphan)| {
        let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        let has_ended = orphan.as_ref().is_err_and(is_refused);
        if has_ended {
            remove(launcher, *number);
        }
        !has_ended
    });
    alive.map(|(number, orphan)| (number, orphan.map_err(AdoptError::Reach))).collect()
}

/// Connects to the process that listens at a path.
fn reach(path: &Path) -> io::Result<Orphan> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let peer = socket_peercred(&socket)?;
    let pidfd = pidfd_open(peer.pid, PidfdFlags::empty())?;
    // The number may be that of another process by now, but only if the one that listened has ended, which closes the
    // connection.
    let mut ready = [PollFd::new(&socket, PollFlags::empty())];
    poll(&mut ready, Some(&Timespec::default()))?;
    if !ready[0].revents().is_empty() {
        return Err(Errno::CONNREFUSED.into());
    }
    Ok(Orphan { channel: Channel::from(socket), pid: peer.pid, pidfd, user: peer.uid.as_raw() })
}

impl fmt::Display for AdoptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reach(error) => error.fmt(f),
            Self::OtherUser { found, expected } => {
                write!(f, "its user is {found}, and fabrics with this number are user {expected}")
            }
            Self::NoStore => f.write_str("it is not known which store it serves"),
            Self::TooMany => f.write_str("there are too many fabrics"),
        }
    }
}

impl Error for AdoptError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Reach(error) => error.source(),
            Self::OtherUser { .. } | Self::NoStore | Self::TooMany => None,
        }
    }
}
