//! Where the headers of a frame are.

use packet::protocol;

use crate::extension_headers;
use crate::extract::{MAX_VLAN_TAGS, PBB_HEADER, snap};

/// Offsets of headers. All of them are within the frame, and even, so that checksums cover whole words of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    /// Whether there is a VLAN tag; it starts at byte 12.
    pub(crate) has_vlan: bool,
    /// Where the Ethernet type of the payload stands.
    pub(crate) type_at: usize,
    /// The header of the payload.
    pub(crate) network: usize,
    /// What is known of the payload.
    pub(crate) payload: Payload,
}

/// The header after the Ethernet header and its tags.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    /// IPv4 or IPv6.
    Ip(Ip),
    /// MPLS, with a whole header.
    Mpls,
    /// Provider backbone bridging: a service tag, and an Ethernet header after it.
    Pbb,
    /// ARP of IPv4 over Ethernet.
    Arp,
    /// Anything else, or cut off.
    Other,
}

/// An IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    pub(crate) is_ip4: bool,
    pub(crate) protocol: u8,
    /// Where the protocol stands, in the header or in the last extension header.
    pub(crate) protocol_at: usize,
    /// Start and end of the transport header and its data; `None` in later fragments.
    pub(crate) transport: Option<(usize, usize)>,
    pub(crate) is_fragment: bool,
    /// Whether a routing header names further destinations, so that checksums cover the last of them instead.
    pub(crate) is_routed: bool,
}

/// Finds the headers of a frame; `None` if it has no Ethernet header.
pub(crate) fn locate(frame: &[u8]) -> Option<Located> {
    let word = |at: usize| frame.get(at..)?.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes));
    let (mut type_at, mut tags) = (12, 0);
    let mut eth_type = word(type_at)?;
    while matches!(eth_type, 0x8100 | 0x88a8 | 0x9100)
        && tags < MAX_VLAN_TAGS
        && let Some(inner) = word(type_at + 4)
    {
        (eth_type, type_at, tags) = (inner, type_at + 4, tags + 1);
    }
    let has_vlan = tags > 0;
    let mut network = type_at + 2;
    if eth_type < 0x0600 {
        let llc = frame.get(network..)?;
        let (inner, payload) = snap(llc);
        network += llc.len() - payload.len();
        eth_type = inner;
        if !payload.is_empty() && payload.len() != llc.len() {
            type_at = network - 2;
        }
    }
    let rest = frame.get(network..)?;
    let payload = match eth_type {
        0x0800 => ip4(rest, network),
        0x86dd => ip6(rest, network),
        0x0806 if rest.len() >= 28 && rest[..6] == [0, 1, 8, 0, 6, 4] => Some(Payload::Arp),
        0x8847 | 0x8848 if rest.len() >= 4 => Some(Payload::Mpls),
        0x88e7 if rest.len() >= PBB_HEADER => Some(Payload::Pbb),
        _ => None,
    };
    Some(Located { has_vlan, type_at, network, payload: payload.unwrap_or(Payload::Other) })
}

fn ip4(packet: &[u8], start: usize) -> Option<Payload> {
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || length < 20 || packet.len() < length {
        return None;
    }
    let end = usize::from(u16::from_be_bytes([header[2], header[3]])).min(packet.len());
    let place = u16::from_be_bytes([header[6], header[7]]);
    let transport = (place & 0x1fff == 0 && end >= length).then_some((start + length, start + end));
    let is_fragment = place & 0x3fff != 0;
    Some(Payload::Ip(Ip {
        is_ip4: true,
        protocol: header[9],
        protocol_at: start + 9,
        transport,
        is_fragment,
        is_routed: false,
    }))
}

fn ip6(packet: &[u8], start: usize) -> Option<Payload> {
    let header = packet.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let end = (40 + usize::from(u16::from_be_bytes([header[4], header[5]]))).min(packet.len());
    let chain = packet.get(40..end)?;
    let found = extension_headers::walk(header[6], chain);
    let transport = found.payload.map(|payload| (start + end - payload.len(), start + end));
    Some(Payload::Ip(Ip {
        is_ip4: false,
        protocol: found.protocol,
        protocol_at: start + found.named_at.map_or(6, |at| 40 + at),
        transport,
        is_fragment: found.fragment.is_some(),
        is_routed: found.seen & extension_headers::ROUTER != 0,
    }))
}

impl Ip {
    /// Where the checksum of the transport header stands, and whether zero means that there is none.
    pub(crate) fn checksum(&self) -> Option<(usize, bool)> {
        let (start, end) = self.transport?;
        let (offset, is_optional) = match self.protocol {
            protocol::TCP => (16, false),
            protocol::UDP => (6, true),
            protocol::ICMP if self.is_ip4 => (2, false),
            protocol::ICMP6 if !self.is_ip4 => (2, false),
            _ => return None,
        };
        (start + offset + 2 <= end).then_some((start + offset, is_optional))
    }

    /// Whether that checksum covers the addresses of the IP header.
    pub(crate) fn has_pseudo_header(&self) -> bool {
        self.protocol != protocol::ICMP
    }
}
