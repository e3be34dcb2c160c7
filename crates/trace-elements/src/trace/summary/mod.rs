//! IP summary dumps: one line or binary record of selected fields per packet.
//!
//! A dump starts with lines that begin with `!`: the version, the fields (`!data`), optionally `!binary`. [`Writer`]
//! writes the fields of packets. [`Reader`] creates [`Draft`]s of packets from dumps, with zeros for unspecified data.
//!
//! Absent: reading payload digests, from which no payload can be recovered.

mod draft;
mod field;
mod fill;
mod finish;
mod ip_options;
mod md5;
mod names;
mod number;
mod options;
mod parse;
mod pieces;
mod read;
mod record;
mod subject;
mod tcp_options;
mod value;
mod write;

pub use draft::{Draft, FlowId};
pub use field::Field;
pub use pieces::MAX_LINE;
pub use read::{Item, Reader};
pub(super) use record::quoted;
pub use write::Writer;

/// The format version that is written.
pub(super) const MAJOR: u32 = 1;
/// Fragment offsets are in bytes since minor version 1, and digests are correct since 3.
pub(super) const MINOR: u32 = 3;
