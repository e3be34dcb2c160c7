//! A controller, or a place where controllers connect.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::certificates::Certificates;
use super::connect;
use super::endpoint::Endpoint;
use super::fault::ConnectionFault;
use super::peer::Peer;
use super::stream::Stream;
use crate::message::Role;
use crate::session::{Agent, Datapath, SessionState};

/// Time before the first attempt to connect again. Each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Time for a connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Controllers that are connected at one place where the switch listens: others would take the sessions of those that the
/// switch connects to.
const MAX_PEERS: usize = 8;

pub(super) enum Link {
    Waiting { until: Duration },
    Connecting { socket: TcpStream, since: Duration },
    Connected(Peer),
    Listening { listener: TcpListener, peers: Vec<Peer> },
}

pub(super) struct Controller {
    pub(super) endpoint: Endpoint,
    pub(super) link: Link,
    /// Time before the attempt after the next failure.
    pause: Duration,
    /// When the last connection began or ended.
    pub(super) since: Duration,
    /// Why the last connection ended or failed.
    pub(super) fault: Option<ConnectionFault>,
}

impl Controller {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            link: Link::Waiting { until: Duration::ZERO },
            pause: FIRST_PAUSE,
            since: Duration::ZERO,
            fault: None,
        }
    }

    /// The connections that exist.
    pub(super) fn peers(&self) -> &[Peer] {
        match &self.link {
            Link::Connected(peer) => std::slice::from_ref(peer),
            Link::Listening { peers, .. } => peers,
            Link::Waiting { .. } | Link::Connecting { .. } => &[],
        }
    }

    /// The role of the controller, or the most powerful one of those that are connected.
    pub(super) fn role<D: Datapath>(&self, agent: &Agent<D>) -> Option<Role> {
        let open = self.peers().iter().filter(|peer| agent.state(peer.session) == SessionState::Open);
        let power = |role: &Role| match role {
            Role::Master => 2,
            Role::Equal => 1,
            Role::Slave => 0,
        };
        open.filter_map(|peer| agent.role(peer.session)).max_by_key(power)
    }

    /// Whether a controller speaks OpenFlow 1.0.
    pub(super) fn is_version1<D: Datapath>(&self, agent: &Agent<D>) -> bool {
        self.peers().iter().any(|peer| agent.version(peer.session) == Some(1))
    }

    /// Adds what to wait for, and shortens the timeout to the next attempt.
    pub(super) fn prepare<'a, D: Datapath>(
        &'a self,
        agent: &Agent<D>,
        sockets: &mut Vec<PollFd<'a>>,
        timeout: &mut Duration,
        now: Duration,
    ) {
        match &self.link {
            Link::Waiting { until } => *timeout = (*timeout).min(until.saturating_sub(now)),
            Link::Connecting { socket, .. } => {
                sockets.push(PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT));
            }
            Link::Listening { listener, peers } if peers.len() < MAX_PEERS => {
                sockets.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
            }
            Link::Listening { .. } | Link::Connected(_) => {}
        }
        for peer in self.peers() {
            sockets.push(PollFd::from_borrowed_fd(peer.stream().as_fd(), peer.interest(agent)));
            if peer.is_ready() {
                *timeout = Duration::ZERO;
            }
        }
    }

    /// Begins to connect or to listen, if it is time.
    pub(super) fn begin_if_due(&mut self, certificates: Option<&Certificates>, now: Duration) {
        if !matches!(self.link, Link::Waiting { until } if until <= now) {
            return;
        }
        let Endpoint { transport, address } = self.endpoint;
        if transport.is_protected() && certificates.is_none() {
            return self.fail(now, ConnectionFault::NoCertificate);
        }
        let link = match transport.is_passive() {
            true => connect::begin_listening(address)
                .map(|listener| Link::Listening { listener, peers: Vec::new() }),
            false => connect::begin(address).map(|socket| Link::Connecting { socket, since: now }),
        };
        match link {
            Ok(link) => self.link = link,
            Err(error) => self.fail(now, ConnectionFault::System(error.raw_os_error())),
        }
    }

    /// Waits before the next attempt.
    fn fail(&mut self, now: Duration, fault: ConnectionFault) {
        if matches!(self.link, Link::Connected(_)) {
            self.since = now;
        }
        self.fault = Some(fault);
        self.link = Link::Waiting { until: now.saturating_add(self.pause) };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    pub(super) fn advance<D: Datapath>(
        &mut self,
        agent: &mut Agent<D>,
        certificates: Option<&Certificates>,
        buffer: &mut [u8],
        now: Duration,
    ) {
        let endpoint = self.endpoint;
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
                let begun = socket.try_clone().map_err(ConnectionFault::from);
                let begun = begun.and_then(|socket| begin(socket, endpoint, certificates, agent, now));
                match begun {
                    Ok(peer) => {
                        self.link = Link::Connected(peer);
                        self.since = now;
                    }
                    Err(fault) => self.fail(now, fault),
                }
            }
            Link::Connected(peer) => {
                if agent.state(peer.session) == SessionState::Open {
                    self.pause = FIRST_PAUSE;
                }
                if let Err(fault) = peer.advance(agent, buffer, now) {
                    agent.disconnect(peer.session);
                    self.fail(now, fault);
                }
            }
            Link::Listening { listener, peers } => {
                // Connections that are refused a session come again, and may not keep this thread.
                for _ in peers.len()..MAX_PEERS {
                    let Some(socket) = connect::accept(listener) else { break };
                    match begin(socket, endpoint, certificates, agent, now) {
                        Ok(peer) => {
                            peers.push(peer);
                            self.since = now;
                        }
                        Err(fault) => self.fault = Some(fault),
                    }
                }
                peers.retain_mut(|peer| match peer.advance(agent, buffer, now) {
                    Ok(()) => true,
                    Err(fault) => {
                        agent.disconnect(peer.session);
                        (self.fault, self.since) = (Some(fault), now);
                        false
                    }
                });
            }
        }
    }
}

/// Begins a session on a connection that has come about.
fn begin<D: Datapath>(
    socket: TcpStream,
    endpoint: Endpoint,
    certificates: Option<&Certificates>,
    agent: &mut Agent<D>,
    now: Duration,
) -> Result<Peer, ConnectionFault> {
    let stream = if endpoint.transport.is_protected() {
        let certificates = certificates.ok_or(ConnectionFault::NoCertificate)?;
        let connection = match endpoint.transport.is_passive() {
            true => certificates.accept(),
            false => certificates.connect(endpoint.address),
        };
        Stream::protected(socket, connection.map_err(ConnectionFault::Tls)?)
    } else {
        Stream::plain(socket)
    };
    Peer::begin(stream, agent, now).ok_or(ConnectionFault::TooMany)
}
