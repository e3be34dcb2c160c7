//! `pcap`: reads frames from a capture file and writes frames to another. Reads Ethernet captures in any format that
//! `capture` supports.

mod error;
mod port;
mod reader;
mod writer;

pub use error::PcapError;
pub use port::PcapPort;
pub use reader::PcapReader;
pub use writer::PcapWriter;
