//! Reads the match fields of a frame.
//!
//! Every read is checked against the end of the frame and against the lengths that the headers state. A header that is
//! cut off or malformed leaves its fields absent; the fields before it stay.

use packet::protocol;

use crate::extension_headers::{self, UpperLayer};
use crate::key::Key;
use crate::layout::{
    FRAGMENT, LATER_FRAGMENT, ND_SLL_PRESENT, ND_TARGET_PRESENT, ND_TLL_PRESENT, NETWORK_PRESENT,
    TRANSPORT_PRESENT, VLAN_PRESENT,
};

/// VLAN tags that are skipped to find the Ethernet type. More make a frame of an unknown type. Providers nest two.
pub(crate) const MAX_VLAN_TAGS: usize = 4;

/// Options of a neighbour message that are searched for a link-layer address.
const MAX_ND_OPTIONS: usize = 8;

/// The Ethernet type of frames of IEEE 802.3 without SNAP header (OpenFlow 1.3.5, 7.2.3).
const NO_ETHERNET_TYPE: u16 = 0x05ff;

/// The match fields that are not in the frame (OpenFlow 1.3.5, 7.2.3, pipeline match fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ingress {
    /// The port that the frame arrived on.
    pub port: u32,
    /// The metadata before the first table.
    pub metadata: u64,
    /// The tunnel that the frame arrived through.
    pub tunnel: u64,
}

/// A packet to look up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// Its match fields.
    pub key: Key,
    /// Its length in bytes, for the counters.
    pub length: u32,
}

/// The part of an IP fragment's identity that its key lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The identification: 16 bits in IPv4, 32 bits in IPv6.
    pub identification: u32,
}

impl Key {
    /// The match fields of an Ethernet frame, as [`Key::read`] reads them.
    #[must_use]
    #[inline]
    pub fn extract(frame: &[u8], ingress: &Ingress) -> (Self, Option<Fragment>) {
        let mut key = Self::default();
        let fragment = key.read(frame, ingress);
        (key, fragment)
    }

    /// Replaces the key by the match fields of an Ethernet frame.
    ///
    /// Of a fragment, returns what [`crate::Fragments`] needs to find the ports of the packet.
    #[inline]
    pub fn read(&mut self, frame: &[u8], ingress: &Ingress) -> Option<Fragment> {
        *self = Self::default();
        let words = &mut self.words;
        words[0] = u64::from(ingress.port) << 32;
        words[8] = ingress.metadata;
        words[9] = ingress.tunnel;
        let (header, mut rest) = frame.split_first_chunk::<14>()?;
        let first = be64(header, 0);
        let second = be64(header, 6);
        words[1] = first & !0xffff;
        words[2] = second & !0xffff;
        let mut eth_type = second as u16;
        let mut tags = 0;
        while is_vlan_tag(eth_type) && tags < MAX_VLAN_TAGS {
            let Some((tag, inside)) = rest.split_first_chunk::<4>() else { break };
            if tags == 0 {
                let tci = u64::from(u16::from_be_bytes([tag[0], tag[1]]));
                words[0] |= tci & 0xefff | VLAN_PRESENT;
            }
            eth_type = u16::from_be_bytes([tag[2], tag[3]]);
            rest = inside;
            tags += 1;
        }
        if eth_type < 0x0600 {
            (eth_type, rest) = snap(rest);
        }
        words[0] |= u64::from(eth_type) << 16;
        match eth_type {
            0x0800 => return self.read_ip4(rest),
            0x86dd => return self.read_ip6(rest),
            0x0806 => self.read_arp(rest),
            0x8847 | 0x8848 => self.read_mpls(rest),
            0x88e7 => self.read_pbb(rest),
            _ => {}
        }
        None
    }

