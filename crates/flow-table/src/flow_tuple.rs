//! The flow that a packet belongs to: its hash, and both ends.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::protocol;

use crate::extract::{Ingress, is_error};
use crate::key::Key;
use crate::layout::{FRAGMENT, NETWORK_PRESENT, TRANSPORT_PRESENT};
use crate::locate::{Ip, Payload, locate};

/// Bytes of a packet in an ICMP error that are looked at: an IPv6 header and the ports after it, or an IPv4 header with options.
const QUOTED: usize = 96;

/// One end of a flow over IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowEnd {
    /// The address.
    pub address: u32,
    /// The port of TCP, UDP and SCTP; the identifier of an ICMP echo message, at both ends. Else 0, and in fragments of ICMP.
    pub port: u16,
}

/// The address is mapped into IPv6.
impl From<FlowEnd> for (Ipv6Addr, u16) {
    fn from(end: FlowEnd) -> Self {
        (Ipv4Addr::from_bits(end.address).to_ipv6_mapped(), end.port)
    }
}

/// The flow that a packet belongs to, and the packet's direction in it.
///
/// An ICMP error belongs to the flow of the packet that it quotes, in the reverse direction of that packet. ICMP echo messages of
/// one identifier are a flow. All other ICMP messages between two addresses are the flow with identifier 0. The hash follows
/// from protocol and ends: [`between`](Self::between) finds the flow by these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTuple {
    /// A hash that is the same for both directions.
    pub hash: u64,
    /// The protocol, as in the IP header.
    pub protocol: u8,
    /// Source and destination; `None` for packets that are not IPv4.
    pub ends: Option<[FlowEnd; 2]>,
}

impl FlowTuple {
    /// The flow of packets between two ends, as [`Key::flow_tuple`] finds it for these packets. It is one over IPv4 if both
    /// addresses are such, mapped into IPv6 (RFC 4291, section 2.5.5.2).
    #[must_use]
    pub fn between(protocol: u8, ends: [impl Into<(Ipv6Addr, u16)>; 2], seed: u64) -> Self {
        let [(source, source_port), (destination, destination_port)] = ends.map(Into::into);
        let mut frame = [0; 14 + 40 + 8];
        let (start, echo) = match [source, destination].map(|address| address.to_ipv4_mapped()) {
            [Some(source), Some(destination)] => {
                frame[12] = 8;
                (frame[14], frame[17], frame[23]) = (0x45, 28, protocol);
                frame[26..30].copy_from_slice(&source.octets());
                frame[30..34].copy_from_slice(&destination.octets());
                (34, (protocol == protocol::ICMP).then_some(8))
            }
            _ => {
                (frame[12], frame[13]) = (0x86, 0xdd);
                (frame[14], frame[19], frame[20]) = (0x60, 8, protocol);
                frame[22..38].copy_from_slice(&source.octets());
                frame[38..54].copy_from_slice(&destination.octets());
                (54, (protocol == protocol::ICMP6).then_some(128))
            }
        };
        let transport = &mut frame[start..start + 8];
        if let Some(echo) = echo {
            transport[0] = echo;
            transport[4..6].copy_from_slice(&source_port.to_be_bytes());
        } else {
            transport[..2].copy_from_slice(&source_port.to_be_bytes());
            transport[2..4].copy_from_slice(&destination_port.to_be_bytes());
        }
        let frame = &frame[..start + 8];
        Key::extract(frame, &Ingress::default()).0.flow_tuple(frame, seed)
    }
}

/// Both ends of a flow in words of 32 bits, for hashes that programs of classic BPF can compute.
///
/// An ICMP error has the ends of the packet that it quotes. Fragments have no ports, because only the first one holds them.
/// Packets that are not IP have the ends of their Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowWords {
    addresses: [[u32; 4]; 2],
    /// Words of an address.
    length: usize,
    ports: [u16; 2],
}

impl FlowWords {
    /// For each end, the words of its address, and its port as in [`FlowEnd`].
    #[inline]
    pub fn ends(&self) -> impl Iterator<Item = (&[u32], u16)> {
        let addresses = self.addresses.iter().map(|words| words.get(..self.length).unwrap_or_default());
        addresses.zip(self.ports)
    }
}

/// What an ICMP message is about.
#[derive(Debug)]
struct Subject {
    /// The match fields of the packet that an error quotes, with its addresses.
    quoted: Option<Key>,
    /// The identifier of an echo message.
    identifier: Option<u16>,
}

