//! The key of a TCP or UDP flow.

use core::fmt;
use core::net::Ipv4Addr;

use crate::{Key, Seed};

/// Addresses and ports of one direction of a flow, in host byte order: 12 bytes.
///
/// The protocol is not included: TCP and UDP flows are kept in separate tables.
#[derive(Clone, Copy, Debug, Default, Eq, PartialOrd, Ord)]
pub struct Ip4Flow {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl PartialEq for Ip4Flow {
    /// Compares without a branch between the fields: nearly all flows that are compared are equal.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let addresses = |flow: &Self| u64::from(flow.destination) << 32 | u64::from(flow.source);
        let ports = |flow: &Self| u32::from(flow.destination_port) << 16 | u32::from(flow.source_port);
        (addresses(self) ^ addresses(other)) | u64::from(ports(self) ^ ports(other)) == 0
    }
}

impl Ip4Flow {
    /// The same flow in the other direction.
    #[inline]
    pub fn reverse(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

impl Key for Ip4Flow {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        let ports = u128::from(self.source_port) << 16 | u128::from(self.destination_port);
        (u128::from(self.source) << 64 | u128::from(self.destination) << 32 | ports).hash(seed)
    }
}

/// `(SOURCE, PORT, DESTINATION, PORT)`, as Click prints it.
impl fmt::Display for Ip4Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, source_port, destination_port } = *self;
        let (source, destination) = (Ipv4Addr::from_bits(source), Ipv4Addr::from_bits(destination));
        write!(f, "({source}, {source_port}, {destination}, {destination_port})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn prints_and_reverses() {
        let flow =
            Ip4Flow { source: 0x0a00_0001, destination: 0x0101_0101, source_port: 20, destination_port: 80 };
        assert_eq!(flow.to_string(), "(10.0.0.1, 20, 1.1.1.1, 80)");
        assert_eq!(flow.reverse().to_string(), "(1.1.1.1, 80, 10.0.0.1, 20)");
        let seed = Seed::new(1, 2);
        assert!(flow.reverse().reverse() == flow && flow.hash(seed) != flow.reverse().hash(seed));
    }
}
