//! Kernel network devices, for the switch's ports and for a process that runs elements without a switch. Each packet
//! comes with its kernel metadata. No call blocks.

mod carrier;
mod coalesce;
mod fan_out;
mod filter;
mod gso;
mod headers;
mod interface_reader;
mod ip_packet;
mod offload;
mod packet_socket;
mod raw;
mod ring;
mod rx_frame;
mod tunnel;

pub(crate) use coalesce::{Coalescer, MAX_PARTS};
pub(crate) use fan_out::FanOut;
pub use filter::{MAX_FILTER, attach_filter};
pub(crate) use gso::MAX_TUNNELS;
pub use gso::Segmenter;
pub use interface_reader::{InterfaceReader, MAX_READ, ReadCount, ReadFrame};
pub(crate) use ip_packet::IpPacket;
#[cfg(test)]
pub(crate) use ip_packet::tests::{TUNNELS, in_tunnel};
pub(crate) use offload::{
    CONGESTION, HEADER as OFFLOAD_HEADER, MAX_MESSAGE, NEEDS_CHECKSUM, Offload, TCP_OVER_IP4, TCP_OVER_IP6,
    UDP,
};
pub use packet_socket::{PacketSocket, PacketSocketSettings, SendOutcome};
pub use raw::RawSocket;
pub(crate) use rx_frame::LargeFrame;
pub use rx_frame::RxFrame;
#[cfg(any(test, fuzzing))]
pub(crate) use rx_frame::SlotBytes;
pub(crate) use tunnel::SET_OFFLOADS;
pub use tunnel::{Tunnel, TunnelSettings};