impl Subject {
    fn read(frame: &[u8]) -> Option<Self> {
        let Payload::Ip(Ip { is_ip4, protocol, transport, is_fragment: false, .. }) = locate(frame)?.payload
        else {
            return None;
        };
        let (start, end) = transport?;
        let (header, quoted) = frame.get(start..end)?.split_first_chunk::<8>()?;
        if !is_error(is_ip4, header[0]) {
            return Some(Self { quoted: None, identifier: identifier(is_ip4, header) });
        }
        let mut inner = [0; 14 + QUOTED];
        inner[12..14].copy_from_slice(if is_ip4 { &[8, 0] } else { &[0x86, 0xdd] });
        let length = quoted.len().min(QUOTED);
        inner.get_mut(14..14 + length)?.copy_from_slice(quoted.get(..length)?);
        let inner = inner.get(..14 + length)?;
        let key = Key::extract(inner, &Ingress::default()).0;
        if key.presence() & NETWORK_PRESENT == 0 {
            return None;
        }
        let identifier = match locate(inner)?.payload {
            Payload::Ip(Ip {
                protocol: inner_protocol,
                transport: Some((start, end)),
                is_fragment: false,
                ..
            }) if inner_protocol == protocol => {
                let header = inner.get(start..end).and_then(|rest| rest.first_chunk::<8>());
                header.and_then(|header| identifier(is_ip4, header))
            }
            _ => None,
        };
        Some(Self { quoted: Some(key), identifier })
    }
}

/// The identifier of an ICMP echo message.
fn identifier(is_ip4: bool, header: &[u8; 8]) -> Option<u16> {
    let is_echo = if is_ip4 { matches!(header[0], 0 | 8) } else { matches!(header[0], 128 | 129) };
    is_echo.then(|| u16::from_be_bytes([header[4], header[5]]))
}

impl Key {
    /// The flow of the packet with these match fields, whose headers are in `frame`.
    #[must_use]
    #[inline]
    pub fn flow_tuple(&self, frame: &[u8], seed: u64) -> FlowTuple {
        if self.tells_flow() { self.plain_tuple(seed) } else { self.icmp_tuple(frame, seed) }
    }

    /// Whether all packets with these match fields belong to one flow. Which one an ICMP message belongs to depends on its body.
    #[must_use]
    #[inline]
    pub fn tells_flow(&self) -> bool {
        !matches!((self.eth_type(), self.protocol()), (0x0800, protocol::ICMP) | (0x86dd, protocol::ICMP6))
    }

    #[inline]
    fn plain_tuple(&self, seed: u64) -> FlowTuple {
        let (words, presence) = (&self.words, self.presence());
        let ends = (self.eth_type() == 0x0800 && presence & NETWORK_PRESENT != 0).then(|| {
            let has_ports = matches!(self.protocol(), protocol::TCP | protocol::UDP | protocol::SCTP)
                && presence & TRANSPORT_PRESENT != 0;
            let ports = if has_ports { words[3] >> 32 } else { 0 };
            let end = |address: u64, port: u64| FlowEnd { address: address as u32, port: port as u16 };
            [end(words[4] >> 32, ports >> 16), end(words[4], ports)]
        });
        FlowTuple { hash: self.flow_hash(seed), protocol: self.protocol(), ends }
    }

    /// Both ends of the flow of the packet with these match fields, whose headers are in `frame`.
    #[must_use]
    #[inline]
    pub fn flow_words(&self, frame: &[u8]) -> FlowWords {
        if self.tells_flow() { self.plain_words() } else { self.icmp_words(frame) }
    }

    #[inline]
    fn plain_words(&self) -> FlowWords {
        let (words, presence) = (&self.words, self.presence());
        let halves = |word: u64| ((word >> 32) as u32, word as u32);
        let (addresses, length) = match self.eth_type() {
            0x0800 if presence & NETWORK_PRESENT != 0 => {
                let (source, destination) = halves(words[4]);
                ([[source, 0, 0, 0], [destination, 0, 0, 0]], 1)
            }
            0x86dd if presence & NETWORK_PRESENT != 0 => {
                let address = |at: usize| {
                    let [(first, second), (third, fourth)] = [words[at], words[at + 1]].map(halves);
                    [first, second, third, fourth]
                };
                ([address(4), address(6)], 4)
            }
            _ => {
                let [destination, source] = [words[1], words[2]].map(|word| halves(word >> 16));
                ([[source.0, source.1, 0, 0], [destination.0, destination.1, 0, 0]], 2)
            }
        };
        let has_ports = length != 2
            && presence & (TRANSPORT_PRESENT | FRAGMENT) == TRANSPORT_PRESENT
            && matches!(self.protocol(), protocol::TCP | protocol::UDP | protocol::SCTP);
        let ports = if has_ports { words[3] >> 32 } else { 0 };
        FlowWords { addresses, length, ports: [(ports >> 16) as u16, ports as u16] }
    }

