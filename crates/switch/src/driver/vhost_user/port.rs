//! A port whose other end is a virtio network device of a virtual machine. This is its back end.

use super::bell::Ringers;
use super::connection::{Connection, epoll, harvest, unwatch, watch};
use super::error::VhostUserError;
use super::offloads::Offloads;
use super::pairs::{MAX_PAIRS, Pairs, Part};
use crate::batch::Batch;
use crate::driver::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::driver::kernel::{check, not_now, set_nonblocking};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;

/// Looks for frames between two looks for messages, while the switch does not sleep.
const LOOKS: u32 = 64;

/// A port with a vhost-user peer, or a part of its queue pairs.
#[derive(Debug)]
pub struct VhostUser {
    pairs: Arc<Pairs>,
    /// The pairs that this driver has.
    part: Part,
    /// The pair to look at first.
    first: usize,
    /// The socket at which the peers connect, one after the other. Without one, the only peer is the one connected.
    listener: Option<OwnedFd>,
    /// The connection, which the first driver has.
    connection: Option<Connection>,
    offloads: Offloads,
    ringers: Ringers,
    looks: u32,
    /// Why the last connection ended.
    ended: Option<VhostUserError>,
    /// What the driver before this one said.
    before: Option<String>,
    /// The port needs another descriptor.
    is_gone: bool,
}

/// How a port works: how many queue pairs it offers, and what a peer may share.
#[derive(Clone, Copy, Debug)]
pub struct VhostUserSettings {
    /// Maximum number of pairs: 1 to 16. A peer may use fewer.
    pub pairs: usize,
    /// The number of drivers; no more than there are pairs.
    pub drivers: usize,
    /// Maximum bytes of memory that a peer may share. Pages of it that the switch is the first to write to are charged to the fabric.
    pub memory: u64,
}

impl Default for VhostUserSettings {
    /// One pair, and 16 GiB of memory.
    fn default() -> Self {
        Self { pairs: 1, drivers: 1, memory: 16 << 30 }
    }
}

impl VhostUser {
    /// A port at which front ends connect to a socket that listens.
    pub fn server(listener: OwnedFd) -> io::Result<Self> {
        Self::server_with(listener, VhostUserSettings::default())
    }

    /// The first driver of such a port with several queue pairs.
    pub fn server_with(listener: OwnedFd, settings: VhostUserSettings) -> io::Result<Self> {
        set_nonblocking(&listener)?;
        let ringers = Ringers::at(&listener);
        let port = Self { listener: Some(listener), ringers, ..Self::unconnected_with(settings)? };
        port.listen().map_err(io::Error::other)?;
        Ok(port)
    }

    /// A port with a connection to a front end.
    pub fn client(socket: OwnedFd) -> io::Result<Self> {
        Self::client_with(socket, VhostUserSettings::default())
    }

    /// The first driver of such a port with several queue pairs.
    pub fn client_with(socket: OwnedFd, settings: VhostUserSettings) -> io::Result<Self> {
        let mut port = Self { ringers: Ringers::at(&socket), ..Self::unconnected_with(settings)? };
        let connection = Connection::new(socket, port.pairs.clone(), &port.ringers);
        port.connection = Some(connection.map_err(io::Error::other)?);
        Ok(port)
    }

    /// A port that has no socket.
    pub fn unconnected() -> io::Result<Self> {
        Self::unconnected_with(VhostUserSettings::default())
    }

