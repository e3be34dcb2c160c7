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
    table.iter().find(|(name, _)| *name == word).map(|(_, number)| *number)
}

/// The protocol number that stands for "TCP or UDP".
pub(crate) const TCP_OR_UDP: u32 = 256;
/// The protocol number that stands for "whatever transport protocol".
pub(crate) const TRANSPORT: u32 = 258;
/// The protocol number that stands for "the payload".
pub(crate) const PAYLOAD: u32 = 259;

const PROTOCOLS: &[(&str, u32)] = &[
    ("dccp", 33),
    ("gre", 47),
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("payload", PAYLOAD),
    ("sctp", 132),
    ("tcp", 6),
    ("tcpudp", TCP_OR_UDP),
    ("transp", TRANSPORT),
    ("udp", 17),
];

const PORTS: &[(&str, u32)] = &[
    ("auth", 113),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("discard", 9),
    ("dns", 53),
    ("domain", 53),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("https", 443),
    ("imap3", 220),
    ("imaps", 993),
    ("irc", 194),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nntp", 119),
    ("ntp", 123),
    ("pop3", 110),
    ("pop3s", 995),
    ("pptp", 1723),
    ("rip", 520),
    ("route", 520),
    ("smtp", 25),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("ssh", 22),
    ("sunrpc", 111),
    ("telnet", 23),
    ("tftp", 69),
    ("www", 80),
];

const TCP_FLAGS: &[(&str, u32)] =
    &[("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

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
