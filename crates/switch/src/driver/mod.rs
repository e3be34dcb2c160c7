//! What ports are made of: one contract, one file for each kind.

mod af_packet;
mod boxed;
mod contract;
pub(crate) mod kernel;
mod null;
mod pcap;
mod pipe;
mod tap;

pub use af_packet::AfPacket;
pub use boxed::BoxPort;
pub use contract::{Driver, DriverError, Received, Sent};
pub use null::Null;
pub use pcap::{PcapError, PcapReader, PcapWriter};
pub use pipe::Pipe;
pub use tap::Tap;
