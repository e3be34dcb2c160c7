//! The driver at a memif interface, as server or as client.
//!
//! While frames flow there are no system calls: a look at the ring shows whether there are any. The control socket is looked at
//! before each sleep, and after some visits. The runner sleeps on one descriptor, an epoll instance, which has
//! - the listening socket of a server;
//! - the control socket;
//! - the event of the ring to this side, edge-triggered: it need not be read, which could block, because the peer can change its
//!   flags.
//!
//! A port with several rings in each direction may have several drivers. Each has a part of the rings and an epoll instance of its
//! own; the first one has the sockets.

use super::connection::{self, Handshake, MAX_QUEUES, MemifSettings, Rings};
use super::error::MemifError;
use super::memory::Discarder;
use super::queues::{Part, Queues, SharedRings, watch};
use crate::batch::Batch;
use crate::driver::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::driver::kernel::{check, not_now, set_nonblocking};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// Visits between two looks at the sockets while the runner does not sleep.
const VISITS: u32 = 512;
/// Descriptors of an epoll instance that are taken from its list at once.
const DESCRIPTORS: usize = 2 + MAX_QUEUES as usize;

/// A port whose other end is the memif interface of another process, or a part of its rings.
#[derive(Debug)]
pub struct MemifPort {
    shared: Arc<SharedRings>,
    /// The rings that this driver has.
    part: Part,
    /// The rings of the peer, as they were when they last changed.
    queues: Option<Arc<Queues>>,
    generation: u64,
    /// The ring to look at first.
    first: usize,
    /// The sockets, which the first driver has.
    control: Option<Control>,
}

