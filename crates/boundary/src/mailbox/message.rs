//! Messages: split into frames by the sender, reassembled by the receiver.

use super::channel::{ChannelError, Frame, FrameReader, FrameWriter, MessageKind};
use crate::limits::MAX_CHUNK;
use crate::memory::SharedMemory;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: MessageKind,
    /// A request's number, chosen by the host; its reply has the same number. Events are numbered consecutively.
    pub number: u32,
    /// The encoded fields: see [`Request`](crate::Request), [`Reply`](crate::Reply), [`Event`](crate::Event).
    pub payload: Vec<u8>,
}

/// Outgoing messages. They are sent in order, one after the other.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Message>,
    /// Bytes of the first message that were already written.
    written: usize,
    /// Bytes of all messages, including those already written.
    bytes: usize,
}

impl Outbox {
    /// Queues a message.
    pub fn push(&mut self, message: Message) {
        self.bytes += message.payload.len();
        self.queue.push_back(message);
    }

    /// Bytes of the messages that are not completely written.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of messages that are not completely written.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether all messages are completely written.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Removes the messages with this number, unless one is already partly written.
    pub fn withdraw(&mut self, number: u32) {
        let mut begun = self.written > 0;
        let bytes = &mut self.bytes;
        self.queue.retain(|message| {
            let stays = core::mem::take(&mut begun) || message.number != number;
            *bytes -= if stays { 0 } else { message.payload.len() };
            stays
        });
    }

    /// Writes as many frames as fit and publishes them. Returns true if the reader sleeps and the caller must wake it.
    pub fn flush<M: SharedMemory>(&mut self, channel: &mut FrameWriter<M>) -> Result<bool, ChannelError> {
        while let Some(message) = self.queue.front() {
            let rest = message.payload.get(self.written..).unwrap_or_default();
            let chunk = &rest[..rest.len().min(MAX_CHUNK)];
            let last = chunk.len() == rest.len();
            let total = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
            let frame = Frame { kind: message.kind, number: message.number, total, last };
            if !channel.send(frame, chunk)? {
                break;
            }
            self.written += chunk.len();
            if last {
                self.bytes -= message.payload.len();
                self.queue.pop_front();
                self.written = 0;
            }
        }
        Ok(channel.publish())
    }
}

/// Reassembles messages.
#[derive(Debug)]
pub struct Inbox {
    limit: usize,
    first: Option<Frame>,
    payload: Vec<u8>,
}

impl Inbox {
    /// An inbox for messages of at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self { limit, first: None, payload: Vec::new() }
    }

    /// Reads frames until a message is complete or no frame is left. The caller must then call
    /// [`FrameReader::release`].
    pub fn poll<M: SharedMemory>(
        &mut self,
        channel: &mut FrameReader<M>,
    ) -> Result<Option<Message>, ChannelError> {
        loop {
            let filled = self.payload.len();
            let Some(frame) = channel.receive(&mut self.payload, self.limit)? else { return Ok(None) };
            let first = *self.first.get_or_insert(frame);
            if (first.kind, first.number, first.total) != (frame.kind, frame.number, frame.total) {
                return Err(ChannelError::Disordered);
            }
            if frame.last {
                if self.payload.len() != frame.total as usize {
                    return Err(ChannelError::Disordered);
                }
                self.first = None;
                let payload = core::mem::take(&mut self.payload);
                return Ok(Some(Message { kind: frame.kind, number: frame.number, payload }));
            }
            // With empty frames a message would never end, and seem to make progress.
            if self.payload.len() == filled {
                return Err(ChannelError::Disordered);
            }
        }
    }
}
