//! Port drivers: one contract, and one file per kind of port.

mod af_packet;
mod af_xdp;
mod boxed;
mod contract;
mod function;
pub(crate) mod kernel;
mod link;
mod memif;
mod null;
mod overlay;
mod pcap;
pub(crate) mod peer_memory;
mod pipe;
mod port_slot;
mod sealed_memory;
mod spread;
mod tap;
mod vhost_user;

pub use af_packet::AfPacket;
#[cfg(any(test, fuzzing))]
pub(crate) use af_xdp::complete_checksum;
pub use af_xdp::{AfXdp, XdpError, XdpInterface, XdpSent, XdpSource, pass_frames};
pub use boxed::BoxPort;
pub(crate) use contract::part_sent;
pub use contract::{Driver, DriverError, LinkState, Received, Refused, Sent};
pub use function::{FunctionEnds, FunctionError, FunctionPort};
pub use link::{LinkError, LinkPort};
pub use memif::{MemifError, MemifPort, MemifSettings};
pub use null::Null;
pub use overlay::{
    Encapsulation, OverlayEnds, OverlayError, OverlayPort, OverlayReader, OverlaySettings, OverlayTunnel,
    Read,
};
pub use pcap::{PcapError, PcapPort, PcapReader, PcapWriter};
pub use pipe::Pipe;
pub use port_slot::PortSlot;
pub use tap::Tap;
pub use vhost_user::{VhostUser, VhostUserError, VhostUserSettings};