    /// Whether match fields, or the packet that an ICMP error quotes, may lie beyond these first bytes of a frame. If not,
    /// [`Key::read`] and [`Key::flow_tuple`] give the same for them as for the whole frame.
    ///
    /// 64 bytes suffice for TCP, UDP and SCTP over IPv4 and IPv6 with a VLAN tag, and for ARP and MPLS.
    #[must_use]
    pub fn needs_more(head: &[u8]) -> bool {
        let Some((header, mut rest)) = head.split_first_chunk::<14>() else { return true };
        let mut eth_type = u16::from_be_bytes([header[12], header[13]]);
        for _ in 0..MAX_VLAN_TAGS {
            if !is_vlan_tag(eth_type) {
                break;
            }
            let Some(([_, _, high, low], inside)) = rest.split_first_chunk::<4>() else { return true };
            (eth_type, rest) = (u16::from_be_bytes([*high, *low]), inside);
        }
        if eth_type < 0x0600 {
            if rest.len() < 8 {
                return true;
            }
            (eth_type, rest) = snap(rest);
        }
        // The network header, and the first four bytes of the transport header.
        let needed = match eth_type {
            0x0800 => {
                let header = rest.first().map_or(20, |first| usize::from(first & 15) * 4).max(20);
                match (rest.get(9), rest.get(header)) {
                    (Some(&protocol::ICMP), Some(kind)) if is_error(true, *kind) => usize::MAX,
                    (Some(&protocol::ICMP), _) => header + 8,
                    _ => header + 4,
                }
            }
            0x86dd => match rest.get(6) {
                Some(&(protocol::TCP | protocol::UDP | protocol::SCTP)) => 44,
                // Behind extension headers or a neighbour message, it could be anywhere.
                _ => usize::MAX,
            },
            0x0806 => 28,
            0x8847 | 0x8848 => 4,
            0x88e7 => PBB_HEADER,
            _ => 0,
        };
        rest.len() < needed
    }

    #[inline(always)]
    fn read_ip4(&mut self, packet: &[u8]) -> Option<Fragment> {
        let header = packet.first_chunk::<20>()?;
        let header_length = usize::from(header[0] & 15) * 4;
        if header[0] >> 4 != 4 || header_length < 20 || packet.len() < header_length {
            return None;
        }
        let (protocol, tos) = (header[9], header[1]);
        self.words[1] |= u64::from(protocol) << 8 | u64::from(tos);
        self.words[2] |= NETWORK_PRESENT;
        self.words[4] = be64(header, 12);
        let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let payload = packet.get(header_length..total_length.min(packet.len())).unwrap_or_default();
        let place = u16::from_be_bytes([header[6], header[7]]);
        if place & 0x3fff == 0 {
            self.read_transport(protocol, payload);
            return None;
        }
        self.words[2] |= FRAGMENT;
        if place & 0x1fff != 0 {
            self.words[2] |= LATER_FRAGMENT;
        } else {
            self.read_transport(protocol, payload);
        }
        Some(Fragment { identification: u32::from(u16::from_be_bytes([header[4], header[5]])) })
    }

    fn read_ip6(&mut self, packet: &[u8]) -> Option<Fragment> {
        let (header, rest) = packet.split_first_chunk::<40>()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let first = be64(header, 0);
        let payload_length = (first >> 16 & 0xffff) as usize;
        let payload = &rest[..payload_length.min(rest.len())];
        for (word, at) in [(4, 8), (5, 16), (6, 24), (7, 32)] {
            self.words[word] = be64(header, at);
        }
        self.words[3] = first >> 32 & 0xf_ffff;
        let UpperLayer { protocol, payload, seen, fragment, .. } =
            extension_headers::walk(header[6], payload);
        self.words[1] |= u64::from(protocol) << 8 | first >> 52 & 0xff;
        self.words[2] |= NETWORK_PRESENT | u64::from(seen);
        if let Some(place) = fragment {
            self.words[2] |= if place.is_later { FRAGMENT | LATER_FRAGMENT } else { FRAGMENT };
        }
        if let Some(payload) = payload {
            self.read_transport(protocol, payload);
            if protocol == protocol::ICMP6 {
                self.read_neighbour(payload);
            }
        }
        fragment.map(|place| Fragment { identification: place.identification })
    }

    #[inline(always)]
    fn read_transport(&mut self, protocol: u8, payload: &[u8]) {
        use protocol::{ICMP, ICMP6, SCTP, TCP, UDP};
        match protocol {
            TCP | UDP | SCTP => {
                let Some(ports) = payload.first_chunk::<4>() else { return };
                self.words[3] |= u64::from(u32::from_be_bytes(*ports)) << 32;
            }
            ICMP | ICMP6 => {
                // ICMP belongs to IPv4 and ICMPv6 to IPv6 only.
                if (protocol == ICMP) != (self.eth_type() == 0x0800) {
                    return;
                }
                let Some([kind, code]) = payload.first_chunk::<2>() else { return };
                self.words[3] |= u64::from(*kind) << 48 | u64::from(*code) << 32;
            }
            _ => return,
        }
        self.words[2] |= TRANSPORT_PRESENT;
    }

