//! All sessions of a switch.

use std::collections::BTreeMap;
use std::time::Duration;

use super::buffers::Buffers;
use super::connection::{Connection, UNASKED};
use super::datapath::{Datapath, Event, PacketForController};
use super::limits::{AgentLimits, SessionState};
use super::request::{self, AgentContext};
use crate::MAX_MESSAGE;
use crate::message::{Message, PacketIn, PacketInReason, Role};

/// Bytes of a packet-in message beside the packet: header, fixed part, ingress port, metadata, tunnel number.
const PACKET_IN_OVERHEAD: usize = 96;

/// The whole packet (`OFPCML_NO_BUFFER`).
const NO_BUFFER: u16 = 0xffff;

/// The number of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

/// What an agent did not send because a controller did not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AgentCounters {
    /// Packets for a controller.
    pub lost_packets: u64,
    /// Messages about ports and removed entries.
    pub lost_reports: u64,
}

/// The switch's side of all sessions.
pub struct Agent<D> {
    datapath: D,
    limits: AgentLimits,
    sessions: BTreeMap<SessionId, Connection>,
    next: u64,
    buffers: Buffers,
    generation: Option<u64>,
    counters: AgentCounters,
}

impl<D: Datapath> Agent<D> {
    /// An agent without sessions.
    #[must_use]
    pub fn new(datapath: D, limits: AgentLimits) -> Self {
        Self {
            datapath,
            limits,
            sessions: BTreeMap::new(),
            next: 0,
            buffers: Buffers::new(),
            generation: None,
            counters: AgentCounters::default(),
        }
    }

    /// The switch.
    pub fn datapath(&mut self) -> &mut D {
        &mut self.datapath
    }

    /// What was not sent.
    #[must_use]
    pub fn counters(&self) -> AgentCounters {
        self.counters
    }

    /// Begins a session on a new connection; `None` if there are already as many as the limits permit.
    pub fn connect(&mut self, now: Duration) -> Option<SessionId> {
        if self.sessions.len() >= self.limits.sessions {
            return None;
        }
        let id = SessionId(self.next);
        self.next += 1;
        self.sessions.insert(id, Connection::new(now));
        Some(id)
    }

    /// Forgets a session whose connection ended.
    pub fn disconnect(&mut self, id: SessionId) {
        self.sessions.remove(&id);
    }

    /// How far a session is. An unknown one is closed.
    #[must_use]
    pub fn state(&self, id: SessionId) -> SessionState {
        self.sessions.get(&id).map_or(SessionState::Closed, |session| session.state)
    }

    /// The role of a session's controller.
    #[must_use]
    pub fn role(&self, id: SessionId) -> Option<Role> {
        self.sessions.get(&id).map(|session| session.role)
    }

    /// The version of OpenFlow that a session speaks, as its number on the wire.
    #[must_use]
    pub fn version(&self, id: SessionId) -> Option<u8> {
        self.sessions.get(&id).map(|session| session.version)
    }

