//! The names that rules may use for numbers, and where a configuration's own names come in.

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
    let table: &[(&str, u32)] = match kind {
        NameKind::Protocol => PROTOCOLS,
        NameKind::TcpPort | NameKind::UdpPort => PORTS,
        NameKind::TcpFlag => TCP_FLAGS,
        NameKind::IcmpType => ICMP_TYPES,
    };
    table.binary_search_by_key(&word, |(name, _)| name).ok().map(|index| table[index].1)
}

/// The protocol number that stands for "TCP or UDP".
pub(crate) const TCP_OR_UDP: u32 = 256;
/// The protocol number that stands for "whatever transport protocol".
pub(crate) const TRANSPORT: u32 = 258;
/// The protocol number that stands for "the payload".
pub(crate) const PAYLOAD: u32 = 259;

/// The IANA protocols that configurations name, and the made-up ones.
const PROTOCOLS: &[(&str, u32)] = &[
    ("ah", 51),
    ("dccp", 33),
    ("egp", 8),
    ("eigrp", 88),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("igmp", 2),
    ("ip", 0),
    ("ipip", 4),
    ("ipv6", 41),
    ("ipv6-icmp", 58),
    ("l2tp", 115),
    ("ospf", 89),
    ("payload", PAYLOAD),
    ("pim", 103),
    ("rsvp", 46),
    ("sctp", 132),
    ("tcp", 6),
    ("tcpudp", TCP_OR_UDP),
    ("transp", TRANSPORT),
    ("udp", 17),
    ("udplite", 136),
    ("vrrp", 112),
];

/// Click's own port names and common ones of the IANA registry, for both transports.
const PORTS: &[(&str, u32)] = &[
    ("amqp", 5672),
    ("auth", 113),
    ("bgp", 179),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("dhcpv6-client", 546),
    ("dhcpv6-server", 547),
    ("discard", 9),
    ("dns", 53),
    ("domain", 53),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("ftps", 990),
    ("ftps-data", 989),
    ("git", 9418),
    ("gopher", 70),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("imap", 143),
    ("imap2", 143),
    ("imap3", 220),
    ("imaps", 993),
    ("ipsec-nat-t", 4500),
    ("irc", 194),
    ("isakmp", 500),
    ("kerberos", 88),
    ("l2f", 1701),
    ("ldap", 389),
    ("ldaps", 636),
    ("loc-srv", 135),
    ("lotusnote", 1352),
    ("mdns", 5353),
    ("microsoft-ds", 445),
    ("ms-sql-s", 1433),
    ("mysql", 3306),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("netstat", 15),
    ("nfs", 2049),
    ("nntp", 119),
    ("nntps", 563),
    ("ntp", 123),
    ("openvpn", 1194),
    ("pop2", 109),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgresql", 5432),
    ("pptp", 1723),
    ("printer", 515),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("rip", 520),
    ("route", 520),
    ("router", 520),
    ("rsync", 873),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("smtp", 25),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("snmptrap", 162),
    ("socks", 1080),
    ("ssh", 22),
    ("submission", 587),
    ("sunrpc", 111),
    ("svn", 3690),
    ("syslog", 514),
    ("systat", 11),
    ("tacacs", 49),
    ("telnet", 23),
    ("telnets", 992),
    ("tftp", 69),
    ("time", 37),
    ("uucp", 540),
    ("webcache", 8080),
    ("whois", 43),
    ("www", 80),
    ("x11", 6000),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
];

/// Bits of the flags byte.
const TCP_FLAGS: &[(&str, u32)] =
    &[("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

/// ICMP message types.
const ICMP_TYPES: &[(&str, u32)] = &[
    ("echo", 8),
    ("echo-reply", 0),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
    ("parameterproblem", 12),
    ("redirect", 5),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("sourcequench", 4),
    ("timeexceeded", 11),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("unreachable", 3),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        for table in [PROTOCOLS, PORTS, TCP_FLAGS, ICMP_TYPES] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
        assert_eq!(built_in(NameKind::TcpPort, "www"), Some(80));
        assert_eq!(built_in(NameKind::Protocol, "www"), None);
    }
}
