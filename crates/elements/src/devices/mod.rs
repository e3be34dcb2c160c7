//! Interfaces, tunnels and sockets.

use element::Class;

mod admission;
mod fromdevice;
mod kerneltap;
mod kerneltun;
mod opening;
mod rawsocket;
mod socket;
mod todevice;
mod tunnel;

pub use fromdevice::FromDevice;
pub use kerneltap::KernelTap;
pub use kerneltun::KernelTun;
use opening::{open, report};
pub use rawsocket::RawSocket;
pub use socket::Socket;
pub use todevice::ToDevice;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<FromDevice>(),
    Class::of::<ToDevice>(),
    Class::of::<KernelTun>(),
    Class::of::<KernelTap>(),
    Class::of::<RawSocket>(),
    Class::of::<Socket>(),
];
