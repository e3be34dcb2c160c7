//! What can be wrong with a dump.

use core::fmt;

/// Why a dump can't be read any further. Positions are in bytes from the start of the unpacked dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpError {
    /// The first bytes belong to none of the formats.
    Magic,
    /// The major version of the format is not known.
    Version(u16),
    /// A record claims more captured bytes than any capture has.
    RecordLength,
    /// A pcapng block's length is not possible.
    BlockLength {
        /// Where the block begins.
        position: u64,
        /// The bytes it claims.
        length: u32,
    },
    /// A pcapng section's byte order can't be told.
    ByteOrder {
        /// Where the section begins.
        position: u64,
    },
    /// A pcapng section describes more interfaces than are allowed.
    TooManyInterfaces,
    /// A pcapng interface's time resolution is finer than can be reckoned with.
    Resolution(u8),
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::Magic => f.write_str("not a tcpdump file (bad magic number)"),
            DumpError::Version(version) => write!(f, "unknown major version {version}"),
            DumpError::RecordLength => f.write_str("bad packet header; giving up"),
            DumpError::BlockLength { position, length } => {
                write!(f, "bad block at byte {position} ({length} bytes); giving up")
            }
            DumpError::ByteOrder { position } => {
                write!(f, "bad section header at byte {position}; giving up")
            }
            DumpError::TooManyInterfaces => f.write_str("too many interfaces; giving up"),
            DumpError::Resolution(code) => write!(f, "unknown time resolution {code}"),
        }
    }
}

impl core::error::Error for DumpError {}
