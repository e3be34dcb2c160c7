//! Errors of a channel.

use super::limits::MAX_DESCRIPTORS;
use crate::codec::{DecodeError, EncodeError};
use std::error::Error;
use std::fmt;
use std::io;

/// Why a message cannot be sent or received.
///
/// An error of `receive` concerns one message, which is consumed with its descriptors. Errors other than
/// [`System`](Self::System) and [`WouldBlock`](Self::WouldBlock) mean that the peer violates the protocol: end the
/// conversation.
#[derive(Debug)]
pub enum ChannelError {
    /// The operating system reported an error.
    System(io::Error),
    /// The other end is closed.
    Closed,
    /// The socket's time limit passed, or the socket is non-blocking and not ready.
    WouldBlock,
    /// The message has more bytes than the receiver accepts.
    TooLong {
        /// The number of bytes that the message has or announces.
        length: u64,
        /// The receiver's bound.
        most: usize,
    },
    /// The message has more descriptors than [`MAX_DESCRIPTORS`]: their number.
    TooManyDescriptors(usize),
    /// The kernel truncated the bytes or the descriptors: the sender exceeded a limit, or this process has no
    /// descriptors left.
    Truncated,
    /// The first byte names no form of message.
    UnknownForm(u8),
    /// The memory file that carries the bytes is not acceptable.
    MemoryFile(MemoryFileFault),
    /// The value cannot be encoded.
    Encode(EncodeError),
    /// The bytes are no message.
    Decode(DecodeError),
    /// The message is followed by this number of bytes.
    TrailingBytes(usize),
}

/// Why a memory file is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFileFault {
    /// The message announces a memory file and has none.
    Missing,
    /// It is another file, or it lacks a seal, so that its sender could change it.
    NotSealed,
    /// Its length differs from the announced length.
    WrongLength,
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Closed => f.write_str("the other process closed the connection"),
            Self::WouldBlock => f.write_str("the other process did not respond in time"),
            Self::TooLong { length, most } => {
                write!(f, "a message has {length} bytes; at most {most} are accepted")
            }
            Self::TooManyDescriptors(number) => {
                write!(f, "a message has {number} descriptors; at most {} are accepted", MAX_DESCRIPTORS)
            }
            Self::Truncated => f.write_str("a message was truncated"),
            Self::UnknownForm(form) => write!(f, "a message has the unknown form {form}"),
            Self::MemoryFile(fault) => fault.fmt(f),
            Self::Encode(_) => f.write_str("a message can't be encoded"),
            Self::Decode(_) => f.write_str("a message can't be decoded"),
            Self::TrailingBytes(number) => write!(f, "a message is followed by {number} more bytes"),
        }
    }
}

impl Error for ChannelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::MemoryFile(fault) => fault.source(),
            Self::Encode(error) => Some(error),
            Self::Decode(error) => Some(error),
            Self::Closed
            | Self::WouldBlock
            | Self::TooLong { .. }
            | Self::TooManyDescriptors(_)
            | Self::Truncated
            | Self::UnknownForm(_)
            | Self::TrailingBytes(_) => None,
        }
    }
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for ChannelError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

impl From<MemoryFileFault> for ChannelError {
    fn from(fault: MemoryFileFault) -> Self {
        Self::MemoryFile(fault)
    }
}

impl fmt::Display for MemoryFileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "a message lacks its memory file",
            Self::NotSealed => "a message is in a file that its sender could change",
            Self::WrongLength => "a message is in a file of another length than announced",
        })
    }
}

impl Error for MemoryFileFault {}
