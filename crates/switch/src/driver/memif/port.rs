//! The driver at a memif interface, as server or as client.
//!
//! While frames flow there are no system calls: a look at the ring shows whether there are any. The control socket is looked at
//! before each sleep, and after some visits. The runner sleeps on one descriptor, an epoll instance, which has
//! - the listening socket of a server;
//! - the control socket;
//! - the event of the ring to this side, edge-triggered: it need not be read, which could block, because the peer can change its
//!   flags.

use super::bell;
use super::connection::{self, Handshake, MemifSettings, Rings};
use super::error::MemifError;
use super::memory::Discarder;
use crate::batch::Batch;
use crate::driver::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::driver::kernel::{check, not_now, set_nonblocking};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::time::Duration;

/// Visits between two looks at the sockets while the runner does not sleep.
const VISITS: u32 = 512;
/// Descriptors of an epoll instance.
const DESCRIPTORS: usize = 3;

/// A port whose other end is the memif interface of another process.
#[derive(Debug)]
pub struct MemifPort {
    settings: MemifSettings,
    /// The listening socket of a server.
    listener: Option<OwnedFd>,
    epoll: OwnedFd,
    state: State,
    /// Visits until the next look at the sockets.
    visits: u32,
    /// Frames that a peer did not take before it ended, since they were last asked for.
    lost: u64,
    /// Why the last connection ended.
    ended: Option<MemifError>,
    discarder: Discarder,
}

#[derive(Debug)]
enum State {
    Unconnected,
    Connecting(Box<Handshake>),
    Connected(Box<Connection>),
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    rings: Rings,
    /// The peer has ended, and why. This many slots that it filled are still to be read.
    end: Option<(u16, MemifError)>,
}

impl MemifPort {
    /// The server at a listening socket. It serves one client at a time, and after it the next one.
    pub fn server(listener: OwnedFd, settings: MemifSettings) -> io::Result<Self> {
        if !is_listener(&listener) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this is not the socket of a memif server",
            ));
        }
        set_nonblocking(&listener)?;
        let mut port = Self::unconnected(settings)?;
        port.watch(&listener, libc::EPOLLIN)?;
        port.listener = Some(listener);
        Ok(port)
    }

    /// The client on a connected socket. When the connection ends, the port needs another one.
    pub fn client(socket: OwnedFd, settings: MemifSettings) -> io::Result<Self> {
        if !is_of_kind(&socket) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this is not a socket to a memif server",
            ));
        }
        let mut port = Self::unconnected(settings)?;
        port.watch(&socket, libc::EPOLLIN)?;
        port.state = State::Connecting(Box::new(Handshake::client(socket, &port.settings)));
        Ok(port)
    }

    /// A port that has no socket.
    pub fn unconnected(settings: MemifSettings) -> io::Result<Self> {
        // SAFETY: nothing else owns the new descriptor.
        let epoll = unsafe {
            let descriptor = check(libc::epoll_create1(libc::EPOLL_CLOEXEC) as isize)?;
            OwnedFd::from_raw_fd(descriptor as libc::c_int)
        };
        let state = State::Unconnected;
        Ok(Self {
            settings,
            listener: None,
            epoll,
            state,
            visits: 0,
            lost: 0,
            ended: None,
            discarder: Discarder::default(),
        })
    }

    /// Has the epoll instance report a descriptor.
    fn watch(&self, descriptor: &OwnedFd, events: libc::c_int) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: 0 };
        let (epoll, descriptor) = (self.epoll.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: the kernel reads a live variable.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, descriptor, &raw mut event) } as isize)
            .map(drop)
    }

    /// Looks at the sockets: accepts a client, and reads messages.
    #[cold]
    fn look(&mut self) {
        self.visits = VISITS;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; DESCRIPTORS];
        // SAFETY: the kernel writes at most this number of events to live memory, and does not wait.
        let ready = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), DESCRIPTORS as libc::c_int, 0)
        };
        if let State::Connecting(handshake) = &self.state
            && handshake.time_left().is_zero()
        {
            self.close(MemifError::Silent);
        }
        if ready <= 0 {
            return;
        }
        let result = match &mut self.state {
            State::Unconnected => Ok(None),
            State::Connecting(handshake) => handshake.advance(&self.settings),
            State::Connected(connection) if connection.end.is_some() => {
                let Connection { rings: Rings { reader, regions, .. }, end, .. } = &mut **connection;
                // A hostile peer can take back what it sent.
                match end.take_if(|_| reader.waiting(regions).is_ok_and(|waiting| waiting == 0)) {
                    Some((_, why)) => Err(why),
                    None => Ok(None),
                }
            }
            State::Connected(connection) => connection::hear(&connection.socket).map(|()| None),
        };
        match result {
            Ok(None) => {}
            Ok(Some(rings)) => self.begin(rings),
            Err(error) => self.end(error),
        }
        self.accept();
    }

    /// Accepts one client, or turns it away.
    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: nobody wants the address of the peer, and nothing else owns the new descriptor.
        let accepted = unsafe {
            check(libc::accept4(listener.as_raw_fd(), null_mut(), null_mut(), flags) as isize)
                .map(|descriptor| OwnedFd::from_raw_fd(descriptor as libc::c_int))
        };
        let socket = match accepted {
            Ok(socket) => socket,
            Err(error) if not_now(&error) => return,
            // The client has left, or this process has no descriptors left. It tries again.
            Err(_) => return,
        };
        if !matches!(self.state, State::Unconnected) || self.discarder.is_busy() {
            return connection::refuse(&socket, &MemifError::Busy);
        }
        let begun = self
            .watch(&socket, libc::EPOLLIN)
            .map_err(MemifError::from)
            .and_then(|()| Handshake::server(socket, &self.settings, &self.discarder));
        match begun {
            Ok(handshake) => self.state = State::Connecting(Box::new(handshake)),
            Err(error) => self.ended = Some(error),
        }
    }

    /// The peer has shared its rings.
    fn begin(&mut self, rings: Rings) {
        let watched = self.watch(&rings.own_event, libc::EPOLLIN | libc::EPOLLET);
        let State::Connecting(handshake) = std::mem::replace(&mut self.state, State::Unconnected) else {
            return;
        };
        self.state = State::Connected(Box::new(Connection { socket: handshake.socket, rings, end: None }));
        self.ended = None;
        if let Err(error) = watched {
            self.close(error.into());
        }
    }

    /// Ends the connection, after what the peer has sent so far.
    fn end(&mut self, why: MemifError) {
        match &mut self.state {
            State::Connected(connection) if connection.end.is_none() => {
                let Rings { reader, regions, .. } = &connection.rings;
                match reader.waiting(regions) {
                    Ok(0) | Err(_) => self.close(why),
                    Ok(waiting) => connection.end = Some((waiting, why)),
                }
            }
            _ => self.close(why),
        }
    }

    /// Ends the connection.
    fn close(&mut self, why: MemifError) {
        match std::mem::replace(&mut self.state, State::Unconnected) {
            State::Unconnected => {}
            State::Connecting(handshake) => connection::refuse(&handshake.socket, &why),
            State::Connected(connection) => {
                let Connection { socket, rings, .. } = *connection;
                self.lost += rings.writer.untaken(&rings.regions);
                connection::refuse(&socket, &why);
                // The peer has the event too: it would be reported although this side closes it.
                let (epoll, event) = (self.epoll.as_raw_fd(), rings.own_event.as_raw_fd());
                // SAFETY: the call reads no memory.
                unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, event, null_mut()) };
            }
        }
        self.ended = Some(why);
    }
}

