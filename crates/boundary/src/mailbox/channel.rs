//! One direction of the mailbox: frames in a ring of bytes.
//!
//! The ring's header is followed by [`CHANNEL_SIZE`] bytes. A frame is two 64-bit words and a payload of at most
//! [`MAX_CHUNK`] bytes, padded to a multiple of 8:
//!
//! | word | bits 0-15 | 16-31 | 32-63 |
//! |---|---|---|---|
//! | 0 | kind | 1 if it ends its message | payload bytes |
//! | 1 | | message number (0-31) | bytes of the whole message |

use crate::limits::{CHANNEL_SIZE, MAX_CHUNK};
use crate::memory::SharedMemory;
use crate::ring::{CorruptIndex, HEADER, Reader, RingError, Writer};
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

const FRAME_HEADER: u32 = 16;
const LAST: u16 = 1;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum MessageKind {
    /// Request: run a configuration.
    Install = 1,
    /// Request: remove a configuration.
    Remove = 2,
    /// Request: call a read handler.
    Read = 3,
    /// Request: call a write handler.
    Write = 4,
    /// Request: report counters.
    Stats = 5,
    /// Request: store a file that configurations can read.
    File = 6,
    /// Request: check a configuration.
    Check = 7,
    /// Request: keep a write for the next installation.
    Prepare = 8,
    /// Request: report which prepared writes failed.
    Prepared = 9,
    /// Request: give an element other arguments in a text.
    Rewrite = 10,
    /// Request: know what packets may be sent to.
    Destinations = 11,
    /// Request: give variables a value.
    Parameters = 12,
    /// Request: list flows whose state can be handed over.
    ListFlows = 13,
    /// Request: hand over the state of flows.
    ExportFlows = 14,
    /// Request: take over the state of flows.
    ImportFlows = 15,
    /// Request: be one of several shards.
    Shard = 20,
    /// Request: report the divided ranges.
    Ranges = 21,
    /// Request: prepare a configuration.
    Stage = 22,
    /// Request: let the prepared configuration take over.
    Commit = 23,
    /// Request: drop the prepared configuration.
    Abort = 24,
    /// Request: make one answer of those of all shards.
    Merge = 25,
    /// Reply: done, with the result.
    Done = 16,
    /// Reply: refused, with the reason.
    Failed = 17,
    /// Reply: the requested object does not exist.
    Missing = 18,
    /// Reply: the configuration was rejected, with diagnostics.
    Rejected = 19,
    /// Event: a line of text.
    Console = 32,
    /// Event: bytes for a file on the host.
    Output = 33,
    /// Event: writes of the box's own elements to handlers.
    OwnWrites = 34,
}

impl MessageKind {
    /// All kinds.
    pub const ALL: [Self; 28] = [
        Self::Install,
        Self::Remove,
        Self::Read,
        Self::Write,
        Self::Stats,
        Self::File,
        Self::Check,
        Self::Prepare,
        Self::Prepared,
        Self::Rewrite,
        Self::Destinations,
        Self::Parameters,
        Self::ListFlows,
        Self::ExportFlows,
        Self::ImportFlows,
        Self::Shard,
        Self::Ranges,
        Self::Stage,
        Self::Commit,
        Self::Abort,
        Self::Merge,
        Self::Done,
        Self::Failed,
        Self::Missing,
        Self::Rejected,
        Self::Console,
        Self::Output,
        Self::OwnWrites,
    ];

    fn from_bits(bits: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == bits)
    }
}

/// Why a channel cannot continue. The peer violated the protocol; nothing more is read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// An index is invalid.
    Corrupt(CorruptIndex),
    /// A frame's kind is unknown.
    UnknownKind(u16),
    /// A frame claims more bytes than a frame can have, or than were published.
    FrameLength(u32),
    /// A message is longer than the receiver's limit.
    TooLong {
        /// The message's claimed length in bytes.
        bytes: u32,
        /// The limit in bytes.
        limit: usize,
    },
    /// The frames do not form one message: their kinds, numbers or lengths differ, or their payloads do not add up.
    Disordered,
}

