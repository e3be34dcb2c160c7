//! The socket of a service, at which functions connect.

use super::connection::Connection;
use protocol::function::TOKEN_BYTES;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, sockopt};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Why a descriptor is not that of a service's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerError {
    /// It is no socket that keeps message boundaries and listens in the file system.
    Socket,
    /// The token is not one.
    Token,
}

impl fmt::Display for ListenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Socket => {
                "the descriptor is not that of a listening Unix socket that keeps message boundaries"
            }
            Self::Token => "the token does not have 32 bytes",
        })
    }
}

impl std::error::Error for ListenerError {}

/// A listening socket, with the token that functions have to know.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    token: [u8; TOKEN_BYTES],
}

impl Listener {
    /// Uses a socket that the daemon has bound.
    pub(crate) fn new(socket: OwnedFd, token: &[u8]) -> Result<Self, ListenerError> {
        let token = token.try_into().map_err(|_| ListenerError::Token)?;
        let is_right = || {
            let kind = (sockopt::socket_domain(&socket)?, sockopt::socket_type(&socket)?);
            let listens = sockopt::socket_acceptconn(&socket)?;
            fcntl_setfl(&socket, fcntl_getfl(&socket)? | OFlags::NONBLOCK)?;
            Ok::<_, Errno>(kind == (AddressFamily::UNIX, SocketType::SEQPACKET) && listens)
        };
        match is_right() {
            Ok(true) => Ok(Self { socket, token }),
            _ => Err(ListenerError::Socket),
        }
    }

    /// The next function that connects, if one waits.
    pub(crate) fn accept(&self) -> Option<Connection> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        accept_with(&self.socket, flags).ok().map(Connection::new)
    }

    /// Whether it is the token. The time that this takes says nothing about the token.
    pub(crate) fn is_token(&self, given: &[u8; TOKEN_BYTES]) -> bool {
        self.token.iter().zip(given).fold(0, |different, (one, other)| different | (one ^ other)) == 0
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
