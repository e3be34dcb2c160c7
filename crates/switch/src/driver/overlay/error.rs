//! Why a port for a tunnel cannot be made.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// Why a port for a tunnel cannot be made.
#[derive(Debug)]
pub enum OverlayError {
    /// The operating system reported an error.
    System(io::Error),
    /// The descriptor is not the socket of a tunnel.
    OtherDescriptor,
    /// The MTU is not possible on the path.
    Mtu {
        /// The MTU that was asked for.
        wanted: u16,
        /// The greatest possible one.
        most: u16,
        /// The remote address.
        remote: IpAddr,
    },
}

impl fmt::Display for OverlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::OtherDescriptor => f.write_str("this is not the socket of a tunnel"),
            Self::Mtu { wanted, most, remote } => write!(
                f,
                "the MTU {wanted} is too large: packets to {remote} leave room for {most} bytes; use a smaller MTU, or raise \
                 that of the interface to {remote}"
            ),
        }
    }
}

impl Error for OverlayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // The message is the cause's.
            Self::System(error) => error.source(),
            Self::OtherDescriptor | Self::Mtu { .. } => None,
        }
    }
}

impl From<io::Error> for OverlayError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
