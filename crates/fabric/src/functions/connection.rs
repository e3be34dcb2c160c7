//! The connection of one function. Its process is hostile: no call waits for it, and no message of it is trusted.

use super::state_calls::StateCalls;
use crate::limits::MAX_FUNCTION_MESSAGES;
use model::{BoxName, Destination};
use protocol::function::{FromFunction, MAX_MESSAGE, ToFunction};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg, sockopt::socket_peercred,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Arc<OwnedFd>,
    /// When it was accepted.
    pub(crate) since: Instant,
    /// The instance that its function is, once it has registered.
    pub(crate) attached: Option<Attached>,
    /// Messages that may be read until the next look.
    pub(crate) budget: u32,
}

/// What a registered function is.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) instance: BoxName,
    pub(crate) destinations: Vec<Destination>,
    /// Whether it has said that it leaves.
    pub(crate) is_leaving: bool,
    /// How the state of its flows is asked for, if it hands that over.
    pub(crate) states: Option<Arc<StateCalls>>,
    /// Until when the state of its flows may be handed over, while that goes on.
    pub(crate) hands_over_until: Option<Instant>,
    /// Since when its doorbell is known to be closed.
    pub(crate) closed_at: Option<Instant>,
    /// Messages of it that reached no one: the receiver was not there, or did not read.
    pub(crate) lost_messages: u64,
    /// The counters that it has published since the last look.
    pub(crate) counters: Option<Vec<(String, u64)>>,
}

/// What was read from a connection.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message.
    Message(FromFunction),
    /// No message waits.
    Nothing,
    /// The function has closed the connection.
    Closed,
    /// What it sent is no message.
    Malformed,
}

/// What became of a message to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// It was sent.
    Done,
    /// The function does not read, or is gone.
    Lost,
}

impl Connection {
    /// A connection of a function that was accepted. Its socket does not block.
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket: Arc::new(socket),
            since: Instant::now(),
            attached: None,
            budget: MAX_FUNCTION_MESSAGES,
        }
    }

    /// The process at the other end, if the kernel says so. It is 0 in a PID namespace that this process cannot see.
    pub(crate) fn process(&self) -> Option<i32> {
        socket_peercred(&self.socket).ok().map(|found| found.pid.as_raw_nonzero().get())
    }

    /// How the state of its flows is asked for.
    pub(crate) fn state_calls(&self) -> Arc<StateCalls> {
        Arc::new(StateCalls::new(self.socket.clone()))
    }

    /// Reads a message. Descriptors that come with one are closed by the kernel.
    pub(crate) fn receive(&mut self) -> Received {
        let mut bytes = [0; MAX_MESSAGE];
        match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            // A message without bytes counts as the end: no function sends one.
            Ok((_, 0)) => Received::Closed,
            Ok((_, length)) => {
                self.budget = self.budget.saturating_sub(1);
                let message = bytes.get(..length).map(FromFunction::decode);
                message.and_then(Result::ok).map_or(Received::Malformed, Received::Message)
            }
            Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
            Err(_) => Received::Closed,
        }
    }

    /// Sends a message, with descriptors that the sender keeps.
    pub(crate) fn send(&self, message: &ToFunction, descriptors: &[BorrowedFd<'_>]) -> Sending {
        let bytes = message.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Sending::Lost;
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Ok(_) => Sending::Done,
            Err(_) => Sending::Lost,
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