impl From<CorruptIndex> for ChannelError {
    fn from(corrupt: CorruptIndex) -> Self {
        Self::Corrupt(corrupt)
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(corrupt) => corrupt.fmt(f),
            Self::UnknownKind(kind) => write!(f, "a message of the unknown kind {kind}"),
            Self::FrameLength(bytes) => write!(f, "a frame with an impossible length of {bytes} bytes"),
            Self::TooLong { bytes, limit } => write!(f, "a message has {bytes} bytes; the limit is {limit}"),
            Self::Disordered => write!(f, "the pieces of a message don't fit together"),
        }
    }
}

impl core::error::Error for ChannelError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Corrupt(corrupt) => corrupt.source(),
            Self::UnknownKind(_) | Self::FrameLength(_) | Self::TooLong { .. } | Self::Disordered => None,
        }
    }
}

/// A frame's description of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The message's kind.
    pub kind: MessageKind,
    /// The message's number: a reply has its request's.
    pub number: u32,
    /// Length of the whole message in bytes.
    pub total: u32,
    /// Whether this is the message's last frame.
    pub last: bool,
}

/// Writes frames to a channel.
#[derive(Debug)]
pub struct FrameWriter<M> {
    memory: M,
    writer: Writer,
}

/// Size of a channel's memory in bytes.
pub(crate) const CHANNEL_BYTES: usize = HEADER + CHANNEL_SIZE as usize;

fn fit(memory: &impl SharedMemory) -> Result<(), RingError> {
    match memory.size() >= CHANNEL_BYTES {
        true => Ok(()),
        false => Err(RingError::Region { needed: CHANNEL_BYTES, found: memory.size() }),
    }
}

/// Bytes that a frame occupies in the ring. The payload must be at most `MAX_CHUNK` bytes.
const fn frame_bytes(payload: u32) -> u32 {
    FRAME_HEADER + payload.next_multiple_of(8)
}

/// The one or two pieces of the ring that `length` bytes from index `at` occupy: (offset of the first piece, bytes in
/// it).
fn pieces(at: u32, length: usize) -> (usize, usize) {
    let start = (at % CHANNEL_SIZE) as usize;
    (HEADER + start, length.min(CHANNEL_SIZE as usize - start))
}

impl<M: SharedMemory> FrameWriter<M> {
    /// The writer of a new channel (zeroed header) at the start of `memory`.
    pub fn new(memory: M) -> Result<Self, RingError> {
        Self::at(memory, 0)
    }

    /// The writer of a channel that was empty with both indices at `position`, a multiple of 8.
    pub fn at(memory: M, position: u32) -> Result<Self, RingError> {
        fit(&memory)?;
        Ok(Self { memory, writer: Writer::new(CHANNEL_SIZE, position & !7) })
    }

    /// Writes one frame, which becomes visible with [`publish`](Self::publish). Returns false if there is no room now,
    /// or if the payload is too long for a frame.
    pub fn send(&mut self, frame: Frame, payload: &[u8]) -> Result<bool, ChannelError> {
        if payload.len() > MAX_CHUNK {
            return Ok(false);
        }
        let needed = frame_bytes(payload.len() as u32);
        if self.writer.free(&self.memory, needed)? < needed {
            return Ok(false);
        }
        let at = self.writer.head();
        let flags = if frame.last { LAST } else { 0 };
        let words = [
            u64::from(frame.kind as u16) | u64::from(flags) << 16 | (payload.len() as u64) << 32,
            u64::from(frame.number) | u64::from(frame.total) << 32,
        ];
        // The capacity and every frame are multiples of 8, so a word never wraps around.
        self.memory.store_u64(pieces(at, 8).0, words[0], Relaxed);
        self.memory.store_u64(pieces(at.wrapping_add(8), 8).0, words[1], Relaxed);
        let (offset, first) = pieces(at.wrapping_add(FRAME_HEADER), payload.len());
        let (first, second) = payload.split_at(first);
        self.memory.write(offset, first);
        self.memory.write(HEADER, second);
        self.writer.advance(needed);
        Ok(true)
    }

