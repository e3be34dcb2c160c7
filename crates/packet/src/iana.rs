//! Well-known names of protocols and ICMP types: one table for arguments and rules.

/// The IANA protocols that configurations name, and Click's `payload`, sorted by name.
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

/// Further IP protocol names from the IANA registry and common systems, sorted by name. Used for parsing only.
const OTHER_PROTOCOLS: &[(&str, u8)] = &[
    ("AX.25", 93),
    ("CPHB", 73),
    ("DCCP", 33),
    ("DDP", 37),
    ("EGP", 8),
    ("EIGRP", 88),
    ("ENCAP", 98),
    ("ETHERIP", 97),
    ("Ethernet", 143),
    ("FC", 133),
    ("GGP", 3),
    ("GRE", 47),
    ("HIP", 139),
    ("HMP", 20),
    ("HOPOPT", 0),
    ("ICMP", 1),
    ("IDPR-CMTP", 38),
    ("IDRP", 45),
    ("IGMP", 2),
    ("IGP", 9),
    ("IP", 0),
    ("IP-ENCAP", 4),
    ("IPCOMP", 108),
    ("IPIP", 94),
    ("IPSEC-AH", 51),
    ("IPSEC-ESP", 50),
    ("IPv6", 41),
    ("IPv6-Frag", 44),
    ("IPv6-ICMP", 58),
    ("IPv6-NoNxt", 59),
    ("IPv6-Opts", 60),
    ("IPv6-Route", 43),
    ("ISIS", 124),
    ("ISO-TP4", 29),
    ("L2TP", 115),
    ("MPLS-in-IP", 137),
    ("Mobility-Header", 135),
    ("OSPFIGP", 89),
    ("PIM", 103),
    ("PUP", 12),
    ("RDP", 27),
    ("ROHC", 142),
    ("RSPF", 73),
    ("RSVP", 46),
    ("SCTP", 132),
    ("SKIP", 57),
    ("ST", 5),
    ("Shim6", 140),
    ("TCP", 6),
    ("UDP", 17),
    ("UDPLite", 136),
    ("VMTP", 81),
    ("VRRP", 112),
    ("WESP", 141),
    ("XNS-IDP", 22),
    ("XTP", 36),
    ("ax.25", 93),
    ("ddp", 37),
    ("encap", 98),
    ("etherip", 97),
    ("ethernet", 143),
    ("fc", 133),
    ("ggp", 3),
    ("hip", 139),
    ("hmp", 20),
    ("hopopt", 0),
    ("idpr-cmtp", 38),
    ("idrp", 45),
    ("igp", 9),
    ("ipcomp", 108),
    ("ipencap", 4),
    ("ipv6-frag", 44),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("ipv6-route", 43),
    ("isis", 124),
    ("iso-tp4", 29),
    ("manet", 138),
    ("mobility-header", 135),
    ("mpls-in-ip", 137),
    ("pup", 12),
    ("rdp", 27),
    ("rohc", 142),
    ("rspf", 73),
    ("shim6", 140),
    ("skip", 57),
    ("st", 5),
    ("vmtp", 81),
    ("wesp", 141),
    ("xns-idp", 22),
    ("xtp", 36),
];

/// ICMP message types (RFC 792, 950, 1256), sorted by name.
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
    let index = table.binary_search_by_key(&name, |(name, _)| name).ok()?;
    table.get(index).map(|(_, number)| *number)
}

/// The number of an IP protocol.
pub fn protocol(name: &str) -> Option<u8> {
    find(PROTOCOLS, name).or_else(|| find(OTHER_PROTOCOLS, name))
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
        assert!(PROTOCOLS.is_sorted_by(|one, other| one.0 < other.0));
        assert!(OTHER_PROTOCOLS.is_sorted_by(|one, other| one.0 < other.0));
        assert!(ICMP_TYPES.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!((protocol("www"), icmp_type("echo")), (None, Some(8)));
        assert_eq!((protocol_name(6), icmp_type_name(8)), (Some("tcp"), Some("echo")));
    }
}
