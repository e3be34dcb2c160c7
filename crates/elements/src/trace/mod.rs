//! Traces: reading and writing captured packets.
//!
//! The formats know nothing of files: bytes are fed to a [`Decoder`] as they come, and an [`Encoder`] appends to a
//! buffer. Whoever reads the file also unpacks it if it is compressed.
//!
//! Absent: writing pcapng, name resolution blocks, statistics and decryption secrets (skipped when read).

use element::Class;

mod decoder;
mod encoder;
mod error;
mod fromdump;
mod fromipsummarydump;
mod input;
pub mod link;
mod multipacket;
mod order;
mod pcap;
mod pcapng;
mod replay;
pub mod summary;
mod todump;
mod toipsummarydump;

pub use decoder::{Decoder, MAX_CAPTURE, Record};
pub use encoder::Encoder;
pub use error::DumpError;
pub use fromdump::FromDump;
pub use fromipsummarydump::FromIPSummaryDump;
pub use link::LinkType;
pub use todump::ToDump;
pub use toipsummarydump::ToIPSummaryDump;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<FromDump>(),
    Class::of::<ToDump>(),
    Class::of::<FromIPSummaryDump>(),
    Class::of::<ToIPSummaryDump>(),
];
