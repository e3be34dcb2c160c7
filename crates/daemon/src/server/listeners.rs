//! The listening sockets of a daemon.

use super::error::RunError;
use super::listen::{ListenError, Socket};
use super::tls::TlsError;
use crate::upgrade::{Handover, Origin, Part};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The listening sockets of a daemon. They are opened before the daemon runs, and outlive it when it is replaced.
#[derive(Debug)]
pub struct Listeners {
    /// The path that was asked for.
    pub(super) path: PathBuf,
    pub(super) unix: Socket,
    pub(super) tcp: Option<TcpListener>,
    /// The daemon that waits until this one is ready.
    pub(super) origin: Option<Origin>,
}

impl Listeners {
    /// Opens the sockets, or takes them over from another daemon.
    ///
    /// # Errors
    ///
    /// Another daemon serves the Unix socket, or a socket cannot be opened.
    pub fn open(path: &Path, tcp: Option<SocketAddr>, handover: Option<Handover>) -> Result<Self, RunError> {
        let (mut unix, mut lock, mut tcp_listener, mut origin) = (None, None, None, None);
        if let Some(handover) = handover {
            origin = Some(handover.origin);
            for (part, descriptor) in handover.parts {
                match part {
                    Part::Unix => unix = Some(UnixListener::from(descriptor)),
                    Part::Lock => lock = Some(File::from(descriptor)),
                    Part::Tcp => tcp_listener = Some(TcpListener::from(descriptor)),
                    Part::Unknown => {}
                }
            }
        }
        let unix = match unix {
            Some(listener) => Socket::take_over(path, listener, lock).map_err(ListenError::Handed)?,
            None => Socket::open(path)?,
        };
        let bind = |address| {
            let listener = TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            listener.map_err(|error| RunError::from(TlsError::Bind(address, error)))
        };
        let tcp = match (tcp_listener, tcp) {
            (Some(listener), Some(_)) => Some(listener),
            (_, address) => address.map(bind).transpose()?,
        };
        Ok(Self { path: path.into(), unix, tcp, origin })
    }

    /// What a successor takes over.
    pub(super) fn parts(&self) -> Vec<(Part, BorrowedFd<'_>)> {
        let mut parts = vec![(Part::Unix, self.unix.listener.as_fd())];
        parts.extend(self.unix.lock().map(|lock| (Part::Lock, lock.as_fd())));
        parts.extend(self.tcp.as_ref().map(|tcp| (Part::Tcp, tcp.as_fd())));
        parts
    }
}