    /// Makes the frames visible. Returns true if the reader sleeps and the caller must wake it.
    pub fn publish(&mut self) -> bool {
        self.writer.publish(&self.memory)
    }

    /// The position after the last frame that was written.
    pub fn position(&self) -> u32 {
        self.writer.head()
    }

    /// Prepares for sleep until the longest frame fits. Returns false if it fits already; the caller must then not
    /// sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, ChannelError> {
        Ok(self.writer.prepare_sleep(&self.memory, frame_bytes(MAX_CHUNK as u32))?)
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    pub fn end_sleep(&self) {
        self.writer.end_sleep(&self.memory);
    }
}

/// Reads frames from a channel.
#[derive(Debug)]
pub struct FrameReader<M> {
    memory: M,
    reader: Reader,
}

impl<M: SharedMemory> FrameReader<M> {
    /// The reader of a new channel (zeroed header) at the start of `memory`.
    pub fn new(memory: M) -> Result<Self, RingError> {
        Self::at(memory, 0)
    }

    /// The reader of a channel that was empty with both indices at `position`, a multiple of 8.
    pub fn at(memory: M, position: u32) -> Result<Self, RingError> {
        fit(&memory)?;
        Ok(Self { memory, reader: Reader::new(CHANNEL_SIZE, position & !7) })
    }

    /// Reads the next frame, if there is one, and appends its payload to `message`, which grows to at most `limit`
    /// bytes. The writer can reuse the frame's space after [`release`](Self::release).
    ///
    /// # Errors
    ///
    /// The writer violated the protocol. `message` is unchanged, and the channel can no longer be used.
    pub fn receive(&mut self, message: &mut Vec<u8>, limit: usize) -> Result<Option<Frame>, ChannelError> {
        let there = self.reader.available(&self.memory, 1)?;
        if there == 0 {
            return Ok(None);
        }
        let at = self.reader.tail();
        let first = self.memory.load_u64(pieces(at, 8).0, Relaxed);
        let second = self.memory.load_u64(pieces(at.wrapping_add(8), 8).0, Relaxed);
        let (kind, flags, length) = (first as u16, (first >> 16) as u16, (first >> 32) as u32);
        let (number, total) = (second as u32, (second >> 32) as u32);
        if length as usize > MAX_CHUNK || frame_bytes(length) > there {
            return Err(ChannelError::FrameLength(length));
        }
        let kind = MessageKind::from_bits(kind).ok_or(ChannelError::UnknownKind(kind))?;
        let length = length as usize;
        if total as usize > limit || message.len() + length > total as usize {
            return Err(ChannelError::TooLong { bytes: total, limit });
        }
        let (offset, near) = pieces(at.wrapping_add(FRAME_HEADER), length);
        let filled = message.len();
        message.reserve_exact(total as usize - filled);
        message.resize(filled + length, 0);
        let (near, far) = message[filled..].split_at_mut(near);
        self.memory.read(offset, near);
        self.memory.read(HEADER, far);
        self.reader.advance(frame_bytes(length as u32));
        Ok(Some(Frame { kind, number, total, last: flags & LAST != 0 }))
    }

    /// Lets the writer reuse the space of the frames that were read. Returns true if it sleeps and the caller must wake
    /// it.
    pub fn release(&mut self) -> bool {
        self.reader.release(&self.memory)
    }

    /// The position after the last frame that was read.
    pub fn position(&self) -> u32 {
        self.reader.tail()
    }

    /// Prepares for sleep until a frame arrives. Returns false if there is one already; the caller must then not sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, ChannelError> {
        Ok(self.reader.prepare_sleep(&self.memory)?)
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    pub fn end_sleep(&self) {
        self.reader.end_sleep(&self.memory);
    }
}
