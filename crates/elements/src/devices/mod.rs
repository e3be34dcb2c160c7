//! Interfaces, tunnels and sockets.

use element::Class;

mod admission;
mod carrier;
mod fromdevice;
mod fromhost;
mod kerneltap;
mod kerneltun;
mod mcastsocket;
mod opening;
mod rawsocket;
mod socket;
mod socketplaces;
mod todevice;
mod tohost;
mod tunnel;

pub use fromdevice::FromDevice;
pub use fromhost::FromHost;
pub use kerneltap::KernelTap;
pub use kerneltun::KernelTun;
pub use mcastsocket::McastSocket;
use opening::{open, report};
pub use rawsocket::RawSocket;
pub use socket::Socket;
pub use todevice::ToDevice;
pub use tohost::ToHost;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<FromDevice>(),
    Class::of::<ToDevice>(),
    Class::of::<KernelTun>(),
    Class::of::<KernelTap>(),
    Class::of::<FromHost>(),
    Class::of::<ToHost>(),
    Class::of::<RawSocket>(),
    Class::of::<Socket>(),
    Class::of::<McastSocket>(),
];
