//! Names for numbers in rules, and the interface through which a caller resolves them.

use packet::{iana, services};

/// A kind of name. A word may stand for different numbers in different kinds.
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

/// Resolves the names of protocols, ports, messages and addresses that a configuration defines (`IPNameInfo`,
/// `AddressInfo`). Names that IANA assigned are known without it.
pub trait Names {
    /// The number that the configuration defines for `word`. It takes precedence over a word of the rule language.
    fn defined(&self, kind: NameKind, word: &str) -> Option<u32> {
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

/// Resolves no names: rules can use numbers, the words of the language, and names that IANA assigned.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {}

/// The number of `word`: a name that `names` knows, a word of the rule language, or a name that IANA assigned.
pub(crate) fn number(names: &dyn Names, kind: NameKind, word: &str) -> Option<u32> {
    let words = match kind {
        NameKind::Protocol => SELECTORS,
        NameKind::TcpFlag => TCP_FLAGS,
        NameKind::TcpPort | NameKind::UdpPort | NameKind::IcmpType => &[],
    };
    let built_in = || words.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
    names.defined(kind, word).or_else(built_in).or_else(|| assigned(kind, word))
}

/// The number that IANA assigned to `word`.
fn assigned(kind: NameKind, word: &str) -> Option<u32> {
    match kind {
        NameKind::Protocol => iana::protocol(word).map(u32::from),
        NameKind::TcpPort => services::tcp(word).map(u32::from),
        NameKind::UdpPort => services::udp(word).map(u32::from),
        NameKind::IcmpType => iana::icmp_type(word).map(u32::from),
        NameKind::TcpFlag => None,
    }
}

/// The protocol number that means "TCP or UDP".
pub(crate) const TCP_OR_UDP: u32 = 256;
/// The protocol number that means "any transport protocol".
pub(crate) const TRANSPORT: u32 = 258;
/// The protocol number that means "the payload".
pub(crate) const PAYLOAD: u32 = 259;

/// Pseudo-protocols: words used like protocol names that select none or several.
const SELECTORS: &[(&str, u32)] = &[("payload", PAYLOAD), ("tcpudp", TCP_OR_UDP), ("transp", TRANSPORT)];

/// Bits of the TCP flags byte.
const TCP_FLAGS: &[(&str, u32)] =
    &[("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_kinds() {
        assert_eq!(number(&NoNames, NameKind::Protocol, "payload"), Some(PAYLOAD));
        assert_eq!(number(&NoNames, NameKind::TcpFlag, "syn"), Some(2));
        assert_eq!(number(&NoNames, NameKind::TcpPort, "payload"), None);
        assert_eq!(number(&NoNames, NameKind::TcpPort, "http"), Some(80));
        assert_eq!(number(&NoNames, NameKind::UdpPort, "http"), None);
        assert_eq!(number(&NoNames, NameKind::IcmpType, "echo"), Some(8));
    }
}
