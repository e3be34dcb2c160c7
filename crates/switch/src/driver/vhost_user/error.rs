//! Why a connection to a peer ends.

use std::fmt;
use std::io;

/// Why a connection with a vhost-user front end ended.
#[derive(Debug)]
pub enum VhostUserError {
    /// The peer closed the connection.
    Closed,
    /// A system call failed.
    System(io::Error),
    /// A message has a wrong version, length or number of descriptors.
    Message(u32),
    /// The peer sent a request that was not offered.
    Unsupported(u32),
    /// The peer does not read the answers.
    NotRead,
    /// The peer accepted features that were not offered.
    Features(u64),
    /// The peer uses a queue that the port, with this number of queue pairs, does not have.
    Queue {
        /// The number of the queue, of which each pair has two.
        number: u32,
        /// The queue pairs of the port.
        pairs: usize,
    },
    /// A queue cannot have this number of descriptors.
    QueueSize(u32),
    /// A memory region is empty, overlaps with another one, is not inside its file, or there are too many.
    Region,
    /// The peer shares more bytes of memory than the port takes.
    TooMuchMemory {
        /// What the peer shares.
        wanted: u64,
        /// What the port takes.
        most: u64,
    },
    /// The file of a memory region may keep an access waiting: it is neither a memory file nor in tmpfs or hugetlbfs.
    NotMemory,
    /// The file of a memory region was opened for reading only.
    ReadOnly,
    /// The peer truncated its memory.
    MemoryLost,
    /// A ring is not inside the peer's memory, or is not aligned.
    RingAddress,
    /// The index of a ring is ahead of its size.
    RingIndex,
    /// A descriptor is outside its table, forms a loop, has the wrong direction, or refers to a table that cannot be one.
    Descriptor,
    /// A buffer is not inside the peer's memory.
    Address,
    /// The descriptor for notifications is no eventfd, pipe or socket.
    NotEvent,
    /// Threads that notify earlier peers are stuck, because the peers' descriptors accept nothing.
    Stuck,
}

impl VhostUserError {
    /// Whether a frame was lost with the error.
    pub(crate) fn has_frame(&self) -> bool {
        matches!(self, Self::RingIndex | Self::Descriptor | Self::Address)
    }
}

impl fmt::Display for VhostUserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the peer closed the connection"),
            Self::System(error) => error.fmt(f),
            Self::Message(request) => write!(f, "the peer's message {request} is malformed"),
            Self::Unsupported(request) => write!(f, "the peer sent request {request}, which was not offered"),
            Self::NotRead => f.write_str("the peer does not read the answers"),
            Self::Features(bits) => write!(f, "the peer accepted features that were not offered: {bits:#x}"),
            Self::Queue { number, pairs } => write!(
                f,
                "the peer has {} or more queue pairs, and the port {pairs}: \
                 add it with as many --queues, or give the peer fewer",
                number / 2 + 1
            ),
            Self::QueueSize(number) => {
                write!(f, "queue {number} of the peer has a size that is no power of two up to 32768")
            }
            Self::Region => f.write_str("the peer's table of memory regions is invalid"),
            Self::TooMuchMemory { wanted, most } => {
                let (wanted, most) = (wanted.div_ceil(1 << 20), most >> 20);
                write!(
                    f,
                    "the peer shares {wanted} MiB of memory, and the port takes {most}: add it with another --memory"
                )
            }
            Self::NotMemory => f.write_str(
                "the peer's memory is neither a memory file nor in tmpfs or hugetlbfs: \
                 share it as memory-backend-memfd, or from a folder in tmpfs",
            ),
            Self::ReadOnly => f.write_str("the peer's memory can't be written to: share it for writing, too"),
            Self::MemoryLost => f.write_str("the peer truncated its memory"),
            Self::RingAddress => f.write_str("a ring is outside the peer's memory"),
            Self::RingIndex => f.write_str("the index of a ring is invalid"),
            Self::Descriptor => f.write_str("a descriptor of a ring is invalid"),
            Self::Address => f.write_str("a buffer is outside the peer's memory"),
            Self::NotEvent => f.write_str("a descriptor for notifications is no eventfd, pipe or socket"),
            Self::Stuck => f.write_str("the peers' descriptors for notifications accept nothing"),
        }
    }
}

impl std::error::Error for VhostUserError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for VhostUserError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
