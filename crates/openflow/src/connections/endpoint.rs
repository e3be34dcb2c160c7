//! Where controllers are, and who begins the connection.

use std::net::SocketAddr;

/// How a connection between a switch and a controller comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The switch connects over TCP.
    Tcp,
    /// The switch connects over TCP, with TLS.
    Tls,
    /// Controllers connect to the switch over TCP.
    PassiveTcp,
    /// Controllers connect to the switch over TCP, with TLS.
    PassiveTls,
}

impl Transport {
    /// Whether TLS protects the connection.
    #[must_use]
    pub fn is_protected(self) -> bool {
        matches!(self, Self::Tls | Self::PassiveTls)
    }

    /// Whether controllers begin the connection.
    #[must_use]
    pub fn is_passive(self) -> bool {
        matches!(self, Self::PassiveTcp | Self::PassiveTls)
    }
}

/// A controller, or where controllers connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// How the connection comes about.
    pub transport: Transport,
    /// The address of the controller, or the own one where the switch listens.
    pub address: SocketAddr,
}

impl Endpoint {
    /// A controller that the switch connects to over TCP.
    #[must_use]
    pub fn tcp(address: SocketAddr) -> Self {
        Self { transport: Transport::Tcp, address }
    }
}
