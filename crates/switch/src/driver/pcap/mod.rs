//! `pcap`: frames from a capture file, frames into one. Captures of Ethernet in any format that `capture` reads.

mod error;
mod port;
mod reader;
mod writer;

pub use error::PcapError;
pub use port::PcapPort;
pub use reader::PcapReader;
pub use writer::PcapWriter;
