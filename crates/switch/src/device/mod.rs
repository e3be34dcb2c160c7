//! Devices of the kernel for a process that runs elements itself, without a switch, and for the switch's ports: each
//! packet comes with what the kernel knows of it. Nothing here waits.

mod arrival;
mod interface;
mod offload;
mod raw;
mod ring;
mod segments;
mod tunnel;

pub use arrival::Arrival;
pub use interface::{Interface, InterfaceSettings, Sending};
pub use raw::RawSocket;
pub use segments::Segments;
pub use tunnel::{Tunnel, TunnelSettings};
