//! The names that rules may use for numbers, and where a configuration's own names come in.

use element::{iana, services};

/// A kind of name. One word may mean different numbers in different kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// IP protocol.
    Protocol,
    /// TCP port.
    TcpPort,
    /// UDP port.
    UdpPort,
    /// TCP flag, as a bit of the flags byte.
    TcpFlag,
    /// ICMP message type.
    IcmpType,
}

/// Looks up the names that a configuration or its host defines (`IPNameInfo`, `AddressInfo`, `/etc/services`).
///
/// What a resolver does not know is looked up among the built-in names.
pub trait Names {
    /// The number that `word` stands for.
    fn number(&self, kind: NameKind, word: &str) -> Option<u32> {
        let _ = (kind, word);
        None
    }

    /// The IPv4 address named `word`.
    fn address(&self, word: &str) -> Option<u32> {
        let _ = word;
        None
    }

    /// The IPv4 prefix named `word`: address and mask.
    fn prefix(&self, word: &str) -> Option<(u32, u32)> {
        let _ = word;
        None
    }

    /// The Ethernet address named `word`.
    fn ethernet(&self, word: &str) -> Option<[u8; 6]> {
        let _ = word;
        None
    }
}

/// No names but the built-in ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltInNames;

impl Names for BuiltInNames {}

/// The number of `word`, as `names` has it or else the built-in tables.
pub(crate) fn number(names: &dyn Names, kind: NameKind, word: &str) -> Option<u32> {
    names.number(kind, word).or_else(|| built_in(kind, word))
}

/// The built-in number of `word`.
#[must_use]
pub fn built_in(kind: NameKind, word: &str) -> Option<u32> {
    let among =
        |table: &[(&str, u32)]| table.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    match kind {
        NameKind::Protocol => among(SELECTORS).or_else(|| iana::protocol(word).map(u32::from)),
        NameKind::TcpPort => services::tcp(word).map(u32::from),
        NameKind::UdpPort => services::udp(word).map(u32::from),
        NameKind::TcpFlag => among(TCP_FLAGS),
        NameKind::IcmpType => iana::icmp_type(word).map(u32::from),
    }
}

/// The protocol number that stands for "TCP or UDP".
pub(crate) const TCP_OR_UDP: u32 = 256;
/// The protocol number that stands for "whatever transport protocol".
pub(crate) const TRANSPORT: u32 = 258;
/// The protocol number that stands for "the payload".
pub(crate) const PAYLOAD: u32 = 259;

/// What rules name that is no protocol, or not the one that arguments mean by the name.
const SELECTORS: &[(&str, u32)] = &[("payload", PAYLOAD), ("tcpudp", TCP_OR_UDP), ("transp", TRANSPORT)];

/// Bits of the flags byte.
const TCP_FLAGS: &[(&str, u32)] =
    &[("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_kinds() {
        assert_eq!(built_in(NameKind::TcpPort, "www"), Some(80));
        assert_eq!(built_in(NameKind::Protocol, "www"), None);
        assert_eq!(built_in(NameKind::Protocol, "payload"), Some(PAYLOAD));
        assert_eq!(built_in(NameKind::TcpFlag, "syn"), Some(2));
    }
}
