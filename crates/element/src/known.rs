//! Names that numbers are known by, whatever a configuration defines: one table for arguments and rules alike.

/// Click's own names of ports and common ones of the IANA registry, for TCP and UDP alike, by name.
const SERVICES: &[(&str, u16)] = &[
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

/// The IANA protocols that configurations name, and Click's `payload`, by name.
const PROTOCOLS: &[(&str, u8)] = &[
    ("ah", 51),
    ("dccp", 33),
    ("egp", 8),
    ("eigrp", 88),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("icmp6", 58),
    ("igmp", 2),
    ("ip", 0),
    ("ipip", 4),
    ("ipv6", 41),
    ("ipv6-icmp", 58),
    ("l2tp", 115),
    ("ospf", 89),
    ("payload", 99),
    ("pim", 103),
    ("rsvp", 46),
    ("sctp", 132),
    ("tcp", 6),
    ("udp", 17),
    ("udplite", 136),
    ("vrrp", 112),
];

/// ICMP message types (RFC 792, 950, 1256), by name.
const ICMP_TYPES: &[(&str, u8)] = &[
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

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let place = table.binary_search_by_key(&name, |(name, _)| name).ok()?;
    table.get(place).map(|(_, number)| *number)
}

/// The TCP or UDP port of a service.
pub fn service(name: &str) -> Option<u16> {
    find(SERVICES, name)
}

/// The number of an IP protocol.
pub fn protocol(name: &str) -> Option<u8> {
    find(PROTOCOLS, name)
}

/// The number of an ICMP message type.
pub fn icmp_type(name: &str) -> Option<u8> {
    find(ICMP_TYPES, name)
}

/// The first name of an IP protocol.
pub fn protocol_name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// The name of an ICMP message type.
pub fn icmp_type_name(number: u8) -> Option<&'static str> {
    ICMP_TYPES.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(SERVICES.is_sorted_by(|one, other| one.0 < other.0));
        assert!(PROTOCOLS.is_sorted_by(|one, other| one.0 < other.0));
        assert!(ICMP_TYPES.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!((service("www"), protocol("www"), icmp_type("echo")), (Some(80), None, Some(8)));
        assert_eq!((protocol_name(6), icmp_type_name(8)), (Some("tcp"), Some("echo")));
    }
}
