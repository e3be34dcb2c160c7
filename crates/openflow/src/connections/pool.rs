//! All connections of an agent.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::certificates::Certificates;
use super::controller::{Controller, Link};
use super::endpoint::Endpoint;
use super::fault::ConnectionFault;
use crate::message::Role;
use crate::session::{Agent, Datapath, SessionId};

/// Bytes read at once from a controller, so that one that sends without end does not delay the others.
const READ_SIZE: usize = 16 << 10;

/// How far the connection to a controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// It failed or ended; another attempt follows.
    Waiting,
    /// It is coming about.
    Connecting,
    /// It exists. Where the switch listens, it is the oldest one.
    Connected(SessionId),
    /// The switch listens, and no controller is connected.
    Listening,
}

/// A connection to a controller, for reports. Where the switch listens, all controllers that are connected there are one.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionStatus {
    /// The controller, or where the switch listens.
    pub endpoint: Endpoint,
    /// The role of the controller, if it is connected and has sent its greeting.
    pub role: Option<Role>,
    /// Whether a controller speaks OpenFlow 1.0.
    pub is_version1: bool,
    /// Time since the last connection began or ended.
    pub since: Duration,
    /// Why the last connection ended or failed.
    pub fault: Option<ConnectionFault>,
}

/// The connections of an agent to its controllers, in the caller's thread.
///
/// A controller that does not answer, or ends its connection, is connected to again after a pause of one second, which
/// doubles up to eight seconds with each failure. Controllers can also connect to the switch.
pub struct Connections<D> {
    agent: Agent<D>,
    controllers: Vec<Controller>,
    certificates: Option<Certificates>,
    start: Instant,
    buffer: Vec<u8>,
}

impl<D: Datapath> Connections<D> {
    /// Connections to these controllers, which begin with the first turn. Those with TLS need certificates.
    #[must_use]
    pub fn new(agent: Agent<D>, controllers: &[Endpoint], certificates: Option<Certificates>) -> Self {
        Self {
            agent,
            controllers: controllers.iter().copied().map(Controller::new).collect(),
            certificates,
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
    pub fn states(&self) -> impl Iterator<Item = (Endpoint, ConnectionState)> {
        self.controllers.iter().map(|controller| {
            let state = match (&controller.link, controller.peers().first()) {
                (_, Some(peer)) => ConnectionState::Connected(peer.session),
                (Link::Connecting { .. }, None) => ConnectionState::Connecting,
                (Link::Listening { .. }, None) => ConnectionState::Listening,
                (Link::Waiting { .. } | Link::Connected(_), None) => ConnectionState::Waiting,
            };
            (controller.endpoint, state)
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
            endpoint: controller.endpoint,
            role: controller.role(&self.agent),
            is_version1: controller.is_version1(&self.agent),
            since: now.saturating_sub(controller.since),
            fault: controller.fault.clone(),
        })
    }

    fn begin(&mut self) {
        let now = self.now();
        for controller in &mut self.controllers {
            controller.begin_if_due(self.certificates.as_ref(), now);
        }
    }

    fn advance(&mut self) {
        let now = self.now();
        self.agent.poll(now);
        for controller in &mut self.controllers {
            controller.advance(&mut self.agent, self.certificates.as_ref(), &mut self.buffer, now);
        }
    }

    /// Adds what to wait for, and shortens the timeout to the next attempt to connect.
    fn prepare<'a>(&'a self, sockets: &mut Vec<PollFd<'a>>, timeout: &mut Duration) {
        let now = self.now();
        for controller in &self.controllers {
            controller.prepare(&self.agent, sockets, timeout, now);
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
