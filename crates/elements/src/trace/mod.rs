//! Traces: reading and writing captured packets.
//!
//! The formats know nothing of files: bytes are fed to a [`Decoder`] as they come, and an [`Encoder`] appends to a
//! buffer. Whoever reads the file also unpacks it if it is compressed.
//!
//! Absent: writing pcapng, name resolution blocks, statistics and decryption secrets (skipped when read).

mod decoder;
mod encoder;
mod error;
pub mod link;
mod order;
mod pcap;
mod pcapng;
pub mod summary;

pub use decoder::{Decoder, MAX_CAPTURE, Record};
pub use encoder::Encoder;
pub use error::DumpError;
pub use link::LinkType;
