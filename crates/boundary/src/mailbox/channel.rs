//! One direction of the mailbox: frames over a ring of bytes.
//!
//! After the ring's header come [`CHANNEL_SIZE`] bytes. A frame is two 64-bit words and a payload of at
//! most [`MAX_CHUNK`] bytes, padded to a multiple of 8:
//!
//! | word | bits 0-15 | 16-31 | 32-63 |
//! |---|---|---|---|
//! | 0 | kind | 1 when it ends its message | payload bytes |
//! | 1 | | message number (0-31) | bytes of the whole message |

use crate::limits::{CHANNEL_SIZE, MAX_CHUNK};
use crate::memory::SharedMemory;
use crate::ring::{CorruptIndex, HEADER, Reader, RingError, Writer};
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

const FRAME_HEADER: u32 = 16;
const LAST: u16 = 1;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum MessageKind {
    /// Request: run a configuration.
    Install = 1,
    /// Request: end a configuration.
    Remove = 2,
    /// Request: call a read handler.
    Read = 3,
    /// Request: call a write handler.
    Write = 4,
    /// Request: report counters.
    Stats = 5,
    /// Request: keep a file for the configurations to read.
    File = 6,
    /// Request: check a configuration.
    Check = 7,
    /// Reply: done, with its result.
    Done = 16,
    /// Reply: refused, with the reason.
    Failed = 17,
    /// Reply: what was asked for isn't there.
    Missing = 18,
    /// Reply: the configuration can't run, with what was found.
    Rejected = 19,
    /// Event: a line of text.
    Console = 32,
    /// Event: bytes for a file of the host.
    Output = 33,
}

impl MessageKind {
    const ALL: [Self; 13] = [
        Self::Install,
        Self::Remove,
        Self::Read,
        Self::Write,
        Self::Stats,
        Self::File,
        Self::Check,
        Self::Done,
        Self::Failed,
        Self::Missing,
        Self::Rejected,
        Self::Console,
        Self::Output,
    ];

    fn from_bits(bits: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == bits)
    }
}

/// Why a channel can't go on. The peer broke the protocol; nothing more is read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// An index is impossible.
    Corrupt(CorruptIndex),
    /// A frame's kind means nothing.
    UnknownKind(u16),
    /// A frame says more bytes than a frame can have, or than were published.
    FrameLength(u32),
    /// A message is longer than the receiver's limit.
    TooLong {
        /// Bytes that it says it has.
        bytes: u32,
        /// Bytes that are accepted.
        limit: usize,
    },
    /// Frames that don't form one message: they differ in kind, number or length, or don't add up.
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
            Self::TooLong { bytes, limit } => write!(f, "a message of {bytes} bytes, {limit} are allowed"),
            Self::Disordered => write!(f, "the pieces of a message don't fit together"),
        }
    }
}

impl core::error::Error for ChannelError {}

/// What a frame says about its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the message is.
    pub kind: MessageKind,
    /// Number of the message: a reply carries its request's.
    pub number: u32,
    /// Bytes of the whole message.
    pub total: u32,
    /// Whether this frame ends the message.
    pub last: bool,
}

/// Writes frames into a channel.
#[derive(Debug)]
pub struct FrameWriter<M> {
    memory: M,
    writer: Writer,
}

/// Bytes of a channel's region.
pub(crate) const CHANNEL_BYTES: usize = HEADER + CHANNEL_SIZE as usize;

fn fit(memory: &impl SharedMemory) -> Result<(), RingError> {
    match memory.size() >= CHANNEL_BYTES {
        true => Ok(()),
        false => Err(RingError::Region { needed: CHANNEL_BYTES, found: memory.size() }),
    }
}

/// Bytes that a frame takes in the ring. Payloads are at most `MAX_CHUNK`.
const fn frame_bytes(payload: u32) -> u32 {
    FRAME_HEADER + payload.next_multiple_of(8)
}

/// The one or two pieces of the ring that `length` bytes from index `at` take: (offset, bytes of the
/// first piece).
fn pieces(at: u32, length: usize) -> (usize, usize) {
    let start = (at % CHANNEL_SIZE) as usize;
    (HEADER + start, length.min(CHANNEL_SIZE as usize - start))
}

impl<M: SharedMemory> FrameWriter<M> {
    /// The writer of a new channel (zeroed header), which lies at the start of `memory`.
    pub fn new(memory: M) -> Result<Self, RingError> {
        Self::at(memory, 0)
    }

    /// The writer of a channel that was empty when both indices stood at `position`, a multiple of 8.
    pub fn at(memory: M, position: u32) -> Result<Self, RingError> {
        fit(&memory)?;
        Ok(Self { memory, writer: Writer::new(CHANNEL_SIZE, position & !7) })
    }

    /// Writes one frame, not visible before [`publish`](Self::publish). False: there is no room now, or
    /// the payload is longer than a frame's may be.
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
        // The capacity and every frame are multiples of 8, so a word never lies across the end.
        self.memory.store_u64(pieces(at, 8).0, words[0], Relaxed);
        self.memory.store_u64(pieces(at.wrapping_add(8), 8).0, words[1], Relaxed);
        let (offset, first) = pieces(at.wrapping_add(FRAME_HEADER), payload.len());
        let (first, second) = payload.split_at(first);
        self.memory.write(offset, first);
        self.memory.write(HEADER, second);
        self.writer.advance(needed);
        Ok(true)
    }

    /// Makes the frames visible. True: the reader sleeps, and the caller is to wake it.
    pub fn publish(&mut self) -> bool {
        self.writer.publish(&self.memory)
    }

    /// Announces that the caller sleeps until the longest frame fits. False: it fits already, don't sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, ChannelError> {
        Ok(self.writer.prepare_sleep(&self.memory, frame_bytes(MAX_CHUNK as u32))?)
    }

    /// Takes the announcement back.
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
    /// The reader of a new channel (zeroed header), which lies at the start of `memory`.
    pub fn new(memory: M) -> Result<Self, RingError> {
        Self::at(memory, 0)
    }

    /// The reader of a channel that was empty when both indices stood at `position`, a multiple of 8.
    pub fn at(memory: M, position: u32) -> Result<Self, RingError> {
        fit(&memory)?;
        Ok(Self { memory, reader: Reader::new(CHANNEL_SIZE, position & !7) })
    }

    /// Takes the next frame, if one is there, and appends its payload to `message`, which grows to at
    /// most `limit` bytes. The frame's room is free for the writer after [`release`](Self::release).
    ///
    /// # Errors
    ///
    /// The writer broke the protocol; `message` is unchanged, and the channel is of no more use.
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

    /// Lets the writer reuse the room of the frames that were taken. True: it sleeps, and the caller is
    /// to wake it.
    pub fn release(&mut self) -> bool {
        self.reader.release(&self.memory)
    }

    /// Announces that the caller sleeps until a frame is there. False: one is there already, don't sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, ChannelError> {
        Ok(self.reader.prepare_sleep(&self.memory)?)
    }

    /// Takes the announcement back.
    pub fn end_sleep(&self) {
        self.reader.end_sleep(&self.memory);
    }
}
