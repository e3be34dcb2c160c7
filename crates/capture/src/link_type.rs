//! Link types: which header captured packets begin with.

/// A link type number from tcpdump's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: four bytes of address family.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP, with or without address and control bytes.
    pub const PPP: LinkType = LinkType(9);
    /// FDDI.
    pub const FDDI: LinkType = LinkType(10);
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// Classical IP over ATM (RFC 1483).
    pub const ATM_RFC1483: LinkType = LinkType(100);
    /// IPv4 or IPv6 with nothing before it.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// IEEE 802.11.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// OpenBSD loopback: NULL with the family most significant byte first.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" captures.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IEEE 802.11 behind a Prism header.
    pub const PRISM: LinkType = LinkType(119);
    /// IEEE 802.11 behind an Aironet header.
    pub const AIRONET: LinkType = LinkType(120);
    /// SunATM: a header, then ATM_RFC1483.
    pub const SUNATM: LinkType = LinkType(123);
    /// IEEE 802.11 behind a radiotap header.
    pub const IEEE802_11_RADIO: LinkType = LinkType(127);
    /// IPv4 with nothing before it.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 with nothing before it.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" captures, second version.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// The registered number for the same link type: some systems write raw IP as 12 or 14.
    pub(crate) fn canonical(self) -> LinkType {
        if matches!(self.0, 12 | 14) { LinkType::RAW } else { self }
    }
}
