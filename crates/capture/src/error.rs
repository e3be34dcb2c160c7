//! Why a capture cannot be read.

use core::fmt;

/// Why a capture cannot be read any further. Positions are byte offsets from the start of the uncompressed capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// The first bytes belong to none of the formats.
    Magic,
    /// The major version of the format is unknown.
    Version(u16),
    /// A record claims more captured bytes than [`MAX_CAPTURED`](crate::MAX_CAPTURED).
    RecordLength,
    /// A pcapng block has an impossible length.
    BlockLength {
        /// Where the block begins.
        position: u64,
        /// The length that it claims, in bytes.
        length: u32,
    },
    /// A pcapng section header has no byte-order mark.
    ByteOrder {
        /// Where the section begins.
        position: u64,
    },
    /// A pcapng section describes more than [`MAX_INTERFACES`](crate::MAX_INTERFACES) interfaces.
    TooManyInterfaces,
    /// The timestamp resolution of a pcapng interface (its `if_tsresol` code) is too fine to compute with.
    Resolution(u8),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::Magic => f.write_str("not a tcpdump file (bad magic number)"),
            CaptureError::Version(version) => write!(f, "unknown major version {version}"),
            CaptureError::RecordLength => f.write_str("bad packet header; giving up"),
            CaptureError::BlockLength { position, length } => {
                write!(f, "bad block at byte {position} ({length} bytes); giving up")
            }
            CaptureError::ByteOrder { position } => {
                write!(f, "bad section header at byte {position}; giving up")
            }
            CaptureError::TooManyInterfaces => f.write_str("too many interfaces; giving up"),
            CaptureError::Resolution(code) => write!(f, "unknown time resolution {code}"),
        }
    }
}

impl core::error::Error for CaptureError {}
