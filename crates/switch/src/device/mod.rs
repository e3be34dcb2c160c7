//! Devices of the kernel for a process that runs elements itself, without a switch: each packet comes with what the
//! kernel knows of it. Nothing here waits.

mod interface;
mod raw;
mod tunnel;

pub use interface::{Arrival, Interface, InterfaceSettings, ROOM};
pub use raw::RawSocket;
pub use tunnel::{Tunnel, TunnelSettings};
