//! IP summary dumps: a line, or a binary record, of chosen fields for each packet.
//!
//! A dump begins with lines that start with `!`: version, fields (`!data`), perhaps `!binary`. [`Writer`] writes the
//! fields of packets; [`Reader`] makes [`Draft`]s of packets from dumps, in which what the dump doesn't say is zero.
//!
//! Absent: reading payload digests back (there is nothing to make of them).

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

/// The version of the format that is written.
pub(super) const MAJOR: u32 = 1;
/// Fragment offsets count bytes since minor version 1, digests are right since 3.
pub(super) const MINOR: u32 = 3;
