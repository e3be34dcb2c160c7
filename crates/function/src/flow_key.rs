//! The key of a flow: the same for both directions.

use core::net::{Ipv4Addr, Ipv6Addr};

use packet::Packet;

/// Ethernet types (IEEE 802.1Q, and IANA's list).
const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// Most VLAN tags, and extension headers of IPv6, that are skipped.
const MAX_TAGS: usize = 2;
const MAX_EXTENSIONS: usize = 8;

/// Protocols with ports in their first four bytes: TCP, UDP, SCTP, DCCP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 132, 33, 136];

/// ICMP (RFC 792) and ICMPv6 (RFC 4443).
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Extension headers of IPv6 (RFC 8200): hop-by-hop options, routing, fragment, destination options.
const FRAGMENT: u8 = 44;
const EXTENSIONS: [u8; 4] = [0, 43, FRAGMENT, 60];

/// Bits of IPv4's fragment field: the offset, and that more follow (RFC 791).
const FRAGMENT_BITS: u16 = 0x3fff;

/// The most bytes of a packet in an ICMP error that are read, as by the switch.
const QUOTED: usize = 96;

/// The addresses, the ports and the protocol of a flow. Both directions have the same key: the end with the lower address
/// and port is the first. Fragments have no ports, so all of a datagram belong to one flow. ICMP echo messages have their
/// identifier as both ports. An ICMP error belongs to the flow of the packet that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The ends: IPv4 addresses are mapped into IPv6.
    pub ends: [(Ipv6Addr, u16); 2],
    /// The IP protocol.
    pub protocol: u8,
}

impl FlowKey {
    /// The flow of an Ethernet frame. `None` if it carries no IP packet, or a damaged one.
    pub fn of(packet: &Packet) -> Option<FlowKey> {
        FlowKey::of_frame(packet.data())
    }

    /// The flow of the bytes of an Ethernet frame.
    pub fn of_frame(frame: &[u8]) -> Option<FlowKey> {
        let mut rest = frame.get(12..)?;
        for _ in 0..MAX_TAGS {
            if !VLAN.contains(rest.first_chunk()?) {
                break;
            }
            rest = rest.get(4..)?;
        }
        let (kind, packet) = rest.split_first_chunk()?;
        match *kind {
            IPV4 => flow(packet, ipv4),
            IPV6 => flow(packet, ipv6),
            _ => None,
        }
    }

    /// The key as a table has it.
    pub(crate) fn words(&self) -> [u128; 3] {
        let [(first, port), (second, other)] = self.ends;
        let rest = u128::from(port) << 32 | u128::from(other) << 16 | u128::from(self.protocol);
        [first.to_bits(), second.to_bits(), rest]
    }

    /// The key with these words.
    pub(crate) fn from_words([first, second, rest]: [u128; 3]) -> FlowKey {
        let ends = [(first, (rest >> 32) as u16), (second, (rest >> 16) as u16)];
        FlowKey {
            ends: ends.map(|(address, port)| (Ipv6Addr::from_bits(address), port)),
            protocol: rest as u8,
        }
    }
}

/// An IP packet.
struct IpPacket<'a> {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    /// From the transport header on; `None` in fragments.
    segment: Option<&'a [u8]>,
}

impl IpPacket<'_> {
    fn key(&self) -> FlowKey {
        let port = |at: usize| {
            let bytes = self.segment?.get(at..)?.first_chunk()?;
            Some(u16::from_be_bytes(*bytes))
        };
        let kind = self.segment.and_then(|segment| segment.first().copied());
        let places = match (self.protocol, kind) {
            (ICMP, Some(0 | 8)) | (ICMP6, Some(128 | 129)) => Some([4, 4]),
            _ => WITH_PORTS.contains(&self.protocol).then_some([0, 2]),
        };
        let ports = places.map_or([0, 0], |places| places.map(|at| port(at).unwrap_or(0)));
        let mut ends = [(self.source, ports[0]), (self.destination, ports[1])];
        ends.sort_unstable();
        FlowKey { ends, protocol: self.protocol }
    }

    /// What is there of the packet that an ICMP error is about.
    fn quoted(&self) -> Option<&[u8]> {
        let (header, quoted) = self.segment?.split_first_chunk::<8>()?;
        let is_error = matches!((self.protocol, header[0]), (ICMP, 3 | 4 | 5 | 11 | 12) | (ICMP6, 1..=4));
        is_error.then(|| quoted.get(..QUOTED).unwrap_or(quoted))
    }
}

fn flow(packet: &[u8], read: fn(&[u8]) -> Option<IpPacket>) -> Option<FlowKey> {
    let packet = read(packet)?;
    let quoted = packet.quoted().and_then(read).map(|quoted| quoted.key());
    Some(quoted.unwrap_or_else(|| packet.key()))
}

fn ipv4(packet: &[u8]) -> Option<IpPacket<'_>> {
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return None;
    }
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_BITS == 0;
    let address = |at: usize| {
        let bytes: [u8; 4] = header.get(at..)?.first_chunk().copied()?;
        Some(Ipv4Addr::from(bytes).to_ipv6_mapped())
    };
    let segment = Some(packet.get(length..)?).filter(|_| is_whole);
    Some(IpPacket { source: address(12)?, destination: address(16)?, protocol: header[9], segment })
}

