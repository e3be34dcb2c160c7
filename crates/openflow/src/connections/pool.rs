//! All connections of an agent.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connect;
use crate::message::Role;
use crate::session::{Agent, Datapath, SessionId, SessionState};

/// Time before the first attempt to connect again. Each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Time for a connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes read at once from a controller, so that one that sends without end does not delay the others.
const READ_SIZE: usize = 16 << 10;

/// How far the connection to a controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// It failed or ended; another attempt follows.
    Waiting,
    /// It is coming about.
    Connecting,
    /// It exists.
    Connected(SessionId),
}

enum Link {
    Waiting { until: Duration },
    Connecting { socket: TcpStream, since: Duration },
    Connected { socket: TcpStream, session: SessionId, unread: Vec<u8> },
}

struct Controller {
    address: SocketAddr,
    link: Link,
    /// Time before the attempt after the next failure.
    pause: Duration,
    /// When the last connection began or ended.
    since: Duration,
    /// Why the last connection ended or failed.
    fault: Option<ConnectionFault>,
}

/// Why a connection to a controller ended or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectionFault {
    /// The system reported an error with this number.
    System(i32),
    /// It did not come about in time.
    Timeout,
    /// The controller closed it.
    Closed,
    /// The controller speaks another protocol or version, is silent, or violates the protocol.
    Session,
    /// The agent has too many sessions.
    TooMany,
}

impl fmt::Display for ConnectionFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(number) => std::io::Error::from_raw_os_error(*number).fmt(formatter),
            Self::Timeout => formatter.write_str("the controller does not answer"),
            Self::Closed => formatter.write_str("the controller closed the connection"),
            Self::Session => {
                formatter.write_str("the controller does not speak OpenFlow 1.3, or did not respond in time")
            }
            Self::TooMany => formatter.write_str("there are too many sessions"),
        }
    }
}

impl std::error::Error for ConnectionFault {}

/// A connection to a controller, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// The controller.
    pub address: SocketAddr,
    /// The role of the controller, if it is connected and has sent its greeting.
    pub role: Option<Role>,
    /// Time since the last connection began or ended.
    pub since: Duration,
    /// Why the last connection ended or failed.
    pub fault: Option<ConnectionFault>,
}

/// The connections of an agent to its controllers, in the caller's thread.
///
/// A controller that does not answer, or ends its connection, is connected to again after a pause of one second, which
/// doubles up to eight seconds with each failure.
pub struct Connections<D> {
    agent: Agent<D>,
    controllers: Vec<Controller>,
    start: Instant,
    buffer: Vec<u8>,
}

impl<D: Datapath> Connections<D> {
    /// Connections to these controllers, which begin with the first turn.
    #[must_use]
    pub fn new(agent: Agent<D>, controllers: &[SocketAddr]) -> Self {
        let controller = |address: &SocketAddr| Controller {
            address: *address,
            link: Link::Waiting { until: Duration::ZERO },
            pause: FIRST_PAUSE,
            since: Duration::ZERO,
            fault: None,
        };
        Self {
            agent,
            controllers: controllers.iter().map(controller).collect(),
            start: Instant::now(),
            buffer: vec![0; READ_SIZE],
        }
    }

    /// The agent.
    pub fn agent(&mut self) -> &mut Agent<D> {
        &mut self.agent
    }

    /// The time as the agent knows it.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// How far the connections are, in the order of the controllers.
    pub fn states(&self) -> impl Iterator<Item = (SocketAddr, ConnectionState)> {
        self.controllers.iter().map(|controller| {
            let state = match &controller.link {
                Link::Waiting { .. } => ConnectionState::Waiting,
                Link::Connecting { .. } => ConnectionState::Connecting,
                Link::Connected { session, .. } => ConnectionState::Connected(*session),
            };
            (controller.address, state)
        })
    }

    /// Waits until there is something to do, `wake` is readable, or the timeout passes; then does it.
    ///
    /// # Errors
    /// Waiting failed, for example because there is no memory. Faults of connections are no errors.
    pub fn turn(&mut self, wake: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<(), Errno> {
        turn(std::iter::once(self), wake, timeout)
    }

    /// The connections as they are reported, in the order of the controllers.
    pub fn statuses(&self) -> impl Iterator<Item = ConnectionStatus> {
        let now = self.now();
        self.controllers.iter().map(move |controller| ConnectionStatus {
            address: controller.address,
            role: match &controller.link {
                Link::Connected { session, .. } if self.agent.state(*session) == SessionState::Open => {
                    self.agent.role(*session)
                }
                _ => None,
            },
            since: now.saturating_sub(controller.since),
            fault: controller.fault,
        })
    }

    fn begin(&mut self) {
        let now = self.now();
        for controller in &mut self.controllers {
            controller.connect_if_due(now);
        }
    }

    fn advance(&mut self) {
        let now = self.now();
        self.agent.poll(now);
        for controller in &mut self.controllers {
            controller.advance(&mut self.agent, &mut self.buffer, now);
        }
    }

    /// Adds what to wait for, and shortens the timeout to the next attempt to connect.
    fn prepare<'a>(&'a self, sockets: &mut Vec<PollFd<'a>>, timeout: &mut Duration) {
        let now = self.now();
        for controller in &self.controllers {
            let (socket, flags) = match &controller.link {
                Link::Waiting { until } => {
                    *timeout = (*timeout).min(until.saturating_sub(now));
                    continue;
                }
                Link::Connecting { socket, .. } => (socket, PollFlags::OUT),
                Link::Connected { socket, session, unread } => {
                    let mut flags = PollFlags::empty();
                    flags.set(PollFlags::IN, unread.is_empty());
                    flags.set(PollFlags::OUT, !self.agent.output(*session).is_empty());
                    (socket, flags)
                }
            };
            sockets.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
        }
    }
}