    /// Reads a neighbour solicitation or advertisement (RFC 4861, 4.3 and 4.4).
    fn read_neighbour(&mut self, message: &[u8]) {
        let (kind, wanted) = match message.first() {
            Some(135) => (ND_SLL_PRESENT, 1),
            Some(136) => (ND_TLL_PRESENT, 2),
            _ => return,
        };
        let Some((header, mut options)) = message.split_first_chunk::<24>() else { return };
        self.words[10] = be64(header, 8);
        self.words[11] = be64(header, 16);
        self.words[2] |= ND_TARGET_PRESENT;
        for _ in 0..MAX_ND_OPTIONS {
            let Some(option) = options.first_chunk::<8>() else { return };
            if option[0] == wanted {
                let word = if kind == ND_SLL_PRESENT { 12 } else { 13 };
                self.words[word] = be64(option, 0) & 0xffff_ffff_ffff;
                self.words[2] |= kind;
                return;
            }
            let length = usize::from(option[1]) * 8;
            if length == 0 {
                return;
            }
            options = options.get(length..).unwrap_or_default();
        }
    }

    /// Reads an ARP packet of IPv4 over Ethernet (RFC 826).
    fn read_arp(&mut self, packet: &[u8]) {
        let Some(packet) = packet.first_chunk::<28>() else { return };
        if packet[..6] != [0, 1, 8, 0, 6, 4] {
            return;
        }
        self.words[3] = u64::from(u16::from_be_bytes([packet[6], packet[7]])) << 48;
        self.words[5] = be64(packet, 8) >> 16;
        self.words[6] = be64(packet, 18) >> 16;
        // The last two bytes of the sender's hardware address come first.
        let sender = be64(packet, 12) >> 16 & 0xffff_ffff;
        let target = be64(packet, 20) & 0xffff_ffff;
        self.words[4] = sender << 32 | target;
        self.words[2] |= NETWORK_PRESENT;
    }

    fn read_pbb(&mut self, packet: &[u8]) {
        let Some(header) = packet.first_chunk::<PBB_HEADER>() else { return };
        // All but priority and flags.
        self.words[3] = be64(header, 0) >> 32 & 0xff_ffff;
        self.words[2] |= NETWORK_PRESENT;
    }

    fn read_mpls(&mut self, packet: &[u8]) {
        let Some(header) = packet.first_chunk::<4>() else { return };
        // All but the time to live.
        self.words[3] = u64::from(u32::from_be_bytes(*header)) & 0xffff_ff00;
        self.words[2] |= NETWORK_PRESENT;
    }
}

/// Bytes of a service tag of provider backbone bridging, and of the Ethernet header after it.
pub(crate) const PBB_HEADER: usize = 18;

/// Whether an ICMP message of this type quotes a packet that it is about.
pub(crate) fn is_error(is_ip4: bool, kind: u8) -> bool {
    if is_ip4 { matches!(kind, 3 | 4 | 5 | 11 | 12) } else { matches!(kind, 1..=4) }
}

/// Whether an Ethernet type is that of a VLAN tag.
#[inline(always)]
fn is_vlan_tag(eth_type: u16) -> bool {
    matches!(eth_type, 0x8100 | 0x88a8 | 0x9100)
}

/// The Ethernet type and payload of an IEEE 802.3 frame, given the bytes after the length.
pub(crate) fn snap(llc: &[u8]) -> (u16, &[u8]) {
    match llc.split_first_chunk::<8>() {
        Some(([0xaa, 0xaa, 0x03, 0, 0, 0, high, low], payload)) => {
            let eth_type = u16::from_be_bytes([*high, *low]);
            if eth_type >= 0x0600 { (eth_type, payload) } else { (NO_ETHERNET_TYPE, llc) }
        }
        _ => (NO_ETHERNET_TYPE, llc),
    }
}

/// The eight bytes at `at`, which are within `bytes`; zero otherwise.
#[inline(always)]
fn be64<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
