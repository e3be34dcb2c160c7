//! Why the region of a function cannot be made.

use boundary::{LayoutError, RingError};
use std::fmt;
use std::io;

/// Why the region of a function cannot be made.
#[derive(Debug)]
pub enum FunctionError {
    /// A system call failed.
    System(io::Error),
    /// It would have too many ports.
    Layout(LayoutError),
    /// A ring has no place.
    Ring(RingError),
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FunctionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::Layout(error) => error.source(),
            Self::Ring(error) => error.source(),
        }
    }
}

impl From<io::Error> for FunctionError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<LayoutError> for FunctionError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<RingError> for FunctionError {
    fn from(error: RingError) -> Self {
        Self::Ring(error)
    }
}
