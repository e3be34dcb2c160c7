//! Errors of the engine.

use boundary::{ChannelError, CorruptIndex, RingError};
use core::error::Error;
use core::fmt;

/// Why an engine cannot start or continue. The host is trusted, so each of these is a defect of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The shared region is too small, or the ports' buffers are outside it.
    Region,
    /// The mailbox does not fit into its part of the region.
    Layout(RingError),
    /// The rings of a port lie outside the region.
    Port(usize),
    /// The mailbox is damaged.
    Channel(ChannelError),
    /// A ring is damaged.
    Ring(CorruptIndex),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Region => write!(f, "the shared region does not hold what the boot info describes"),
            EngineError::Layout(_) => write!(f, "the mailbox does not fit into the shared region"),
            EngineError::Port(number) => {
                write!(f, "the rings of port {number} are outside the shared region")
            }
            EngineError::Channel(_) => write!(f, "the mailbox is damaged"),
            EngineError::Ring(_) => write!(f, "the ring of a port is damaged"),
        }
    }
}

impl Error for EngineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            EngineError::Region | EngineError::Port(_) => None,
            EngineError::Layout(error) => Some(error),
            EngineError::Channel(error) => Some(error),
            EngineError::Ring(error) => Some(error),
        }
    }
}

impl From<ChannelError> for EngineError {
    fn from(error: ChannelError) -> Self {
        EngineError::Channel(error)
    }
}

impl From<CorruptIndex> for EngineError {
    fn from(error: CorruptIndex) -> Self {
        EngineError::Ring(error)
    }
}