    /// Takes bytes from a controller, and performs its messages. Returns how many bytes it took: fewer than given if the
    /// controller does not read the answers. The rest is to be given again after output was sent.
    pub fn receive(&mut self, id: SessionId, bytes: &[u8], now: Duration) -> usize {
        let mut taken = 0;
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return bytes.len() };
            if session.state == SessionState::Closed {
                return bytes.len();
            }
            let count = session.take(bytes.get(taken..).unwrap_or_default());
            taken += count;
            if count > 0 {
                session.heard = now;
                session.asked = None;
            }
            if !self.advance(id, now) && count == 0 {
                return taken;
            }
        }
    }

    /// What is to be sent to a controller.
    #[must_use]
    pub fn output(&self, id: SessionId) -> &[u8] {
        self.sessions.get(&id).map_or(&[], Connection::output)
    }

    /// Notes that the first `count` bytes of the output were sent, and continues what waited for that.
    pub fn sent(&mut self, id: SessionId, count: usize, now: Duration) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.sent(count);
            self.advance(id, now);
        }
    }

    /// Reports events of the switch, and notices how time passes. To be called when a connection is idle, at least as
    /// often as events and timeouts of entries should be reported.
    pub fn poll(&mut self, now: Duration) {
        self.report_events(now);
        self.buffers.expire(now);
        for session in self.sessions.values_mut() {
            let silence = now.saturating_sub(session.heard);
            match (session.state, session.asked) {
                (SessionState::Greeting, _) if silence >= self.limits.greeting => session.close(),
                (SessionState::Open, None) if silence >= self.limits.silence => {
                    session.asked = Some(now);
                    session.send(UNASKED, &Message::EchoRequest(Vec::new()));
                }
                (SessionState::Open, Some(asked)) if now.saturating_sub(asked) >= self.limits.silence => {
                    session.close();
                }
                _ => {}
            }
        }
    }

    /// Performs messages that arrived, while there is room for answers. Returns whether one was performed.
    fn advance(&mut self, id: SessionId, now: Duration) -> bool {
        let mut has_performed = false;
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return has_performed };
            session.continue_report(&mut self.datapath, &self.limits, now);
            if session.has_report() || session.is_clogged(&self.limits) {
                return has_performed;
            }
            let Some((header, message)) = session.next_message() else { return has_performed };
            has_performed = true;
            if session.state == SessionState::Greeting {
                // Ports that are there already are no news to this controller.
                self.datapath.refresh();
                self.report_events(now);
            }
            let Some(session) = self.sessions.get_mut(&id) else { return has_performed };
            let mut context = AgentContext {
                datapath: &mut self.datapath,
                buffers: &mut self.buffers,
                generation: &mut self.generation,
                is_new_master: false,
            };
            request::answer(session, header, &message, &mut context, now);
            if context.is_new_master {
                let others = self.sessions.iter_mut().filter(|(other, _)| **other != id);
                for (_, other) in others.filter(|(_, other)| other.role == Role::Master) {
                    other.role = Role::Slave;
                }
            }
            // Before the next message, which may be a barrier.
            self.report_events(now);
        }
    }

    fn report_events(&mut self, now: Duration) {
        for event in self.datapath.events(now) {
            match event {
                Event::Packet(packet) => self.report_packet(&packet, now),
                Event::FlowRemoved(removed) => {
                    let reason = removed.reason.number();
                    let message = Message::FlowRemoved(removed);
                    self.report(&message, |session, slave| {
                        session.reports.flow_removed[slave] >> reason & 1 == 1
                    });
                }
                Event::Port(status) => {
                    let reason = status.reason.number();
                    let message = Message::PortStatus(status);
                    self.report(&message, |session, slave| {
                        session.reports.port_status[slave] >> reason & 1 == 1
                    });
                }
            }
        }
    }

    /// Sends a message to the sessions that want it. `wants` gets 1 for slaves, else 0.
    fn report(&mut self, message: &Message, wants: impl Fn(&Connection, usize) -> bool) {
        for session in self.sessions.values_mut().filter(|session| session.is_open()) {
            if !wants(session, usize::from(session.role == Role::Slave)) {
                continue;
            }
            let Ok(Some(bytes)) = session.encode(UNASKED, message) else { continue };
            // These are rarer and matter more than packets, so they get more room.
            if session.output().len() < 2 * self.limits.output {
                session.send_bytes(&bytes);
            } else {
                self.counters.lost_reports += 1;
            }
        }
    }

    fn report_packet(&mut self, packet: &PacketForController, now: Duration) {
        let mut buffer = None;
        // Without a table-miss entry, OpenFlow 1.0 sends packets to the controller, and 1.3 drops them.
        let is_miss = packet.reason == PacketInReason::NoMatch && packet.cookie == u64::MAX;
        for session in self.sessions.values_mut().filter(|session| session.is_open()) {
            let wanted = session.reports.packet_in[usize::from(session.role == Role::Slave)];
            if wanted >> packet.reason.number() & 1 == 0 || is_miss && !session.is_version1() {
                continue;
            }
            if session.is_clogged(&self.limits) {
                self.counters.lost_packets += 1;
                continue;
            }
            let length = packet.max_length.unwrap_or(session.config.miss_send_length);
            let is_cut = length != NO_BUFFER && usize::from(length) < packet.frame.len();
            if is_cut && buffer.is_none() {
                let in_port = request::in_port(&packet.fields);
                buffer = self.buffers.keep(in_port, &packet.frame, now, self.limits.buffer);
            }
            let kept = buffer.filter(|_| is_cut);
            // Without a buffer the controller needs the whole packet.
            let length = if kept.is_some() { usize::from(length) } else { packet.frame.len() };
            let data = packet.frame.get(..length.min(MAX_MESSAGE - PACKET_IN_OVERHEAD));
            let message = PacketIn {
                buffer: kept,
                total_length: u16::try_from(packet.frame.len()).unwrap_or(u16::MAX),
                reason: packet.reason,
                table: packet.table,
                cookie: packet.cookie,
                fields: packet.fields,
                data: data.unwrap_or(&packet.frame).to_vec(),
            };
            session.send(UNASKED, &Message::PacketIn(message));
        }
    }
}