    #[cold]
    fn icmp_words(&self, frame: &[u8]) -> FlowWords {
        let Some(Subject { quoted, identifier }) = Subject::read(frame) else { return self.plain_words() };
        let mut words = quoted.as_ref().unwrap_or(self).plain_words();
        if let Some(identifier) = identifier {
            words.ports = [identifier; 2];
        }
        words
    }

    #[cold]
    fn icmp_tuple(&self, frame: &[u8], seed: u64) -> FlowTuple {
        let Some(Subject { quoted, identifier }) = Subject::read(frame) else {
            return self.plain_tuple(seed);
        };
        let mut tuple = match quoted {
            Some(key) => {
                let mut tuple = key.plain_tuple(seed);
                tuple.ends = tuple.ends.map(|[source, destination]| [destination, source]);
                tuple
            }
            None => self.plain_tuple(seed),
        };
        if let Some(identifier) = identifier.filter(|identifier| *identifier != 0) {
            let word = (tuple.hash ^ u64::from(identifier)).wrapping_mul(0x9fb2_1c65_1e98_df25);
            tuple.hash = word ^ word >> 32;
            tuple.ends.iter_mut().flatten().for_each(|end| end.port = identifier);
        }
        tuple
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;

    /// An IPv4 packet from `source` to `destination`, the last bytes of 10.0.0.0/24.
    fn ip4(source: u8, destination: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = (20 + payload.len()) as u16;
        let [high, low] = length.to_be_bytes();
        let mut packet = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, source, 10, 0, 0, destination]);
        packet.extend(payload);
        packet
    }

    fn tuple(packet: &[u8], tags: usize) -> FlowTuple {
        let mut frame = vec![0; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        frame.extend([8, 0]);
        frame.extend(packet);
        Key::extract(&frame, &Ingress::default()).0.flow_tuple(&frame, SEED)
    }

    fn end(address: u8, port: u16) -> FlowEnd {
        FlowEnd { address: 0x0a00_0000 | u32::from(address), port }
    }

    #[test]
    fn both_directions_have_one_hash() {
        let (there, back) =
            (ip4(1, 2, 17, &[0, 9, 0, 53, 0, 8, 0, 0]), ip4(2, 1, 17, &[0, 53, 0, 9, 0, 8, 0, 0]));
        let (there, back) = (tuple(&there, 0), tuple(&back, 1));
        assert_eq!((there.hash, there.protocol), (back.hash, back.protocol));
        assert_eq!((there.ends, back.ends), (Some([end(1, 9), end(2, 53)]), Some([end(2, 53), end(1, 9)])));
    }

    #[test]
    fn a_flow_is_known_by_its_ends() {
        for (protocol, payload, ports) in [
            (17, [0, 9, 0, 53, 0, 8, 0, 0], (9, 53)),
            (6, [0, 9, 0, 53, 0, 8, 0, 0], (9, 53)),
            (132, [0, 9, 0, 53, 0, 8, 0, 0], (9, 53)),
            (1, [0, 0, 7, 7, 1, 5, 0, 3], (0x105, 0x105)),
        ] {
            let packet = tuple(&ip4(1, 2, protocol, &payload), 0);
            assert_eq!(FlowTuple::between(protocol, [end(1, ports.0), end(2, ports.1)], SEED), packet);
        }
    }

    #[test]
    fn a_flow_over_ipv6_is_known_by_its_ends() {
        let [one, other] = [[1; 16], [2; 16]].map(Ipv6Addr::from);
        for (protocol, payload, ports) in
            [(17, [0, 9, 0, 53, 0, 8, 0, 0], (9, 53)), (58, [129, 0, 7, 7, 1, 5, 0, 3], (0x105, 0x105))]
        {
            let head = [&[0; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, protocol, 64]].concat();
            let frame = [&head, &one.octets()[..], &other.octets(), &payload].concat();
            let packet = Key::extract(&frame, &Ingress::default()).0.flow_tuple(&frame, SEED);
            assert_eq!(packet.ends, None);
            for ends in [[(one, ports.0), (other, ports.1)], [(other, ports.1), (one, ports.0)]] {
                assert_eq!(FlowTuple::between(protocol, ends, SEED), packet);
            }
        }
    }

    #[test]
    fn echo_messages_of_one_identifier_are_a_flow() {
        let echo =
            |from, to, kind, identifier| tuple(&ip4(from, to, 1, &[kind, 0, 0, 0, 1, identifier, 0, 3]), 0);
        let (request, reply) = (echo(1, 2, 8, 5), echo(2, 1, 0, 5));
        assert_eq!((request.hash, request.ends), (reply.hash, Some([end(1, 0x105), end(2, 0x105)])));
        assert_ne!(request.hash, echo(1, 2, 8, 6).hash);
    }

    /// Protocol and ends are enough to find the flow of any message.
    #[test]
    fn other_messages_between_two_addresses_are_one_flow() {
        let none = FlowTuple::between(1, [end(1, 0), end(2, 0)], SEED);
        for kind in 0..=u8::MAX {
            let identifier = if matches!(kind, 0 | 8) { 0 } else { 5 };
            let message = tuple(&ip4(1, 2, 1, &[kind, 0, 0, 0, 0, identifier, 0, 3]), 0);
            assert_eq!(message, none, "{kind}");
        }
        let mut fragment = ip4(1, 2, 1, &[8, 0, 0, 0, 0, 5, 0, 3]);
        fragment[6] = 0x20;
        assert_eq!(tuple(&fragment, 0), none);
        assert_ne!(FlowTuple::between(1, [end(1, 5), end(2, 5)], SEED).hash, none.hash);
        // An error about the fragment, and one that quotes less than a header.
        let error = |quoted: &[u8]| {
            let packet = ip4(2, 1, 1, &[&[3, 1, 0, 0, 0, 0, 0, 0], quoted].concat());
            FlowTuple { ends: none.ends, ..tuple(&packet, 0) }
        };
        assert_eq!((error(&fragment), error(&fragment[..19])), (none, none));
    }

    #[test]
    fn an_error_belongs_to_the_flow_of_the_packet_that_it_quotes() {
        for (protocol, quoted, ports) in
            [(17, [0, 9, 0, 53, 0, 8, 0, 0], (9, 53)), (1, [8, 0, 0, 0, 1, 5, 0, 3], (0x105, 0x105))]
        {
            let packet = ip4(1, 2, protocol, &quoted);
            let flow = tuple(&packet, 0);
            let error = tuple(&ip4(9, 1, 1, &[&[3, 1, 0, 0, 0, 0, 0, 0], packet.as_slice()].concat()), 1);
            assert_eq!((error.hash, error.protocol), (flow.hash, protocol));
            assert_eq!(error.ends, Some([end(2, ports.1), end(1, ports.0)]));
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let quoted = ip4(1, 2, 1, &[8, 0, 0, 0, 1, 5, 0, 3]);
        let packet = ip4(9, 1, 1, &[&[3, 1, 0, 0, 0, 0, 0, 0], quoted.as_slice()].concat());
        for length in 0..packet.len() {
            let _ = tuple(&packet[..length], 0);
        }
        // Total lengths of both headers that don't fit.
        for length in 0..=255 {
            let mut changed = packet.clone();
            (changed[3], changed[31]) = (length, length);
            let _ = tuple(&changed, 0);
        }
    }

    /// A packet whose protocol is not that of its version of IP has neither message nor identifier.
    #[test]
    fn icmp6_inside_ip4_is_no_echo_message() {
        let mut echo = [0; 8];
        (echo[0], echo[5]) = (8, 7);
        let packet = ip4(1, 2, protocol::ICMP6, &echo);
        let mut frame = vec![0; 12];
        frame.extend([8, 0]);
        frame.extend(packet);
        let of = |frame: &[u8]| Key::extract(frame, &Ingress::default()).0.flow_tuple(frame, SEED);
        assert_eq!(of(&frame).ends.map(|ends| ends.map(|end| end.port)), Some([0, 0]));
        assert!(!Key::needs_more(&frame[..38]));
        assert_eq!(of(&frame), of(&frame[..38]));
    }
}
