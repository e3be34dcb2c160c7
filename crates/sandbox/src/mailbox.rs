//! The host's end of a box's mailbox.

use crate::error::CreateError;
use crate::shared_region::SharedRegion;
use boundary::limits::{MAX_EVENT, MAX_REPLY};
use boundary::{
    ChannelError, Diagnostic, FrameReader, FrameWriter, Inbox, Mapped, Message, Outbox, Request, control,
};
use std::fmt;
use std::sync::Arc;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The box broke the mailbox's protocol: it is faulty, and its mailbox of no more use.
    Channel(ChannelError),
    /// A reply means nothing.
    Reply(boundary::DecodeError),
    /// The box refused, with a reason that it wrote.
    Refused(String),
    /// There is no such configuration, element or handler in the box, as it says.
    Missing(String),
    /// The configuration can't run in the box; what it found, which is shown escaped.
    Rejected(Vec<Diagnostic>),
    /// No reply came in time.
    TimedOut,
    /// The box has ended.
    Ended,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(error) => write!(f, "the box broke the mailbox's protocol: {error}"),
            Self::Reply(error) => write!(f, "the box's reply means nothing: {error}"),
            Self::Refused(reason) | Self::Missing(reason) => write!(f, "{}", reason.escape_debug()),
            Self::Rejected(found) => {
                write!(f, "the configuration can't run")?;
                found.iter().try_for_each(|diagnostic| write!(f, "; {}", diagnostic.message.escape_debug()))
            }
            Self::TimedOut => write!(f, "the box did not answer in time"),
            Self::Ended => write!(f, "the box has ended"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<ChannelError> for CallError {
    fn from(error: ChannelError) -> Self {
        Self::Channel(error)
    }
}

/// The host's end of a mailbox.
#[derive(Debug)]
pub struct Mailbox {
    requests: FrameWriter<Mapped>,
    replies: FrameReader<Mapped>,
    events: FrameReader<Mapped>,
    outbox: Outbox,
    inbox: Inbox,
    event_inbox: Inbox,
    number: u32,
    /// Keeps the memory that the channels lie in.
    _region: Arc<SharedRegion>,
}

impl Mailbox {
    pub(crate) fn new(region: Arc<SharedRegion>) -> Result<Self, CreateError> {
        Self::at(region, [0; 3])
    }

    /// The end of a mailbox whose channels (requests, replies, events) were empty at these positions.
    pub(crate) fn at(region: Arc<SharedRegion>, positions: [u32; 3]) -> Result<Self, CreateError> {
        let channel = |offset| region.part(offset, control::CHANNEL_SIZE);
        Ok(Self {
            requests: FrameWriter::at(channel(control::REQUESTS)?, positions[0])?,
            replies: FrameReader::at(channel(control::REPLIES)?, positions[1])?,
            events: FrameReader::at(channel(control::EVENTS)?, positions[2])?,
            outbox: Outbox::default(),
            inbox: Inbox::new(MAX_REPLY),
            event_inbox: Inbox::new(MAX_EVENT),
            number: 0,
            _region: region,
        })
    }

    /// Queues a request; its number, which the reply will carry.
    pub fn ask(&mut self, request: &Request) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.outbox.push(request.encode(self.number));
        self.number
    }

    /// Sends what fits of the queued requests. True: the box sleeps, and the caller is to ring its
    /// doorbell.
    pub fn flush(&mut self) -> Result<bool, CallError> {
        match self.outbox.is_empty() {
            true => Ok(false),
            false => Ok(self.outbox.flush(&mut self.requests)?),
        }
    }

    /// Takes a request back that nobody waits for any more, unless its sending has begun.
    pub fn withdraw(&mut self, number: u32) {
        self.outbox.withdraw(number);
    }

    /// The next reply, and whether the box sleeps for want of room, so that its doorbell is to be rung.
    pub fn reply(&mut self) -> Result<(Option<Message>, bool), CallError> {
        let message = self.inbox.poll(&mut self.replies)?;
        Ok((message, self.replies.release()))
    }

    /// The next event, and whether the box sleeps for want of room, so that its doorbell is to be rung.
    pub fn event(&mut self) -> Result<(Option<Message>, bool), CallError> {
        let message = self.event_inbox.poll(&mut self.events)?;
        Ok((message, self.events.release()))
    }
}