    /// The first driver of such a port with several queue pairs.
    pub fn unconnected_with(settings: VhostUserSettings) -> io::Result<Self> {
        if !(1..=MAX_PAIRS).contains(&settings.pairs) {
            let why = "a vhost_user port has 1 to 16 queue pairs";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let drivers = settings.drivers.clamp(1, settings.pairs);
        let epolls = (0..drivers).map(|_| epoll()).collect::<io::Result<_>>()?;
        Ok(Self::part(
            Arc::new(Pairs::new(settings.pairs, epolls, settings.memory)),
            Part { number: 0, drivers },
        ))
    }

    fn part(pairs: Arc<Pairs>, part: Part) -> Self {
        Self {
            pairs,
            part,
            first: 0,
            listener: None,
            connection: None,
            offloads: Offloads::default(),
            ringers: Ringers::default(),
            looks: 0,
            ended: None,
            before: None,
            is_gone: false,
        }
    }

    /// All drivers of the port, of which this is the first one.
    pub fn divide(self) -> Vec<Self> {
        let (pairs, drivers) = (self.pairs.clone(), self.part.drivers);
        let others = (1..drivers).map(|number| Self::part(pairs.clone(), Part { number, drivers }));
        std::iter::once(self).chain(others).collect()
    }

    fn epoll(&self) -> &OwnedFd {
        self.pairs.epoll(self.part.number)
    }

    fn listen(&self) -> Result<(), VhostUserError> {
        self.listener.as_ref().map_or(Ok(()), |listener| watch(self.epoll(), listener, libc::EPOLLIN))
    }

    /// Accepts a peer if there is none, and handles its messages.
    fn serve(&mut self) {
        self.looks = 0;
        if self.connection.is_none()
            && !self.is_gone
            && let Err(error) = self.accept()
        {
            // It would be reported that others wait to be accepted.
            self.listener.iter().for_each(|listener| unwatch(self.epoll(), listener));
            (self.ended, self.is_gone) = (Some(error), true);
        }
        let failure = self.connection.as_ref().and_then(|_| self.pairs.take_failure());
        if let Some(error) =
            failure.or_else(|| self.connection.as_mut().and_then(|connection| connection.serve().err()))
        {
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
                self.connection = Some(Connection::new(socket, self.pairs.clone(), &self.ringers)?);
                // Others that connect wait until this one is gone.
                unwatch(self.pairs.epoll(0), listener);
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
        if self.part.number > 0 {
            // The first driver ends the connection.
            return self.pairs.fail(error);
        }
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
        let Self { pairs, part, offloads, .. } = self;
        self.first = self.first.wrapping_add(1);
        if offloads.pass_on(batch)
            && let Err(error) = pairs.receive(*part, self.first, batch, &mut received, offloads)
        {
            // With the frame that could not be received, the peer is lost.
            received.faulty += u64::from(error.has_frame());
            self.end(error);
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        if let Err(error) = self.pairs.send(self.part, batch, frames, &mut sent, &mut self.offloads) {
            sent.down = true;
            self.end(error);
        }
        Ok(sent)
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        self.looks += 1;
        if self.looks >= LOOKS {
            self.serve();
        }
        self.pairs.is_ready(self.part) || self.offloads.waiting() > 0
    }

    fn skipped(&self) -> Vec<u32> {
        self.offloads.coalescer.skipped()
    }

    fn is_crowded(&mut self) -> bool {
        self.pairs.is_crowded(self.part)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        harvest(self.epoll());
        self.serve();
        Ok(self.offloads.waiting() == 0 && self.pairs.prepare_sleep(self.part))
    }

    fn end_sleep(&mut self) {
        self.pairs.end_sleep(self.part);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll().as_fd())
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

    fn recall(&mut self, why: String) {
        self.before = Some(why);
    }

    /// The queue pairs that the peer uses.
    fn queues(&self) -> u32 {
        self.pairs.count(self.part) as u32
    }

    fn link_state(&self) -> Option<LinkState> {
        if self.part.number > 0 {
            return None;
        }
        let why = || {
            let text = "no front end is connected";
            match (&self.ended, &self.before) {
                (Some(error), _) => format!("{text}: {error}"),
                (None, Some(before)) => before.clone(),
                (None, None) => text.to_string(),
            }
        };
        Some(match &self.connection {
            Some(_) if self.pairs.is_up() => LinkState::Up,
            Some(connection) => connection.misplaced().map_or(LinkState::Connected, LinkState::Blocked),
            None if self.listener.is_some() && !self.is_gone => LinkState::Waiting(why()),
            None => LinkState::Gone(why()),
        })
    }
}
