//! Why a link cannot be used.

use std::fmt;
use std::io;

/// Why the descriptors of a link are refused, or a link cannot be created.
#[derive(Debug)]
pub enum LinkError {
    /// A system call failed.
    System(io::Error),
    /// The descriptor is not that of a memory file with small pages. Access to other mappings may raise a signal.
    NotMemory,
    /// The other side could change the length of the memory file. Access beyond its end raises a signal.
    NotSealed,
    /// The memory file does not have the length of a link's memory.
    Length(u64),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::NotMemory => f.write_str("the descriptor of the link is not a memory file"),
            Self::NotSealed => f.write_str("the memory file of the link is not sealed"),
            Self::Length(found) => write!(f, "the memory file of the link has {found} bytes"),
        }
    }
}

impl std::error::Error for LinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::NotMemory | Self::NotSealed | Self::Length(_) => None,
        }
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
