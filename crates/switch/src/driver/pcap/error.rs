//! Errors of opening a capture file.

use capture::{CaptureError, LinkType};
use std::error::Error;
use std::fmt;
use std::io;

/// Why a capture file cannot be opened.
#[derive(Debug)]
pub enum PcapError {
    /// The file cannot be opened or read.
    System(io::Error),
    /// The path is a pipe, a device or a folder: reading it could block the switch.
    NotAFile,
    /// The file ends within its header.
    Truncated,
    /// The file is not a capture, or it is damaged.
    Format(CaptureError),
    /// The file to record to has other contents.
    NotOurs,
    /// The capture's link type is not Ethernet.
    Link(LinkType),
}

impl fmt::Display for PcapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::NotAFile => f.write_str("it is not an ordinary file"),
            Self::Truncated => f.write_str("its header is truncated"),
            Self::Format(error) => error.fmt(f),
            Self::NotOurs => f.write_str("it has contents that no recording has"),
            Self::Link(link) => {
                write!(f, "its link type is {}; only Ethernet (1) is supported", link.0)
            }
        }
    }
}

impl Error for PcapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // `Display` prints the message of these two causes, so the chain continues with the cause's source.
        match self {
            Self::System(error) => error.source(),
            Self::Format(error) => error.source(),
            Self::NotAFile | Self::Truncated | Self::NotOurs | Self::Link(_) => None,
        }
    }
}

impl From<io::Error> for PcapError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