#[derive(Debug)]
struct Control {
    settings: MemifSettings,
    /// The listening socket of a server.
    listener: Option<OwnedFd>,
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
    Connected {
        socket: OwnedFd,
        /// The peer has ended, and why. What it sent before is still to be received.
        end: Option<MemifError>,
    },
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
        watch(port.epoll(), &listener, libc::EPOLLIN)?;
        if let Some(control) = &mut port.control {
            control.listener = Some(listener);
        }
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
        watch(port.epoll(), &socket, libc::EPOLLIN)?;
        if let Some(control) = &mut port.control {
            control.state = State::Connecting(Box::new(Handshake::client(socket, &control.settings)));
        }
        Ok(port)
    }

    /// A port that has no socket.
    pub fn unconnected(settings: MemifSettings) -> io::Result<Self> {
        if !(1..=MAX_QUEUES).contains(&settings.queues) {
            let why = "a memif port has 1 to 16 rings in each direction";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let control = Control {
            settings,
            listener: None,
            state: State::Unconnected,
            visits: 0,
            lost: 0,
            ended: None,
            discarder: Discarder::default(),
        };
        let shared = Arc::new(SharedRings::new(epoll()?));
        Ok(Self::part(shared, Part { number: 0, drivers: 1 }, Some(control)))
    }

    fn part(shared: Arc<SharedRings>, part: Part, control: Option<Control>) -> Self {
        Self { shared, part, queues: None, generation: 0, first: 0, control }
    }

    /// The port with this number of drivers, which divide the rings among them. No peer must be connected yet.
    pub fn divide(mut self, drivers: usize) -> io::Result<Vec<Self>> {
        let drivers = drivers.max(1);
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.epolls.extend((1..drivers).map(|_| epoll()).collect::<io::Result<Vec<_>>>()?);
        }
        self.part.drivers = drivers;
        let shared = self.shared.clone();
        let others = (1..drivers).map(|number| Self::part(shared.clone(), Part { number, drivers }, None));
        Ok(std::iter::once(self).chain(others).collect())
    }

    fn epoll(&self) -> &OwnedFd {
        self.shared.epolls.get(self.part.number).unwrap_or(&self.shared.epolls[0])
    }

    /// Takes the descriptors from the list of the epoll instance that are edge-triggered. Returns whether there were any.
    fn harvest(&self) -> bool {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; DESCRIPTORS];
        // SAFETY: the kernel writes at most this number of events to live memory, and does not wait.
        unsafe {
            let count = DESCRIPTORS as libc::c_int;
            libc::epoll_wait(self.epoll().as_raw_fd(), events.as_mut_ptr(), count, 0) > 0
        }
    }

    /// Finds out whether there are other rings than before.
    #[inline]
    fn refresh(&mut self) {
        if self.control.is_none() && self.shared.generation() != self.generation {
            self.generation = self.shared.generation();
            self.queues = self.shared.current();
        }
    }

    /// Looks at the sockets: accepts a client, and reads messages.
    #[cold]
    fn look(&mut self) {
        let is_ready = self.harvest();
        let Some(control) = &mut self.control else { return };
        control.visits = VISITS;
        match &control.state {
            State::Connecting(handshake) if handshake.time_left().is_zero() => self.close(MemifError::Silent),
            _ => self.shared.take_failure().into_iter().for_each(|error| self.close(error)),
        }
        let Some(control) = self.control.as_mut().filter(|_| is_ready) else { return };
        let result = match &mut control.state {
            State::Unconnected => Ok(None),
            State::Connecting(handshake) => handshake.advance(&control.settings),
            State::Connected { end: Some(_), .. } => Ok(None),
            State::Connected { socket, .. } => connection::hear(socket).map(|()| None),
        };
        match result {
            Ok(None) => self.close_if_drained(),
            Ok(Some(rings)) => self.begin(rings),
            Err(error) => self.end(error),
        }
        self.accept();
    }

    /// Accepts one client, or turns it away.
    fn accept(&mut self) {
        let Some(control) = &mut self.control else { return };
        let Some(listener) = &control.listener else { return };
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
        if !matches!(control.state, State::Unconnected) || control.discarder.is_busy() {
            return connection::refuse(&socket, &MemifError::Busy);
        }
        let begun = watch(&self.shared.epolls[0], &socket, libc::EPOLLIN)
            .map_err(MemifError::from)
            .and_then(|()| Handshake::server(socket, &control.settings, &control.discarder));
        match begun {
            Ok(handshake) => control.state = State::Connecting(Box::new(handshake)),
            Err(error) => control.ended = Some(error),
        }
    }

    /// The peer has shared its rings.
    fn begin(&mut self, rings: Rings) {
        let Some(control) = &mut self.control else { return };
        let State::Connecting(handshake) = std::mem::replace(&mut control.state, State::Unconnected) else {
            return;
        };
        control.state = State::Connected { socket: handshake.socket, end: None };
        control.ended = None;
        let queues = Arc::new(Queues::new(rings));
        self.queues = Some(queues.clone());
        if let Err(error) = self.shared.begin(queues) {
            self.close(error.into());
        }
    }

    /// Ends the connection, after what the peer has sent so far.
    fn end(&mut self, why: MemifError) {
        match self.control.as_mut().map(|control| &mut control.state) {
            Some(State::Connected { end: end @ None, .. }) => {
                *end = Some(why);
                self.queues.iter().for_each(|queues| queues.finish());
                self.close_if_drained();
            }
            _ => self.close(why),
        }
    }

    /// Ends the connection of a peer that has ended, if all that it sent was received.
    fn close_if_drained(&mut self) {
        let Some(Control { state: State::Connected { end, .. }, .. }) = &mut self.control else { return };
        let is_drained = || self.queues.as_ref().is_none_or(|queues| queues.is_drained());
        if let Some(why) = end.take_if(|_| is_drained()) {
            self.close(why);
        }
    }

    /// The peer broke the rules of a ring.
    fn fail(&mut self, error: MemifError) {
        if self.control.is_some() {
            self.close(error);
        } else {
            // The first driver ends the connection.
            self.queues = None;
            self.shared.fail(error);
        }
    }

    /// Ends the connection.
    fn close(&mut self, why: MemifError) {
        let Some(control) = &mut self.control else { return };
        match std::mem::replace(&mut control.state, State::Unconnected) {
            State::Unconnected => {}
            State::Connecting(handshake) => connection::refuse(&handshake.socket, &why),
            State::Connected { socket, .. } => {
                if let Some(queues) = self.queues.take() {
                    control.lost += queues.close();
                    self.shared.end(&queues);
                }
                connection::refuse(&socket, &why);
            }
        }
        control.ended = Some(why);
    }
}

