//! Devices of the kernel for a process that runs elements itself, without a switch, and for the switch's ports: each
//! packet comes with what the kernel knows of it. Nothing here waits.

mod gso;
mod offload;
mod packet_socket;
mod raw;
mod ring;
mod rx_frame;
mod tunnel;

pub use gso::Segmenter;
pub use packet_socket::{PacketSocket, PacketSocketSettings, SendOutcome};
pub use raw::RawSocket;
pub use rx_frame::RxFrame;
pub use tunnel::{Tunnel, TunnelSettings};
