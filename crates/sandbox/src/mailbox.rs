//! The host's end of a box's mailbox.

use crate::box_message::BoxMessage;
use crate::error::CreateError;
use crate::lifecycle::Doorbell;
use crate::lock::lock;
use crate::shared_region::SharedRegion;
use boundary::limits::{MAX_EVENT, MAX_REPLY};
use boundary::{
    ChannelError, Diagnostic, FrameReader, FrameWriter, Inbox, Mapped, Message, Outbox, Request, control,
};
use std::fmt;
use std::sync::{Arc, Mutex};

/// Why a request has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The box violated the mailbox protocol; its mailbox can no longer be used.
    Channel(ChannelError),
    /// A reply cannot be decoded.
    Reply(boundary::DecodeError),
    /// The box refused, with this reason.
    Refused(BoxMessage),
    /// The box reports that it has no such configuration, element or handler.
    Missing(BoxMessage),
    /// The box rejected the configuration, with these diagnostics. They must be escaped before display.
    Rejected(Vec<Diagnostic>),
    /// No reply came in time.
    TimedOut,
    /// The box has ended.
    Ended,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(_) => write!(f, "the box violated the mailbox protocol"),
            Self::Reply(_) => write!(f, "the box's reply is invalid"),
            Self::Refused(reason) | Self::Missing(reason) => reason.fmt(f),
            Self::Rejected(found) => {
                write!(f, "the configuration was rejected")?;
                found.iter().try_for_each(|diagnostic| write!(f, "; {}", diagnostic.message.escape_debug()))
            }
            Self::TimedOut => write!(f, "the box did not answer in time"),
            Self::Ended => write!(f, "the box has ended"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Channel(error) => Some(error),
            Self::Reply(error) => Some(error),
            Self::Refused(_) | Self::Missing(_) | Self::Rejected(_) | Self::TimedOut | Self::Ended => None,
        }
    }
}

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
    outbox: Outbox,
    inbox: Inbox,
    events: EventChannel,
    number: u32,
    /// The memory that contains the channels.
    region: Arc<SharedRegion>,
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
            outbox: Outbox::default(),
            inbox: Inbox::new(MAX_REPLY),
            events: EventChannel(Arc::new(Mutex::new(EventReader {
                frames: FrameReader::at(channel(control::EVENTS)?, positions[2])?,
                inbox: Inbox::new(MAX_EVENT),
                _region: region.clone(),
            }))),
            number: 0,
            region,
        })
    }

    /// Queues a request. Returns its number, which the reply will carry.
    pub fn ask(&mut self, request: &Request) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.outbox.push(request.encode(self.number));
        self.number
    }

    /// Sends as many queued requests as fit. Returns true if the box sleeps and the caller must ring its doorbell.
    pub fn flush(&mut self) -> Result<bool, CallError> {
        match self.outbox.is_empty() {
            true => Ok(false),
            false => Ok(self.outbox.flush(&mut self.requests)?),
        }
    }

    /// Removes a request that is no longer waited for, unless sending it has begun.
    pub fn withdraw(&mut self, number: u32) {
        self.outbox.withdraw(number);
    }

    /// The next reply, and whether the box sleeps for lack of room, so that the caller must ring its doorbell.
    pub fn reply(&mut self) -> Result<(Option<Message>, bool), CallError> {
        let message = self.inbox.poll(&mut self.replies)?;
        Ok((message, self.replies.release()))
    }

    /// The positions of both directions, which change when a frame is sent or received.
    pub(crate) fn positions(&self) -> [u32; 2] {
        [self.requests.position(), self.replies.position()]
    }

    /// Announces that the caller sleeps until the box rings, because there is a reply or, if a request waits for room,
    /// room. False: there is already, do not sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, CallError> {
        let mut sleeps = self.replies.prepare_sleep()?;
        if !self.outbox.is_empty() {
            sleeps &= self.requests.prepare_sleep()?;
        }
        Ok(sleeps)
    }

    /// Takes the announcement back.
    pub fn end_sleep(&self) {
        self.replies.end_sleep();
        self.requests.end_sleep();
    }

    /// The memory that contains the channels.
    pub(crate) fn region(&self) -> &SharedRegion {
        &self.region
    }

    /// The channel of the box's events.
    pub(crate) fn events(&self) -> EventChannel {
        self.events.clone()
    }
}

/// The host's end of the channel on which a box sends events. It has a lock of its own, so that they are read while a
/// request is in progress.
#[derive(Clone, Debug)]
pub(crate) struct EventChannel(Arc<Mutex<EventReader>>);

#[derive(Debug)]
struct EventReader {
    frames: FrameReader<Mapped>,
    inbox: Inbox,
    /// Keeps the memory that the channel lies in.
    _region: Arc<SharedRegion>,
}

impl EventChannel {
    /// The next event. The box is woken if it waits for room.
    pub(crate) fn next(&self, doorbell: &Doorbell) -> Result<Option<Message>, CallError> {
        let mut reader = lock(&self.0);
        let EventReader { frames, inbox, .. } = &mut *reader;
        let message = inbox.poll(frames)?;
        let wants_room = frames.release();
        drop(reader);
        if wants_room {
            doorbell.ring();
        }
        Ok(message)
    }
}
