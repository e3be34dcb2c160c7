//! The pcap format: a file header of 24 bytes, then records with a header of 16 bytes each.
//!
//! File header: magic number, version (major, minor), time zone, accuracy, snapshot length, link type. Record header:
//! seconds, fraction of a second, captured length, original length. The magic number tells byte order and resolution.

mod read;
mod write;

pub(crate) use read::Reader;
pub use write::PcapEncoder;

/// Bytes of the file header.
pub const FILE_HEADER_LENGTH: usize = 24;
/// Bytes of a record's header.
pub const RECORD_HEADER_LENGTH: usize = 16;

/// Timestamps are in microseconds.
const MAGIC: u32 = 0xa1b2_c3d4;
/// Timestamps are in nanoseconds.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Record headers have eight more bytes (interface, protocol, packet type), as a patched libpcap once wrote them.
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;
/// The only major version.
const MAJOR: u16 = 2;
/// The minor version that is written.
const MINOR: u16 = 4;
