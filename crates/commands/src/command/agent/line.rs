//! The agent's end of the conversation with the fabric.

use super::error::AgentError;
use protocol::agent::{FromFabric, MAX_REPLY, Reply, Request, ToFabric, VERSION, wakes_before_replies};
use protocol::{Channel, Hello};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};

/// The connection to the fabric.
#[derive(Debug)]
pub(super) struct Line {
    channel: Channel,
    /// Times that the fabric said that something waits.
    wakes: u64,
    /// Whether the fabric says what a request causes before it replies.
    wakes_before_replies: bool,
    /// Why the conversation ended.
    fault: Option<AgentError>,
}

impl Line {
    /// Exchanges the first messages.
    pub(super) fn open(channel: Channel) -> Result<Self, AgentError> {
        let greeting = channel.receive::<FromFabric>(MAX_REPLY).map_err(AgentError::Channel)?;
        let Some(FromFabric::Hello(theirs)) = greeting.map(|received| received.message) else {
            return Err(AgentError::NotAReply);
        };
        let ours = Hello { version: VERSION, store: theirs.store };
        channel.send(&ToFabric::Hello(ours), &[]).map_err(AgentError::Channel)?;
        let version = ours.agree(&theirs).map_err(AgentError::Hello)?;
        let wakes_before_replies = wakes_before_replies(version);
        Ok(Self { channel, wakes: 1, wakes_before_replies, fault: None })
    }

    /// Readable when the fabric says something.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Times that the fabric said that something waits.
    pub(super) fn wakes(&self) -> u64 {
        self.wakes
    }

    /// Whether the fabric has said by its reply that something waits that the request caused.
    pub(super) fn wakes_before_replies(&self) -> bool {
        self.wakes_before_replies
    }

    /// Why the conversation ended, if it has.
    pub(super) fn take_fault(&mut self) -> Option<AgentError> {
        self.fault.take()
    }

    /// Asks the fabric. `None` if the conversation has ended: see [`take_fault`](Self::take_fault).
    pub(super) fn ask(&mut self, request: Request) -> Option<Reply> {
        if self.fault.is_some() {
            return None;
        }
        let reply = self.try_ask(request);
        reply.map_err(|fault| self.fault = Some(fault)).ok()
    }

    fn try_ask(&mut self, request: Request) -> Result<Reply, AgentError> {
        self.channel.send(&ToFabric::Request(request), &[]).map_err(AgentError::Channel)?;
        loop {
            if let Some(reply) = self.receive()? {
                return Ok(reply);
            }
        }
    }

    /// A message of the fabric: `None` if it is no reply.
    fn receive(&mut self) -> Result<Option<Reply>, AgentError> {
        let received = self.channel.receive::<FromFabric>(MAX_REPLY).map_err(AgentError::Channel)?;
        match received.map(|received| received.message) {
            Some(FromFabric::Wake) => {
                self.wakes = self.wakes.wrapping_add(1);
                Ok(None)
            }
            Some(FromFabric::Reply(reply)) => Ok(Some(reply)),
            Some(FromFabric::Hello(_)) => Err(AgentError::NotAReply),
            None => Err(AgentError::Channel(protocol::ChannelError::Closed)),
        }
    }

    /// Takes what the fabric said unasked.
    pub(super) fn drain(&mut self) -> Result<(), AgentError> {
        loop {
            let mut ready = [PollFd::new(&self.channel, PollFlags::IN)];
            if !poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0) {
                return Ok(());
            }
            if self.receive()?.is_some() {
                return Err(AgentError::NotAReply);
            }
        }
    }
}
