//! Link types: their names in the language, and the position of the IP header after a link header.

use alloc::format;
use alloc::string::String;
use capture::LinkType;

/// The names of link types in arguments and handlers. Of several names for a type, the first is printed.
const NAMES: &[(&str, LinkType)] = &[
    ("NULL", LinkType::NULL),
    ("IP", LinkType::RAW),
    ("ETHER", LinkType::ETHERNET),
    ("FDDI", LinkType::FDDI),
    ("ATM", LinkType::ATM_RFC1483),
    ("RFC1483", LinkType::ATM_RFC1483),
    ("ATM_RFC1483", LinkType::ATM_RFC1483),
    ("802_11", LinkType::IEEE802_11),
    ("802.11", LinkType::IEEE802_11),
    ("802_11_RADIO", LinkType::IEEE802_11_RADIO),
    ("802.11_RADIO", LinkType::IEEE802_11_RADIO),
    ("SLL", LinkType::LINUX_SLL),
    ("AIRONET", LinkType::AIRONET),
    ("HDLC", LinkType::C_HDLC),
    ("PPP_HDLC", LinkType::PPP_HDLC),
    ("PPP", LinkType::PPP),
    ("SUNATM", LinkType::SUNATM),
    ("PRISM", LinkType::PRISM),
];

/// The link types that can carry IP.
const CAN_HOLD_IP: &[LinkType] = &[
    LinkType::NULL,
    LinkType::ETHERNET,
    LinkType::PPP,
    LinkType::FDDI,
    LinkType::PPP_HDLC,
    LinkType::ATM_RFC1483,
    LinkType::RAW,
    LinkType::C_HDLC,
    LinkType::IEEE802_11,
    LinkType::LOOP,
    LinkType::LINUX_SLL,
    LinkType::PRISM,
    LinkType::SUNATM,
    LinkType::IEEE802_11_RADIO,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::LINUX_SLL2,
];

/// Parses a name, or a number such as `#101`.
pub(crate) fn parse(text: &str) -> Option<LinkType> {
    if let Some((_, link)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Some(*link);
    }
    let number: u32 = text.strip_prefix('#')?.parse().ok()?;
    (number < 0x7fff_ffff).then_some(LinkType(number))
}

/// The name, or the number such as `#101`.
pub(crate) fn name(link: LinkType) -> String {
    match NAMES.iter().find(|(_, known)| *known == link) {
        Some((name, _)) => String::from(*name),
        None => format!("#{}", link.0),
    }
}

/// Whether packets of this link type can carry IP.
pub(crate) fn can_hold_ip(link: LinkType) -> bool {
    CAN_HOLD_IP.contains(&link)
}

/// Finds a valid IPv4 or IPv6 header. Returns its offset and length in bytes.
pub(crate) fn ip_header(link: LinkType, bytes: &[u8]) -> Option<(usize, usize)> {
    let offset = network_offset(link, bytes)?;
    let network = bytes.get(offset..)?;
    let first = *network.first()?;
    let length = match first >> 4 {
        4 if first & 0xf >= 5 => usize::from(first & 0xf) * 4,
        6 => 40,
        _ => return None,
    };
    (network.len() >= length).then_some((offset, length))
}

/// Offset of the network header, if the link header says that it is IP.
fn network_offset(link: LinkType, bytes: &[u8]) -> Option<usize> {
    let header = Header { bytes, offset: 0 };
    match link {
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Some(0),
        LinkType::ETHERNET => header.ethernet(),
        LinkType::FDDI => header.fddi(),
        LinkType::SUNATM => header.skip(4).rfc1483(),
        LinkType::ATM_RFC1483 => header.rfc1483(),
        LinkType::LINUX_SLL => header.typed(14),
        LinkType::LINUX_SLL2 => header.typed(0).map(|_| 20),
        LinkType::C_HDLC => header.typed(2),
        LinkType::PPP_HDLC => header.ppp_hdlc(),
        LinkType::PPP => header.ppp(),
        LinkType::PRISM => header.skip(144).ieee802_11(),
        LinkType::IEEE802_11 => header.ieee802_11(),
        LinkType::IEEE802_11_RADIO => {
            let length = usize::from(u16::from_le_bytes(header.pair(2)?));
            if length < 8 { None } else { header.skip(length).ieee802_11() }
        }
        LinkType::NULL | LinkType::LOOP => header.family(),
        _ => None,
    }
}

