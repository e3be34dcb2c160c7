//! IP summary dumps: one line or binary record of selected fields per packet.
//!
//! A dump starts with lines that begin with `!`: the version, the fields (`!data`), optionally `!binary`. [`Writer`]
//! writes the fields of packets. [`Reader`] reads dumps into [`PacketBuilder`]s, with zeros for unspecified data.
//!
//! Absent: reading payload digests, from which no payload can be recovered.

mod dissected;
mod encode;
mod field;
mod fill;
mod finish;
mod ip_options;
mod md5;
mod names;
mod number;
mod options;
mod packet_builder;
mod parse;
mod read;
mod splitter;
mod tcp_options;
mod value;
mod write;

pub(super) use encode::quoted;
pub use field::Field;
pub use packet_builder::{FlowId, PacketBuilder};
pub use read::{Item, Reader};
pub use splitter::MAX_LINE;
pub use write::Writer;

/// The format version that is written.
pub(super) const MAJOR: u32 = 1;
/// Fragment offsets are in bytes since minor version 1, and digests are correct since 3.
pub(super) const MINOR: u32 = 3;
