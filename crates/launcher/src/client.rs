//! A client: a daemon that is connected.

use protocol::launcher::{MAX_REQUEST, Refusal, Reply, Request};
use protocol::{Channel, ChannelError, Hello};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A daemon that is connected.
#[derive(Debug)]
pub(crate) struct Client {
    channel: Channel,
    /// It has said which store it serves.
    pub(crate) is_greeted: bool,
    /// The processes that must end before its request is answered.
    pub(crate) waits_for: BTreeSet<u32>,
}

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Received {
    Hello(Hello),
    /// A request, and its descriptor if it has one.
    Request(Request, Option<OwnedFd>),
    /// It closed the connection, or violated the protocol.
    End,
    Nothing,
}

impl Client {
    /// A client that has just been accepted, with a non-blocking socket.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { channel: Channel::from(socket), is_greeted: false, waits_for: BTreeSet::new() }
    }

    /// The next message. Descriptors that no request calls for are closed.
    pub(crate) fn receive(&self) -> Received {
        let request = |new: protocol::Received<Request>| {
            Received::Request(new.message, new.descriptors.into_iter().next())
        };
        let result = match self.is_greeted {
            true => self.channel.receive(MAX_REQUEST).map(|found| found.map(request)),
            false => {
                self.channel.receive(MAX_REQUEST).map(|found| found.map(|new| Received::Hello(new.message)))
            }
        };
        match result {
            Ok(received) => received.unwrap_or(Received::End),
            Err(ChannelError::WouldBlock) => Received::Nothing,
            Err(_) => {
                // It may be a later version, which is told so.
                let _ = self.channel.send(&Err::<Reply, _>(Refusal::NotARequest), &[]);
                Received::End
            }
        }
    }

    /// Answers the first message. Returns false if the client does not take the answer.
    pub(crate) fn greet(&self, answer: &Result<Hello, Refusal>) -> bool {
        self.channel.send(answer, &[]).is_ok()
    }

    /// Answers a request. Returns false if the client does not take the answer.
    pub(crate) fn answer(&self, answer: &Result<Reply, Refusal>, descriptors: &[OwnedFd]) -> bool {
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        self.channel.send(answer, &descriptors).is_ok()
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}
