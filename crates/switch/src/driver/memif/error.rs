//! Why a connection to a memif peer cannot be made, or has ended.

use std::fmt;
use std::io;

/// Why a connection to a memif peer cannot be made, or has ended.
#[derive(Debug)]
pub enum MemifError {
    /// A system call failed.
    System(io::Error),
    /// The peer has closed the connection.
    Closed,
    /// The server has closed the connection after it was given several rings in a direction.
    Rings {
        /// The number of rings in a direction.
        count: usize,
        /// The reason that the server gave.
        text: Option<String>,
    },
    /// The peer has ended the connection, with this reason.
    Disconnected(String),
    /// The peer did not answer in time.
    Silent,
    /// Another client is connected.
    Busy,
    /// This side has ended the connection, because its port was removed or got another connection.
    Removed,
    /// A message is unknown, too long or too short, or must not come at this time.
    Message,
    /// The peer has versions from the first to the second.
    Version(u16, u16),
    /// The peer wants an interface with this number.
    Id(u32),
    /// The peer wants to exchange something other than Ethernet frames.
    Mode(u8),
    /// The peer does not know the secret.
    Secret,
    /// A message came without the descriptor that belongs to it.
    NoDescriptor,
    /// The file of a region is not a memory file with small pages.
    NotMemory,
    /// The file of a region is not sealed against being shortened.
    NotSealed,
    /// The file of a region is shorter than the region.
    Length,
    /// The peer has more regions, or more memory, than it may have.
    TooMuchMemory,
    /// A region has another number than the next one.
    Region(u16),
    /// The peer has a ring that was not offered, or the same one twice.
    Ring(u16),
    /// The peer has not described a ring for each direction, or left one out.
    NoRing,
    /// A ring has too many slots, or is not inside its region.
    Place,
    /// A ring does not begin with the number that marks rings.
    Cookie,
    /// A ring's descriptor is not an eventfd.
    NotAnEvent,
    /// The index of a ring jumped.
    Index,
    /// A buffer for frames to the peer is not inside its region.
    Buffer,
}

impl fmt::Display for MemifError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Closed => f.write_str("the peer has closed the connection"),
            Self::Rings { count, text } => {
                let text = text.as_ref().map_or(String::new(), |text| format!(" ({text})"));
                write!(
                    f,
                    "the peer has closed the connection when it was given {count} rings in each direction{text}: \
                     try --queues 1"
                )
            }
            Self::Disconnected(text) => write!(f, "the peer has ended the connection: {text}"),
            Self::Silent => f.write_str("the peer did not answer in time"),
            Self::Busy => f.write_str("another client is connected"),
            Self::Removed => f.write_str("the port was removed"),
            Self::Message => f.write_str("the peer sent a message that does not belong here"),
            Self::Version(least, most) => {
                write!(f, "the peer has memif versions {} to {}, not 2.0", Number(*least), Number(*most))
            }
            Self::Id(id) => write!(
                f,
                "the peer wants the interface with the number {id}: use the same --id on both sides"
            ),
            Self::Mode(mode) => write!(f, "the peer's interface has mode {mode}: use ethernet"),
            Self::Secret => f.write_str("the peer has another secret"),
            Self::NoDescriptor => f.write_str("a message of the peer came without its descriptor"),
            Self::NotMemory => f.write_str(
                "a region of the peer is not a memory file with small pages: switch zero copy off there",
            ),
            Self::NotSealed => f.write_str(
                "a region of the peer can be shortened: its memory file needs the seal F_SEAL_SHRINK",
            ),
            Self::Length => f.write_str("a region of the peer is longer than its memory file"),
            Self::TooMuchMemory => {
                f.write_str("the peer shares too much memory: give it smaller rings or buffers")
            }
            Self::Region(number) => write!(f, "the peer sent region {number} out of order"),
            Self::Ring(number) => {
                write!(f, "the peer sent ring {number} twice, or more rings than were offered")
            }
            Self::NoRing => f.write_str("the peer has no ring for one of the directions, or left one out"),
            Self::Place => f.write_str("a ring of the peer is too large or not inside its region"),
            Self::Cookie => f.write_str("a ring of the peer does not begin with memif's number"),
            Self::NotAnEvent => f.write_str("the descriptor of a ring is not an eventfd"),
            Self::Index => f.write_str("an index of the peer's rings jumped"),
            Self::Buffer => f.write_str("a buffer of the peer is not inside its region"),
        }
    }
}

/// A version as the specification writes it.
struct Number(u16);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 8, self.0 & 0xff)
    }
}

impl std::error::Error for MemifError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for MemifError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