fn ipv6(packet: &[u8]) -> Option<IpPacket<'_>> {
    let header = packet.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = header.get(at..)?.first_chunk().copied()?;
        Some(Ipv6Addr::from(bytes))
    };
    let (mut protocol, mut rest, mut is_whole) = (header[6], packet.get(40..)?, true);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&protocol) {
            break;
        }
        let [next, words, ..] = *rest.first_chunk::<8>()?;
        is_whole &= protocol != FRAGMENT;
        let length = if protocol == FRAGMENT { 8 } else { 8 * (usize::from(words) + 1) };
        (protocol, rest) = (next, rest.get(length..)?);
    }
    let segment = Some(rest).filter(|_| is_whole);
    Some(IpPacket { source: address(8)?, destination: address(24)?, protocol, segment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn ipv4(source: [u8; 4], destination: [u8; 4], fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut frame = [&[0; 12][..], &IPV4, &[0x45, 0, 0, 28, 0, 0]].concat();
        frame.extend(fragment.to_be_bytes());
        frame.extend([64, 17, 0, 0]);
        frame.extend(source.into_iter().chain(destination));
        frame.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        frame.extend([0; 4]);
        frame
    }

    #[test]
    fn both_directions_are_one_flow() {
        let (one, other) = ([10, 0, 0, 1], [192, 0, 2, 9]);
        let there = ipv4(one, other, 0x4000, [5000, 53]);
        let back = ipv4(other, one, 0, [53, 5000]);
        let key = FlowKey::of_frame(&there).unwrap();
        assert_eq!(FlowKey::of_frame(&back), Some(key));
        assert_eq!(
            key.ends,
            [(Ipv4Addr::from(one), 5000), (Ipv4Addr::from(other), 53)]
                .map(|(ip, port)| (ip.to_ipv6_mapped(), port))
        );
        assert_ne!(FlowKey::of_frame(&ipv4(one, other, 0, [5001, 53])), Some(key));
        // A VLAN tag makes no difference.
        let tagged = [&there[..12], &VLAN[0], &[0, 7], &there[12..]].concat();
        assert_eq!(FlowKey::of_frame(&tagged), Some(key));
        // Fragments of a datagram are one flow, whatever their bytes say.
        let first = FlowKey::of_frame(&ipv4(one, other, 0x2000, [5000, 53])).unwrap();
        assert_eq!(FlowKey::of_frame(&ipv4(one, other, 0x0001, [9, 9])), Some(first));
        assert_eq!(first.ends.map(|(_, port)| port), [0, 0]);
    }

    #[test]
    fn echo_messages_of_one_identifier_are_a_flow() {
        let echo = |kind: u8, identifier: [u8; 2]| {
            let mut frame = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 0, [u16::from(kind) << 8, 0]);
            frame[23] = ICMP;
            frame[38..40].copy_from_slice(&identifier);
            FlowKey::of_frame(&frame).unwrap()
        };
        assert_eq!(echo(8, [1, 5]).ends.map(|(_, port)| port), [0x105; 2]);
        assert_eq!((echo(8, [1, 5]), echo(3, [1, 5]).ends[0].1), (echo(0, [1, 5]), 0));
        assert_ne!(echo(8, [1, 5]), echo(8, [1, 6]));
    }

    #[test]
    fn an_error_belongs_to_the_flow_of_the_packet_that_it_quotes() {
        let there = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 0, [5000, 53]);
        let error = |kind: u8, quoted: &[u8]| {
            let mut frame = ipv4([10, 0, 0, 9], [10, 0, 0, 1], 0, [u16::from(kind) << 8, 0]);
            frame[23] = ICMP;
            frame.extend_from_slice(quoted);
            FlowKey::of_frame(&frame).unwrap()
        };
        for kind in 0..=u8::MAX {
            let is_error = matches!(kind, 3 | 4 | 5 | 11 | 12);
            assert_eq!(FlowKey::of_frame(&there) == Some(error(kind, &there[14..])), is_error, "{kind}");
        }
        // One that quotes less than a header is a message like others.
        let own = error(3, &there[14..33]);
        assert_eq!((own.protocol, own.ends.map(|(_, port)| port)), (ICMP, [0, 0]));
    }

    #[test]
    fn extension_headers_are_skipped() {
        let frame = |next: u8, extensions: &[u8]| {
            let mut frame =
                [&[0; 12][..], &IPV6, &[0x60, 0, 0, 0, 0, 32, next, 64], &[1; 16], &[2; 16]].concat();
            frame.extend_from_slice(extensions);
            frame.extend([0x13, 0x88, 0, 53]);
            frame
        };
        let plain = FlowKey::of_frame(&frame(17, &[])).unwrap();
        assert_eq!((plain.protocol, plain.ends.map(|(_, port)| port)), (17, [5000, 53]));
        let options = [60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(FlowKey::of_frame(&frame(0, &options)), Some(plain));
        let fragment = FlowKey::of_frame(&frame(44, &[17, 0, 0, 1, 0, 0, 0, 7])).unwrap();
        assert_eq!((fragment.protocol, fragment.ends.map(|(_, port)| port)), (17, [0, 0]));
    }

    /// What is cut off anywhere, and what is no IP, has no flow or one without ports, and never a panic.
    #[test]
    fn damaged_frames_are_harmless() {
        let whole = ipv4([1; 4], [2; 4], 0, [1, 2]);
        for length in 0..whole.len() {
            let key = FlowKey::of_frame(&whole[..length]);
            assert_eq!(key.is_some(), length >= 34, "{length}");
        }
        for byte in 0..whole.len() {
            for value in [0, 0x40, 0x60, 0x4f, 0xff] {
                let mut frame = whole.clone();
                frame[byte] = value;
                let _ = FlowKey::of_frame(&frame);
            }
        }
        let arp = [&[0; 12][..], &[0x08, 0x06], &[0; 28]].concat();
        assert_eq!(FlowKey::of_frame(&arp), None);
        let endless = [&[0; 12][..], &IPV6, &[0x60, 0, 0, 0, 0, 32, 0, 64], &[0; 2000]].concat();
        assert_eq!(FlowKey::of_frame(&endless).map(|key| key.protocol), Some(0));
    }
}
