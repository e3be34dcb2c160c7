//! A connection with its session.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use rustix::event::PollFlags;

use super::fault::ConnectionFault;
use super::stream::Stream;
use crate::session::{Agent, Datapath, SessionId, SessionState};

/// A connection to a controller, and its session.
pub(super) struct Peer {
    stream: Stream,
    pub(super) session: SessionId,
    /// Bytes that the session has not taken.
    unread: Vec<u8>,
}

impl Peer {
    /// Begins a session on a connection; `None` if there are too many.
    pub(super) fn begin<D: Datapath>(stream: Stream, agent: &mut Agent<D>, now: Duration) -> Option<Self> {
        let session = agent.connect(now)?;
        Some(Self { stream, session, unread: Vec::new() })
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What to wait for.
    pub(super) fn interest<D: Datapath>(&self, agent: &Agent<D>) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.unread.is_empty());
        flags.set(PollFlags::OUT, !agent.output(self.session).is_empty() || self.stream.wants_write());
        flags
    }

    /// Whether there is something to do that the socket does not tell of.
    pub(super) fn is_ready(&self) -> bool {
        self.unread.is_empty() && self.stream.has_unread()
    }

    /// Moves bytes between the connection and the session, unless one of them ended.
    pub(super) fn advance<D: Datapath>(
        &mut self,
        agent: &mut Agent<D>,
        buffer: &mut [u8],
        now: Duration,
    ) -> Result<(), ConnectionFault> {
        self.exchange(agent, buffer, now)?;
        match agent.state(self.session) {
            SessionState::Closed => Err(ConnectionFault::Session),
            _ => Ok(()),
        }
    }

    fn exchange<D: Datapath>(
        &mut self,
        agent: &mut Agent<D>,
        buffer: &mut [u8],
        now: Duration,
    ) -> Result<(), ConnectionFault> {
        self.send(agent, now)?;
        if self.unread.is_empty() {
            match self.stream.read(buffer) {
                Ok(0) => return Err(ConnectionFault::Closed),
                Ok(count) => self.unread.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let taken = agent.receive(self.session, &self.unread, now);
        self.unread.drain(..taken.min(self.unread.len()));
        self.send(agent, now)
    }

    /// Sends what the session says, as much as the connection takes.
    fn send<D: Datapath>(&mut self, agent: &mut Agent<D>, now: Duration) -> Result<(), ConnectionFault> {
        // A session that continues a long report has new output after each write; others get their turn between them.
        for _ in 0..16 {
            let output = agent.output(self.session);
            if output.is_empty() {
                break;
            }
            match self.stream.write(output) {
                Ok(count) => agent.sent(self.session, count, now),
                Err(error) if is_pause(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        match self.stream.flush() {
            Err(error) if !is_pause(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

pub(super) fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
