//! A port whose other end is a virtio network device of a virtual machine. This is its back end.

use super::bell::Ringers;
use super::connection::{Connection, epoll, harvest, unwatch, watch};
use super::error::VhostUserError;
use super::offloads::Offloads;
use crate::batch::Batch;
use crate::driver::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::driver::kernel::{check, not_now, set_nonblocking};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;

/// Looks for frames between two looks for messages, while the switch does not sleep.
const LOOKS: u32 = 64;

/// A port with a vhost-user peer: one pair of queues.
#[derive(Debug)]
pub struct VhostUser {
    /// The socket at which the peers connect, one after the other. Without one, the only peer is the one connected.
    listener: Option<OwnedFd>,
    connection: Option<Connection>,
    offloads: Offloads,
    /// All that wakes the port.
    epoll: Arc<OwnedFd>,
    ringers: Ringers,
    looks: u32,
    /// Why the last connection ended.
    ended: Option<VhostUserError>,
    /// The port needs another descriptor.
    is_gone: bool,
}

impl VhostUser {
    /// A port at which front ends connect to a socket that listens.
    pub fn server(listener: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&listener)?;
        let ringers = Ringers::at(&listener);
        let port = Self { listener: Some(listener), ringers, ..Self::unconnected()? };
        port.listen().map_err(io::Error::other)?;
        Ok(port)
    }

    /// A port with a connection to a front end.
    pub fn client(socket: OwnedFd) -> io::Result<Self> {
        let mut port = Self { ringers: Ringers::at(&socket), ..Self::unconnected()? };
        let connection = Connection::new(socket, port.epoll.clone(), &port.ringers);
        port.connection = Some(connection.map_err(io::Error::other)?);
        Ok(port)
    }

    /// A port that has no socket.
    pub fn unconnected() -> io::Result<Self> {
        let (epoll, ringers) = (Arc::new(epoll()?), Ringers::default());
        Ok(Self {
            listener: None,
            connection: None,
            offloads: Offloads::default(),
            epoll,
            ringers,
            looks: 0,
            ended: None,
            is_gone: false,
        })
    }

    fn listen(&self) -> Result<(), VhostUserError> {
        self.listener.as_ref().map_or(Ok(()), |listener| watch(&self.epoll, listener, libc::EPOLLIN))
    }

    /// Accepts a peer if there is none, and handles its messages.
    fn serve(&mut self) {
        self.looks = 0;
        if self.connection.is_none()
            && !self.is_gone
            && let Err(error) = self.accept()
        {
            // It would be reported that others wait to be accepted.
            self.listener.iter().for_each(|listener| unwatch(&self.epoll, listener));
            (self.ended, self.is_gone) = (Some(error), true);
        }
        if let Some(Err(error)) = self.connection.as_mut().map(Connection::serve) {
            self.end(error);
        }
    }

    fn accept(&mut self) -> Result<(), VhostUserError> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the call returns a descriptor that nothing else owns; no address is asked for.
        let accepted = unsafe { libc::accept4(listener.as_raw_fd(), null_mut(), null_mut(), flags) };
        match check(accepted as isize) {
            Ok(accepted) => {
                // SAFETY: as above.
                let socket = unsafe { OwnedFd::from_raw_fd(accepted as i32) };
                self.connection = Some(Connection::new(socket, self.epoll.clone(), &self.ringers)?);
                // Others that connect wait until this one is gone.
                unwatch(&self.epoll, listener);
                Ok(())
            }
            Err(error) if not_now(&error) || is_of_peer(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the connection. If the peer closed it, a port that listens waits for the next one. Otherwise the port is down, so
    /// that the reason is shown, and a peer that breaks the rules does not come back at once.
    #[cold]
    fn end(&mut self, error: VhostUserError) {
        self.connection = None;
        let listens = self.listener.is_some() && matches!(error, VhostUserError::Closed);
        let failed = if listens { self.listen().err() } else { None };
        self.is_gone = !listens || failed.is_some();
        self.ended = Some(failed.unwrap_or(error));
    }
}

/// Whether an error of accepting is that of a peer that is gone again.
fn is_of_peer(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ECONNABORTED | libc::EPROTO))
}

impl Driver for VhostUser {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        if self.offloads.pass_on(batch)
            && let Some(connection) = &mut self.connection
            && let Err(error) = connection.receive(batch, &mut received, &mut self.offloads)
        {
            // With the frame that could not be received, the peer is lost.
            received.faulty += u64::from(error.has_frame());
            self.end(error);
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        let Self { connection, offloads, .. } = self;
        match connection.as_mut().map(|connection| connection.send(batch, frames, &mut sent, offloads)) {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                sent.down = true;
                self.end(error);
            }
            None => sent.down = true,
        }
        Ok(sent)
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        self.looks += 1;
        if self.looks >= LOOKS {
            self.serve();
        }
        self.connection.as_ref().is_some_and(Connection::is_ready) || self.offloads.waiting() > 0
    }

    fn is_crowded(&mut self) -> bool {
        self.connection.as_ref().is_some_and(Connection::is_crowded)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        harvest(&self.epoll);
        self.serve();
        Ok(self.offloads.waiting() == 0 && self.connection.as_mut().is_none_or(Connection::prepare_sleep))
    }

    fn end_sleep(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.end_sleep();
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    /// The socket that listens, if there is one: another one could not be bound to its path.
    fn device(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    fn waiting(&self) -> u64 {
        self.offloads.waiting() as u64
    }

    fn abandon(&mut self) -> u64 {
        self.offloads.waiting() as u64
    }

    fn link_state(&self) -> Option<LinkState> {
        let why = || {
            let text = "no front end is connected";
            self.ended.as_ref().map_or_else(|| text.to_string(), |error| format!("{text}: {error}"))
        };
        Some(match &self.connection {
            Some(connection) if connection.is_up() => LinkState::Up,
            Some(_) => LinkState::Connected,
            None if self.listener.is_some() && !self.is_gone => LinkState::Waiting(why()),
            None => LinkState::Gone(why()),
        })
    }
}