impl Driver for MemifPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let State::Connected(connection) = &mut self.state else { return Ok(Received::default()) };
        let Connection { rings: Rings { regions, reader, .. }, end, .. } = &mut **connection;
        let most = end.as_ref().map_or(u16::MAX, |(left, _)| *left);
        match reader.receive(regions, batch, most) {
            Ok((read, received)) => {
                if let Some((left, why)) = end.take() {
                    match left.saturating_sub(read) {
                        0 => self.close(why),
                        left => *end = Some((left, why)),
                    }
                }
                Ok(received)
            }
            Err(error) => {
                self.close(error);
                Ok(Received::default())
            }
        }
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let down = Sent { down: true, ..Sent::default() };
        let State::Connected(connection) = &mut self.state else { return Ok(down) };
        let Connection { rings: Rings { regions, writer, peers_event, .. }, end: None, .. } =
            &mut **connection
        else {
            return Ok(down);
        };
        match writer.send(regions, batch, frames) {
            Ok((sent, wakes)) => {
                if wakes {
                    // It worked when the connection was made.
                    let _ = bell::ring(peers_event);
                }
                Ok(sent)
            }
            Err(error) => {
                self.end(error);
                Ok(down)
            }
        }
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        match self.visits.checked_sub(1) {
            Some(visits) => self.visits = visits,
            None => self.look(),
        }
        let State::Connected(connection) = &self.state else { return false };
        let Rings { reader, regions, .. } = &connection.rings;
        match reader.waiting(regions) {
            Ok(waiting) => waiting > 0,
            Err(error) => {
                self.close(error);
                false
            }
        }
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.look();
        let State::Connected(connection) = &self.state else { return Ok(true) };
        let Rings { reader, regions, .. } = &connection.rings;
        match reader.unmask(regions) {
            Ok(is_empty) => Ok(is_empty),
            Err(error) => {
                self.close(error);
                Ok(true)
            }
        }
    }

    fn end_sleep(&mut self) {
        self.visits = 0;
        if let State::Connected(connection) = &self.state {
            let Rings { reader, regions, .. } = &connection.rings;
            reader.mask(regions);
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn device(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// The time until a peer has not answered in time.
    fn due_in(&self) -> Option<Duration> {
        match &self.state {
            State::Connecting(handshake) => Some(handshake.time_left()),
            _ => None,
        }
    }

    fn is_crowded(&mut self) -> bool {
        let State::Connected(connection) = &self.state else { return false };
        let Rings { writer, regions, .. } = &connection.rings;
        writer.is_crowded(regions)
    }

    fn link_state(&self) -> Option<LinkState> {
        let why = |text: &str| match &self.ended {
            Some(error) => format!("{text}: {error}"),
            None => text.to_string(),
        };
        Some(match &self.state {
            State::Connected(connection) if connection.end.is_none() => LinkState::Up,
            State::Connecting(_) => LinkState::Connected,
            _ if self.listener.is_some() => LinkState::Waiting(why("no client is connected")),
            _ => LinkState::Gone(why("no server is connected")),
        })
    }

    fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// The frames that wait here, and those that the peer did not take.
    fn abandon(&mut self) -> u64 {
        if let State::Connected(connection) = &self.state {
            let Rings { reader, regions, .. } = &connection.rings;
            self.lost += reader.waiting(regions).map_or(0, u64::from);
        }
        self.close(MemifError::Removed);
        self.take_lost()
    }
}

impl Drop for MemifPort {
    fn drop(&mut self) {
        self.close(MemifError::Removed);
    }
}

/// Whether a descriptor is a socket of the kind that memif uses, and listens.
fn is_listener(socket: &OwnedFd) -> bool {
    option(socket, libc::SO_ACCEPTCONN) == Some(1) && is_of_kind(socket)
}

/// Whether a descriptor is a socket of the kind that memif uses.
fn is_of_kind(socket: &OwnedFd) -> bool {
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