/// As [`Connections::turn`], for several agents together.
///
/// # Errors
/// Waiting failed, for example because there is no memory. Faults of connections are no errors.
pub fn turn<'c, D: Datapath + 'c>(
    connections: impl IntoIterator<Item = &'c mut Connections<D>>,
    wake: Option<BorrowedFd<'_>>,
    timeout: Duration,
) -> Result<(), Errno> {
    let mut all: Vec<&mut Connections<D>> = connections.into_iter().collect();
    all.iter_mut().for_each(|connections| connections.begin());
    wait(&all, wake, timeout)?;
    all.iter_mut().for_each(|connections| connections.advance());
    Ok(())
}

fn wait<D: Datapath>(
    all: &[&mut Connections<D>],
    wake: Option<BorrowedFd<'_>>,
    mut timeout: Duration,
) -> Result<(), Errno> {
    let mut sockets: Vec<PollFd<'_>> =
        wake.iter().map(|wake| PollFd::from_borrowed_fd(*wake, PollFlags::IN)).collect();
    all.iter().for_each(|connections| connections.prepare(&mut sockets, &mut timeout));
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut sockets, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Controller {
    fn connect_if_due(&mut self, now: Duration) {
        if matches!(self.link, Link::Waiting { until } if until <= now) {
            match connect::begin(self.address) {
                Ok(socket) => self.link = Link::Connecting { socket, since: now },
                Err(error) => self.fail(now, ConnectionFault::System(error.raw_os_error())),
            }
        }
    }

    /// Waits before the next attempt.
    fn fail(&mut self, now: Duration, fault: ConnectionFault) {
        if matches!(self.link, Link::Connected { .. }) {
            self.since = now;
        }
        self.fault = Some(fault);
        self.link = Link::Waiting { until: now.saturating_add(self.pause) };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn advance<D: Datapath>(&mut self, agent: &mut Agent<D>, buffer: &mut [u8], now: Duration) {
        match &mut self.link {
            Link::Waiting { .. } => {}
            Link::Connecting { socket, since } => {
                let is_late = now.saturating_sub(*since) >= CONNECT_TIMEOUT;
                // Without a peer the socket has neither failed nor come about.
                let fault = connect::fault(socket);
                if socket.peer_addr().is_err() {
                    match fault {
                        Some(error) => self.fail(now, ConnectionFault::System(error)),
                        None if is_late => self.fail(now, ConnectionFault::Timeout),
                        None => {}
                    }
                    return;
                }
                match (socket.try_clone(), agent.connect(now)) {
                    (Ok(socket), Some(session)) => {
                        self.link = Link::Connected { socket, session, unread: Vec::new() };
                        self.since = now;
                    }
                    (Ok(_), None) => self.fail(now, ConnectionFault::TooMany),
                    (Err(error), session) => {
                        session.into_iter().for_each(|session| agent.disconnect(session));
                        self.fail(now, ConnectionFault::of(&error));
                    }
                }
            }
            Link::Connected { socket, session, unread } => {
                let session = *session;
                if agent.state(session) == SessionState::Open {
                    self.pause = FIRST_PAUSE;
                }
                let exchanged = exchange(socket, session, unread, agent, buffer, now);
                let is_closed = agent.state(session) == SessionState::Closed;
                let fault = exchanged.err().or(is_closed.then_some(ConnectionFault::Session));
                if let Some(fault) = fault {
                    agent.disconnect(session);
                    self.fail(now, fault);
                }
            }
        }
    }
}

impl ConnectionFault {
    fn of(error: &io::Error) -> Self {
        error.raw_os_error().map_or(Self::Closed, Self::System)
    }
}

/// Moves bytes between a socket and a session, unless the connection ended.
fn exchange<D: Datapath>(
    socket: &mut TcpStream,
    session: SessionId,
    unread: &mut Vec<u8>,
    agent: &mut Agent<D>,
    buffer: &mut [u8],
    now: Duration,
) -> Result<(), ConnectionFault> {
    send(socket, session, agent, now)?;
    if unread.is_empty() {
        match socket.read(buffer) {
            Ok(0) => return Err(ConnectionFault::Closed),
            Ok(count) => unread.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(ConnectionFault::of(&error)),
        }
    }
    let taken = agent.receive(session, unread, now);
    unread.drain(..taken.min(unread.len()));
    send(socket, session, agent, now)
}

/// Sends what a session says, as much as the socket takes, unless the connection ended.
fn send<D: Datapath>(
    socket: &mut TcpStream,
    session: SessionId,
    agent: &mut Agent<D>,
    now: Duration,
) -> Result<(), ConnectionFault> {
    // A session that continues a long report has new output after each write; others get their turn between them.
    for _ in 0..16 {
        let output = agent.output(session);
        if output.is_empty() {
            return Ok(());
        }
        match socket.write(output) {
            Ok(count) => agent.sent(session, count, now),
            Err(error) if is_pause(&error) => return Ok(()),
            Err(error) => return Err(ConnectionFault::of(&error)),
        }
    }
    Ok(())
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
