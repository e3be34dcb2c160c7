//! Errors of reading a capture.

use core::fmt;

/// The reason why a capture can't be read further. Positions are byte offsets from the start of the uncompressed
/// capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// The first bytes match none of the formats.
    Magic,
    /// The major version of the format is unknown.
    Version(u16),
    /// A record claims more captured bytes than [`MAX_CAPTURED`](crate::MAX_CAPTURED).
    RecordLength,
    /// A pcapng block has an impossible length.
    BlockLength {
        /// Offset of the block.
        position: u64,
        /// The length in the block, in bytes.
        length: u32,
    },
    /// A pcapng section header has no byte-order mark.
    ByteOrder {
        /// Offset of the section.
        position: u64,
    },
    /// A pcapng section describes more than [`MAX_INTERFACES`](crate::MAX_INTERFACES) interfaces.
    TooManyInterfaces,
    /// The timestamp resolution of a pcapng interface (its `if_tsresol` code) is too fine for 64-bit arithmetic.
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