/// The PPP protocol numbers for IP.
const PPP_IP: u8 = 0x21;
const PPP_IP6: u8 = 0x57;
/// The LLC service access points for IP and for a following SNAP header.
const LLC_IP: u8 = 0x06;
const LLC_SNAP: u8 = 0xaa;

/// A header in a packet.
#[derive(Clone, Copy)]
struct Header<'a> {
    bytes: &'a [u8],
    /// Its offset in the packet.
    offset: usize,
}

impl Header<'_> {
    fn skip(self, count: usize) -> Self {
        Header { offset: self.offset.saturating_add(count), ..self }
    }

    fn pair(self, at: usize) -> Option<[u8; 2]> {
        self.bytes.get(self.offset.checked_add(at)?..)?.first_chunk().copied()
    }

    fn byte(self, at: usize) -> Option<u8> {
        self.bytes.get(self.offset.checked_add(at)?).copied()
    }

    /// The network header after an EtherType at `offset`, if the type is IP.
    fn typed(self, offset: usize) -> Option<usize> {
        matches!(self.pair(offset)?, [0x08, 0x00] | [0x86, 0xdd]).then_some(self.offset + offset + 2)
    }

    /// Ethernet, with up to two VLAN tags.
    fn ethernet(self) -> Option<usize> {
        let mut offset = 12;
        for _ in 0..2 {
            if matches!(self.pair(offset)?, [0x81, 0x00] | [0x88, 0xa8]) {
                offset += 4;
            }
        }
        self.typed(offset)
    }

    fn fddi(self) -> Option<usize> {
        // The upper bits of the frame control mean asynchronous LLC; two addresses follow.
        if self.byte(0)? & 0xf0 != 0x50 { None } else { self.skip(13).rfc1483() }
    }

    /// LLC and SNAP headers.
    fn rfc1483(self) -> Option<usize> {
        let llc = (self.byte(0)?, self.byte(1)?);
        if llc == (LLC_IP, LLC_IP) {
            self.byte(3)?;
            return Some(self.offset + 4);
        }
        if llc != (LLC_SNAP, LLC_SNAP) {
            return None;
        }
        let organisation = (self.byte(3)?, self.pair(4)?);
        match (organisation, self.pair(6)?) {
            // Encapsulated Ethernet and Cisco bridging: of the Ethernet header only the type is present.
            ((0, [0, 0] | [0, 0xf8]), [0x81, 0x00]) => self.typed(10),
            ((0, [0, 0] | [0, 0xf8]), _) => self.typed(6),
            // Bridged frames (RFC 2684), with and without a frame check sequence.
            ((0, [0x80, 0xc2]), [0, 1 | 7]) => self.skip(8).ethernet(),
            ((0, [0x80, 0xc2]), [0, 4 | 10]) => self.skip(9).fddi(),
            _ => None,
        }
    }

    fn ppp(self) -> Option<usize> {
        let header = if self.pair(0)? == [0xff, 0x03] { self.skip(2) } else { self };
        match header.pair(0)? {
            [PPP_IP | PPP_IP6, _] => Some(header.offset + 1),
            [0, PPP_IP | PPP_IP6] => Some(header.offset + 2),
            _ => None,
        }
    }

    fn ppp_hdlc(self) -> Option<usize> {
        let protocol = self.pair(2)?;
        match self.byte(0)? {
            0xff if matches!(protocol, [0, PPP_IP | PPP_IP6]) => Some(self.offset + 4),
            // Cisco HDLC unicast and broadcast.
            0x0f | 0x8f => self.typed(2),
            _ => None,
        }
    }

    fn ieee802_11(self) -> Option<usize> {
        self.byte(23)?;
        // Data frames only. Frames between two access points have a fourth address.
        if self.byte(0)? & 0x0c != 0x08 {
            return None;
        }
        let bridged = self.byte(1)? & 0x03 == 0x03;
        self.skip(if bridged { 30 } else { 24 }).rfc1483()
    }

    /// An address family in either byte order: AF_INET, or AF_INET6 as numbered by the BSDs.
    fn family(self) -> Option<usize> {
        let low = u16::from_le_bytes(self.pair(0)?);
        let family = if low == 0 { u16::from_be_bytes(self.pair(2)?) } else { low };
        matches!(family, 2 | 24 | 28 | 30).then_some(self.offset + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn names() {
        for (text, link) in NAMES {
            assert_eq!(parse(text), Some(*link));
            assert_eq!(parse(&name(*link)), Some(*link));
        }
        assert_eq!(parse("#228"), Some(LinkType::IPV4));
        assert_eq!(name(LinkType(228)), "#228");
        for text in ["", "#", "ether", "#2147483647", "#-1", "228"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    fn find(link: LinkType, header: &[u8]) -> Option<(usize, usize)> {
        let mut bytes = header.to_vec();
        bytes.extend([0x46; 24]);
        let found = ip_header(link, &bytes);
        for length in 0..bytes.len() {
            assert_eq!(ip_header(link, &bytes[..length]), None, "{link:?} cut to {length}");
        }
        found
    }

    #[test]
    fn finds_ip() {
        let found = |length: usize| Some((length, 24));
        let after = |length: usize, last: &[u8]| [&vec![0; length][..], last].concat();
        assert_eq!(find(LinkType::RAW, &[]), found(0));
        assert_eq!(find(LinkType::ETHERNET, &after(12, &[8, 0])), found(14));
        assert_eq!(find(LinkType::ETHERNET, &after(12, &[0x81, 0, 0, 1, 8, 0])), found(18));
        assert_eq!(find(LinkType::ETHERNET, &after(12, &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 1, 8, 0])), found(22));
        assert_eq!(find(LinkType::ETHERNET, &after(12, &[8, 6])), None);
        assert_eq!(find(LinkType::LINUX_SLL, &after(14, &[8, 0])), found(16));
        assert_eq!(find(LinkType::LINUX_SLL2, &[&[8, 0][..], &[0; 18]].concat()), found(20));
        assert_eq!(find(LinkType::NULL, &[2, 0, 0, 0]), found(4));
        assert_eq!(find(LinkType::NULL, &[0, 0, 0, 30]), found(4));
        assert_eq!(find(LinkType::NULL, &[7, 0, 0, 0]), None);
        assert_eq!(find(LinkType::PPP, &[0xff, 3, 0, 0x21]), found(4));
        assert_eq!(find(LinkType::PPP, &[0x57]), found(1));
        assert_eq!(find(LinkType::PPP_HDLC, &[0xff, 3, 0, 0x21]), found(4));
        assert_eq!(find(LinkType::PPP_HDLC, &[0x0f, 0, 8, 0]), found(4));
        assert_eq!(find(LinkType::C_HDLC, &[0x0f, 0, 8, 0]), found(4));
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        assert_eq!(find(LinkType::ATM_RFC1483, &snap), found(8));
        assert_eq!(find(LinkType::ATM_RFC1483, &[6, 6, 3, 0]), found(4));
        assert_eq!(find(LinkType::SUNATM, &after(4, &snap)), found(12));
        assert_eq!(find(LinkType::FDDI, &[&[0x50][..], &[0; 12], &snap].concat()), found(21));
        assert_eq!(find(LinkType::IEEE802_11, &[&[8][..], &[0; 23], &snap].concat()), found(32));
        assert_eq!(find(LinkType::IEEE802_11, &[&[8, 3][..], &[0; 28], &snap].concat()), found(38));
        let radio: Vec<u8> = [&[0, 0, 9, 0, 0, 0, 0, 0, 0][..], &[8], &[0; 23], &snap].concat();
        assert_eq!(find(LinkType::IEEE802_11_RADIO, &radio), found(41));
        assert_eq!(find(LinkType(4711), &[]), None);
    }

    #[test]
    fn invalid_headers_are_not_ip() {
        assert_eq!(ip_header(LinkType::RAW, &[0x44; 60]), None);
        assert_eq!(ip_header(LinkType::RAW, &[0x50; 60]), None);
        assert_eq!(ip_header(LinkType::RAW, &[0x60; 40]), Some((0, 40)));
        assert_eq!(ip_header(LinkType::RAW, &[0x60; 39]), None);
    }
}
