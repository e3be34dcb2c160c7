//! All connections of an agent.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::address::ControllerAddress;
use super::connect;
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
    address: ControllerAddress,
    link: Link,
    /// Time before the attempt after the next failure.
    pause: Duration,
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
    pub fn new(agent: Agent<D>, controllers: &[ControllerAddress]) -> Self {
        let controller = |address: &ControllerAddress| Controller {
            address: *address,
            link: Link::Waiting { until: Duration::ZERO },
            pause: FIRST_PAUSE,
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
    pub fn states(&self) -> impl Iterator<Item = (ControllerAddress, ConnectionState)> {
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
        let now = self.now();
        for controller in &mut self.controllers {
            controller.connect_if_due(now);
        }
        self.wait(wake, timeout)?;
        let now = self.now();
        self.agent.poll(now);
        for controller in &mut self.controllers {
            controller.advance(&mut self.agent, &mut self.buffer, now);
        }
        Ok(())
    }

    fn wait(&self, wake: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<(), Errno> {
        let (now, mut timeout) = (self.now(), timeout);
        let mut sockets: Vec<PollFd<'_>> = Vec::with_capacity(self.controllers.len() + 1);
        for controller in &self.controllers {
            let (socket, flags) = match &controller.link {
                Link::Waiting { until } => {
                    timeout = timeout.min(until.saturating_sub(now));
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
        sockets.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake, PollFlags::IN)));
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut sockets, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Controller {
    fn connect_if_due(&mut self, now: Duration) {
        if matches!(self.link, Link::Waiting { until } if until <= now) {
            match connect::begin(self.address.0) {
                Ok(socket) => self.link = Link::Connecting { socket, since: now },
                Err(_) => self.fail(now),
            }
        }
    }

    /// Waits before the next attempt.
    fn fail(&mut self, now: Duration) {
        self.link = Link::Waiting { until: now.saturating_add(self.pause) };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn advance<D: Datapath>(&mut self, agent: &mut Agent<D>, buffer: &mut [u8], now: Duration) {
        match &mut self.link {
            Link::Waiting { .. } => {}
            Link::Connecting { socket, since } => {
                let is_late = now.saturating_sub(*since) >= CONNECT_TIMEOUT;
                // Without a peer the socket has neither failed nor come about.
                let has_ended = !connect::is_connected(socket);
                if socket.peer_addr().is_err() {
                    if is_late || has_ended {
                        self.fail(now);
                    }
                    return;
                }
                let Ok(socket) = socket.try_clone() else { return self.fail(now) };
                match agent.connect(now) {
                    Some(session) => self.link = Link::Connected { socket, session, unread: Vec::new() },
                    None => self.fail(now),
                }
            }
            Link::Connected { socket, session, unread } => {
                let session = *session;
                if agent.state(session) == SessionState::Open {
                    self.pause = FIRST_PAUSE;
                }
                let is_alive = exchange(socket, session, unread, agent, buffer, now);
                if !is_alive || agent.state(session) == SessionState::Closed {
                    agent.disconnect(session);
                    self.fail(now);
                }
            }
        }
    }
}

/// Moves bytes between a socket and a session. Returns false if the connection ended.
fn exchange<D: Datapath>(
    socket: &mut TcpStream,
    session: SessionId,
    unread: &mut Vec<u8>,
    agent: &mut Agent<D>,
    buffer: &mut [u8],
    now: Duration,
) -> bool {
    if !send(socket, session, agent, now) {
        return false;
    }
    if unread.is_empty() {
        match socket.read(buffer) {
            Ok(0) => return false,
            Ok(count) => unread.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if is_pause(&error) => {}
            Err(_) => return false,
        }
    }
    let taken = agent.receive(session, unread, now);
    unread.drain(..taken.min(unread.len()));
    send(socket, session, agent, now)
}

/// Sends what a session says, as much as the socket takes. Returns false if the connection ended.
fn send<D: Datapath>(
    socket: &mut TcpStream,
    session: SessionId,
    agent: &mut Agent<D>,
    now: Duration,
) -> bool {
    // A session that continues a long report has new output after each write; others get their turn between them.
    for _ in 0..16 {
        let output = agent.output(session);
        if output.is_empty() {
            return true;
        }
        match socket.write(output) {
            Ok(count) => agent.sent(session, count, now),
            Err(error) if is_pause(&error) => return true,
            Err(_) => return false,
        }
    }
    true
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
