//! The names that a configuration defines for rules.

use core::net::Ipv4Addr;

use classify::{NameKind, Names};
use element::{FromArgument, Setup};
use packet::{Ip4Prefix, MacAddr};

/// The names that the configuration defines for the element's scope.
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
