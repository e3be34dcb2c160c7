//! Why a device cannot be used through XDP sockets.

use super::limits::{MAX_MTU, MAX_QUEUES};
use std::fmt;
use std::io;

/// Why a device cannot be used through XDP sockets.
#[derive(Debug)]
pub enum XdpError {
    /// The device cannot be opened.
    Device(io::Error),
    /// The device's MTU, which is greater than the greatest one that fits into buffers.
    Mtu(u32),
    /// The device has this number of receive queues, which is more than a port serves, or fewer than were asked for.
    Queues(u32),
    /// The memory for frames cannot be made or mapped.
    Memory(io::Error),
    /// An XDP socket cannot be made, or not be bound to its queue.
    Socket(io::Error),
    /// The XDP program cannot be loaded, or not be attached to the device.
    Program(io::Error),
    /// The descriptors are not those of a device that was opened for XDP.
    Descriptors,
    /// The kernel's index of a ring is impossible.
    Index,
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(_) => f.write_str("the device can't be opened"),
            Self::Mtu(mtu) => {
                write!(f, "the MTU of the device is {mtu}, and XDP buffers have room for {}", MAX_MTU)
            }
            Self::Queues(queues) => write!(
                f,
                "the device has {queues} receive queues; a port serves 1 to {}, and no more than there are",
                MAX_QUEUES
            ),
            Self::Memory(_) => f.write_str("the memory for frames can't be had"),
            Self::Socket(_) => f.write_str("the XDP socket of a queue can't be had"),
            Self::Program(_) => f.write_str("the XDP program can't be attached"),
            Self::Descriptors => f.write_str("this is not a device that was opened for XDP"),
            Self::Index => f.write_str("the kernel's index of an XDP ring is impossible"),
        }
    }
}

impl std::error::Error for XdpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Device(error) | Self::Memory(error) | Self::Socket(error) | Self::Program(error) => {
                Some(error)
            }
            Self::Mtu(_) | Self::Queues(_) | Self::Descriptors | Self::Index => None,
        }
    }
}

impl From<XdpError> for io::Error {
    fn from(error: XdpError) -> Self {
        io::Error::other(error)
    }
}
