//! The names that rules of an element may use.

use core::net::Ipv4Addr;

use classify::{NameKind, Names};
use element::{FromArgument, Setup};
use packet::{Ip4Prefix, MacAddr, iana, services};

/// The names that IANA assigned, and no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct AssignedNames;

impl Names for AssignedNames {
    fn assigned(&self, kind: NameKind, word: &str) -> Option<u32> {
        match kind {
            NameKind::Protocol => iana::protocol(word).map(u32::from),
            NameKind::TcpPort => services::tcp(word).map(u32::from),
            NameKind::UdpPort => services::udp(word).map(u32::from),
            NameKind::IcmpType => iana::icmp_type(word).map(u32::from),
            NameKind::TcpFlag => None,
        }
    }
}

/// The names that rules of an element may use: those that the configuration defines for the element's scope, and those
/// that IANA assigned.
pub(super) struct ElementNames<'a, 's>(pub(super) &'a Setup<'s>);

impl Names for ElementNames<'_, '_> {
    fn defined(&self, kind: NameKind, word: &str) -> Option<u32> {
        let kind = match kind {
            NameKind::Protocol => element::NameKind::Protocol,
            NameKind::TcpPort => element::NameKind::TcpPort,
            NameKind::UdpPort => element::NameKind::UdpPort,
            NameKind::IcmpType => element::NameKind::IcmpType,
            NameKind::TcpFlag => return None,
        };
        let bytes = self.0.names().find(kind, self.0.scope(), word)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn assigned(&self, kind: NameKind, word: &str) -> Option<u32> {
        AssignedNames.assigned(kind, word)
    }

    fn address(&self, word: &str) -> Option<u32> {
        Ipv4Addr::from_argument(word, self.0).ok().map(Ipv4Addr::to_bits)
    }

    fn prefix(&self, word: &str) -> Option<(u32, u32)> {
        let prefix = Ip4Prefix::from_argument(word, self.0).ok()?;
        Some((prefix.address.to_bits(), prefix.mask.to_bits()))
    }

    fn ethernet(&self, word: &str) -> Option<[u8; 6]> {
        MacAddr::from_argument(word, self.0).ok().map(|address| address.0)
    }
}