impl Driver for MemifPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.refresh();
        let Some(queues) = &self.queues else { return Ok(Received::default()) };
        self.first = self.first.wrapping_add(1);
        match queues.receive(self.part, self.first, batch) {
            Ok(received) => {
                self.close_if_drained();
                Ok(received)
            }
            Err(error) => {
                self.fail(error);
                Ok(Received::default())
            }
        }
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.refresh();
        let down = Sent { down: true, ..Sent::default() };
        let Some(queues) = &self.queues else { return Ok(down) };
        match queues.send(self.part, batch, frames) {
            Ok(sent) => Ok(sent.unwrap_or(down)),
            Err(error) => {
                match self.control {
                    Some(_) => self.end(error),
                    None => self.fail(error),
                }
                Ok(down)
            }
        }
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        match self.control.as_mut().map(|control| control.visits.checked_sub(1)) {
            Some(Some(visits)) => self.control.iter_mut().for_each(|control| control.visits = visits),
            Some(None) => self.look(),
            None => self.refresh(),
        }
        let Some(queues) = &self.queues else { return false };
        match queues.is_ready(self.part) {
            Ok(is_ready) => is_ready,
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.look();
        self.refresh();
        let Some(queues) = &self.queues else { return Ok(true) };
        match queues.unmask(self.part) {
            Ok(is_empty) => Ok(is_empty),
            Err(error) => {
                self.fail(error);
                Ok(true)
            }
        }
    }

    fn end_sleep(&mut self) {
        self.control.iter_mut().for_each(|control| control.visits = 0);
        self.queues.iter().for_each(|queues| queues.mask(self.part));
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll().as_fd())
    }

    fn device(&self) -> Option<BorrowedFd<'_>> {
        self.control.as_ref()?.listener.as_ref().map(AsFd::as_fd)
    }

    /// The time until a peer has not answered in time.
    fn due_in(&self) -> Option<Duration> {
        match &self.control.as_ref()?.state {
            State::Connecting(handshake) => Some(handshake.time_left()),
            _ => None,
        }
    }

    fn is_crowded(&mut self) -> bool {
        self.queues.as_ref().is_some_and(|queues| queues.is_crowded(self.part))
    }

    /// The rings to this side, while a peer is connected. The first driver counts those of all, because it knows of them first.
    fn queues(&self) -> u32 {
        let queues = self.queues.as_ref().filter(|_| self.control.is_some());
        queues.map_or(0, |queues| queues.count() as u32)
    }

    fn link_state(&self) -> Option<LinkState> {
        let control = self.control.as_ref()?;
        let why = |text: &str| match &control.ended {
            Some(error) => format!("{text}: {error}"),
            None => text.to_string(),
        };
        Some(match &control.state {
            State::Connected { end: None, .. } => LinkState::Up,
            State::Connecting(_) => LinkState::Connected,
            _ if control.listener.is_some() => LinkState::Waiting(why("no client is connected")),
            _ => LinkState::Gone(why("no server is connected")),
        })
    }

    fn take_lost(&mut self) -> u64 {
        self.control.as_mut().map_or(0, |control| std::mem::take(&mut control.lost))
    }

    /// The frames that wait here, and those that the peer did not take.
    fn abandon(&mut self) -> u64 {
        // The first driver has all of them.
        if let (Some(control), Some(queues)) = (&mut self.control, &self.queues) {
            control.lost += queues.waiting();
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

fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: nothing else owns the new descriptor.
    unsafe {
        let descriptor = check(libc::epoll_create1(libc::EPOLL_CLOEXEC) as isize)?;
        Ok(OwnedFd::from_raw_fd(descriptor as libc::c_int))
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
