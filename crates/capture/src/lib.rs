//! Capture files: the only reader and writer of pcap and pcapng in the workspace.
//!
//! The crate does no I/O. A [`Parser`] takes slices of a capture and returns records that borrow from them. A
//! [`Decoder`] adds the read buffer that most callers want. [`PcapEncoder`] and [`PcapngEncoder`] append to a vector.
//!
//! Invariants:
//! - No input makes a parser panic or loop. An invalid record is skipped and counted, and parsing continues. If the
//!   next record cannot be found, the parser returns a [`CaptureError`].
//! - Memory is bounded: a parser keeps the interfaces of one section, at most [`MAX_INTERFACES`]. A decoder keeps the
//!   bytes of the last read and one unfinished block, at most [`MAX_BLOCK`] bytes.
//! - What an encoder writes, the parser reads back unchanged.
//!
//! Absent on purpose: files, compression, clocks, packet headers, and the pcapng blocks that hold no packets (name
//! resolution, statistics, decryption secrets), which are skipped.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod byte_order;
mod decoder;
mod error;
mod link_type;
mod parser;
mod pcap;
mod pcapng;
mod record;

pub use decoder::Decoder;
pub use error::CaptureError;
pub use link_type::LinkType;
pub use parser::Parser;
pub use pcap::{FILE_HEADER_LENGTH, PcapEncoder, RECORD_HEADER_LENGTH};
pub use pcapng::{MAX_BLOCK, MAX_INTERFACES, PacketOptions, PcapngEncoder};
pub use record::{Options, Record, RecordPlace, Verdict};

/// The largest number of captured bytes in one record: the largest snapshot length that libpcap accepts. A longer
/// record is a damaged or hostile length, which must not make a reader allocate for it.
pub const MAX_CAPTURED: u32 = 262_144;
