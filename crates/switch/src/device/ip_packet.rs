//! Where the headers of an IP packet in a frame are, also of one that a tunnel of the host carries.

use super::headers::{ETHERNET, IP4, IP6, TAG, TAGS, TCP_NUMBER, UDP, UDP_NUMBER, pseudo, put, put_length};
use packet::checksum::{self, Sum};

/// A frame has at most this many tags that are skipped.
const MAX_TAGS: usize = 2;
/// EtherTypes of packets, and of an Ethernet frame in a tunnel.
const IP4_TYPE: [u8; 2] = [0x08, 0x00];
const IP6_TYPE: [u8; 2] = [0x86, 0xdd];
const ETHERNET_TYPE: [u8; 2] = [0x65, 0x58];
/// Lengths of the fixed headers of tunnels.
const VXLAN: usize = 8;
const GENEVE: usize = 8;
const GRE: usize = 4;
/// Protocol numbers.
const IP4_NUMBER: u8 = 4;
const IP6_NUMBER: u8 = 41;
const FRAGMENT_NUMBER: u8 = 44;
const GRE_NUMBER: u8 = 47;
/// IPv6 extension headers with a length field that may precede the transport header: hop-by-hop, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// Extension headers that are skipped. More of them are not looked behind, so that a packet cannot cost much.
const MAX_EXTENSIONS: usize = 4;
/// Flags of GRE: there is a checksum, a key, a sequence number (RFC 2890). The others are not in use.
const GRE_CHECKSUM: u8 = 0x80;
const GRE_KEY: u8 = 0x20;
const GRE_SEQUENCE: u8 = 0x10;

/// Where the headers of an IP packet in a frame are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IpPacket {
    /// Offset of the IP header.
    pub(crate) network: usize,
    pub(crate) is_ip6: bool,
    /// The protocol above IP.
    pub(crate) protocol: u8,
    /// Offset of the transport header; `None` in a fragment, or behind too many extension headers.
    pub(crate) transport: Option<usize>,
    /// End of the packet: what follows is padding.
    pub(crate) end: usize,
}

impl IpPacket {
    /// The IP packet in a frame. `None` if there is none, or if it is malformed.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        Self::behind(frame, network_offset(frame, 0)?)
    }

    /// The packet behind its EtherType.
    fn behind(frame: &[u8], network: usize) -> Option<Self> {
        Self::at(frame, network, frame.get(network - 2..network)?.first_chunk()?)
    }

    /// The packet of this EtherType at an offset.
    fn at(frame: &[u8], network: usize, kind: &[u8; 2]) -> Option<Self> {
        let ip = frame.get(network..)?;
        match *kind {
            IP4_TYPE => {
                let header = ip.first_chunk::<IP4>()?;
                let length = usize::from(header[0] & 15) * 4;
                let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
                if header[0] >> 4 != 4 || length < IP4 || total < length || total > ip.len() {
                    return None;
                }
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
                let transport = (!is_fragment).then_some(network + length);
                Some(Self { network, is_ip6: false, protocol: header[9], transport, end: network + total })
            }
            IP6_TYPE => {
                let header = ip.first_chunk::<IP6>()?;
                let total = IP6 + usize::from(u16::from_be_bytes([header[4], header[5]]));
                if header[0] >> 4 != 6 || total > ip.len() {
                    return None;
                }
                let (mut protocol, mut at) = (header[6], IP6);
                for _ in 0..MAX_EXTENSIONS {
                    match ip.get(at..total) {
                        Some([next, length, ..]) if EXTENSIONS.contains(&protocol) => {
                            (protocol, at) = (*next, at + 8 + usize::from(*length) * 8);
                        }
                        _ => break,
                    }
                }
                let is_known = at <= total && protocol != FRAGMENT_NUMBER && !EXTENSIONS.contains(&protocol);
                let transport = is_known.then_some(network + at);
                Some(Self { network, is_ip6: true, protocol, transport, end: network + total })
            }
            _ => None,
        }
    }

    /// The packet that this one carries for a tunnel: VXLAN, GENEVE, GRE, or IP in IP. The UDP port may be any, so the first two are
    /// recognised by their form.
    pub(crate) fn inside(&self, frame: &[u8]) -> Option<Self> {
        let start = self.transport?;
        let whole = frame.get(..self.end)?;
        let (kind, at) = match self.protocol {
            IP4_NUMBER => (IP4_TYPE, start),
            IP6_NUMBER => (IP6_TYPE, start),
            GRE_NUMBER => match whole.get(start..)?.first_chunk::<GRE>()? {
                [flags, 0, kind @ ..] if flags & !(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE) == 0 => {
                    (*kind, start + GRE + flags.count_ones() as usize * 4)
                }
                _ => return None,
            },
            UDP_NUMBER => match whole.get(start + UDP..)?.first_chunk::<GENEVE>()? {
                // Version 0, options, and the type of what follows.
                [options @ ..64, _, kind @ .., _, _, _, 0]
                    if [IP4_TYPE, IP6_TYPE, ETHERNET_TYPE].contains(kind) =>
                {
                    (*kind, start + UDP + GENEVE + usize::from(*options) * 4)
                }
                // There is a VNI, and an Ethernet frame.
                [flags, ..] if flags & 0x0c == 0x08 => (ETHERNET_TYPE, start + UDP + VXLAN),
                _ => return None,
            },
            _ => return None,
        };
        match kind {
            ETHERNET_TYPE => Self::behind(whole, network_offset(whole, at)?),
            kind => Self::at(whole, at, &kind),
        }
    }

    /// The transport header and what follows it in the packet.
    pub(crate) fn segment<'f>(&self, frame: &'f [u8]) -> Option<&'f [u8]> {
        frame.get(self.transport?..self.end)
    }

    /// The sum of the pseudo-header.
    fn pseudo_sum(&self, frame: &[u8], length: usize) -> Sum {
        pseudo(frame.get(self.network..).unwrap_or_default(), self.is_ip6, self.protocol, length as u16)
    }

    /// Fills in the checksum of TCP or UDP if the sender left that to a network card that the packet never passed, as Linux
    /// does between the namespaces of a host: the field then has the sum of the pseudo-header. A correct checksum stays
    /// the same, even where it happens to be that sum. Not for packets that are cut into segments. Returns the offset of the
    /// checksum, and that sum, if the sender left it.
    pub(crate) fn complete_checksum(&self, frame: &mut [u8]) -> Option<(usize, u16)> {
        let field = match self.protocol {
            TCP_NUMBER => 16,
            UDP_NUMBER => 6,
            _ => return None,
        };
        let segment = self.segment(frame)?;
        let [high, low] = *segment.get(field..)?.first_chunk::<2>()?;
        let (found, pseudo) = (u16::from_be_bytes([high, low]), self.pseudo_sum(frame, segment.len()).fold());
        if found != pseudo || found == 0 {
            return None;
        }
        let sum = checksum::internet(segment);
        let start = self.transport? + field;
        // In UDP, 0 means that there is no checksum.
        frame.get_mut(start..start + 2)?.copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
        Some((start, found))
    }

    /// Where the checksum of UDP or GRE is, if the packet has one that covers what a tunnel carries.
    fn tunnel_checksum(&self, frame: &[u8]) -> Option<usize> {
        let start = self.transport?;
        let segment = self.segment(frame)?;
        match (self.protocol, segment) {
            (UDP_NUMBER, [_, _, _, _, _, _, high, low, ..]) if [*high, *low] != [0, 0] => Some(start + 6),
            (GRE_NUMBER, [flags, _, _, _, _, _, _, _, ..]) if flags & GRE_CHECKSUM != 0 => Some(start + GRE),
            _ => None,
        }
    }

    /// The sum over the packet and its pseudo-header that the checksum of a tunnel makes zero.
    fn tunnel_sum(&self, frame: &[u8]) -> Sum {
        let segment = self.segment(frame).unwrap_or_default();
        let pseudo = match self.protocol {
            UDP_NUMBER => self.pseudo_sum(frame, segment.len()),
            _ => Sum::ZERO,
        };
        pseudo.bytes(segment)
    }

    /// Whether the checksum of a tunnel is correct, or there is none.
    pub(crate) fn has_correct_tunnel(&self, frame: &[u8]) -> bool {
        self.tunnel_checksum(frame).is_none() || self.tunnel_sum(frame).finish() == 0
    }

    /// Writes the lengths and checksums of a packet that carries another one for a tunnel, and that has become shorter: it ends with
    /// the frame. `number`: what to add to its identification, in IPv4.
    pub(crate) fn shorten_tunnel(&self, frame: &mut [u8], number: u16) {
        let (Some(transport), end) = (self.transport, frame.len()) else { return };
        let short = Self { end, ..*self };
        if let Some(ip) = frame.get_mut(self.network..transport) {
            if let (false, Some([high, low])) = (self.is_ip6, ip.get(4..6)) {
                put(ip, 4, u16::from_be_bytes([*high, *low]).wrapping_add(number));
            }
            put_length(ip, self.is_ip6, end - self.network);
        }
        if self.protocol == UDP_NUMBER {
            put(frame, transport + 4, (end - transport) as u16);
        }
        if let Some(place) = short.tunnel_checksum(frame) {
            put(frame, place, 0);
            let sum = short.tunnel_sum(frame).finish();
            put(frame, place, if sum == 0 { 0xffff } else { sum });
        }
    }
}

/// The offset of the network header of the frame at an offset: behind the EtherType that is no tag.
fn network_offset(frame: &[u8], at: usize) -> Option<usize> {
    let mut start = at + ETHERNET;
    for _ in 0..MAX_TAGS {
        match frame.get(start - 2..start)? {
            kind if TAGS.iter().any(|tag| tag == kind) => start += TAG,
            _ => break,
        }
    }
    (frame.len() >= start).then_some(start)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tunnel: its protocol, and whether it has a checksum.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Tunnel {
        Vxlan {
            has_checksum: bool,
        },
        Geneve {
            has_checksum: bool,
        },
        /// GRE with a key, around Ethernet frames.
        Bridge {
            has_checksum: bool,
        },
        /// GRE around IP packets.
        Gre,
        Ip,
    }

    pub(crate) const TUNNELS: [Tunnel; 8] = [
        Tunnel::Vxlan { has_checksum: false },
        Tunnel::Vxlan { has_checksum: true },
        Tunnel::Geneve { has_checksum: false },
        Tunnel::Geneve { has_checksum: true },
        Tunnel::Bridge { has_checksum: false },
        Tunnel::Bridge { has_checksum: true },
        Tunnel::Gre,
        Tunnel::Ip,
    ];

    /// A frame without tags in a tunnel over IPv4 or IPv6, and the offset that its packet then has. The lengths are correct; the
    /// checksum of the tunnel is correct for these bytes, if it has one.
    pub(crate) fn in_tunnel(tunnel: Tunnel, is_ip6: bool, frame: &[u8]) -> (Vec<u8>, usize) {
        let (kind, packet) = (&frame[12..14], &frame[ETHERNET..]);
        let udp = |has_checksum: bool, rest: &[u8]| {
            let length = ((UDP + rest.len() + frame.len()) as u16).to_be_bytes();
            let checksum = [u8::from(has_checksum); 2];
            (UDP_NUMBER, [&[0xc0, 1, 0x77, 7], &length[..], &checksum, rest, frame].concat())
        };
        let (number, payload) = match tunnel {
            Tunnel::Vxlan { has_checksum } => udp(has_checksum, &[8, 0, 0, 0, 0, 0, 42, 0]),
            Tunnel::Geneve { has_checksum } => {
                udp(has_checksum, &[2, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 3, 1, 9, 9, 9, 9])
            }
            Tunnel::Bridge { has_checksum: false } => {
                (GRE_NUMBER, [&[GRE_KEY, 0, 0x65, 0x58, 0, 0, 0, 7], frame].concat())
            }
            Tunnel::Bridge { has_checksum: true } => {
                let flags = GRE_CHECKSUM | GRE_KEY;
                (GRE_NUMBER, [&[flags, 0, 0x65, 0x58, 1, 1, 0, 0, 0, 0, 0, 7], frame].concat())
            }
            Tunnel::Gre => (GRE_NUMBER, [&[0, 0], kind, packet].concat()),
            Tunnel::Ip if kind == IP4_TYPE => (IP4_NUMBER, packet.to_vec()),
            Tunnel::Ip => (IP6_NUMBER, packet.to_vec()),
        };
        let [high, low] = ((payload.len() + if is_ip6 { 0 } else { IP4 }) as u16).to_be_bytes();
        let mut whole = vec![6; 12];
        if is_ip6 {
            whole.extend([0x86, 0xdd, 0x60, 0, 0, 0, high, low, number, 64]);
            whole.extend([0xfd; 32]);
        } else {
            whole.extend([8, 0, 0x45, 0, high, low, 0xff, 0xff, 0, 0, 64, number, 0, 0]);
            whole.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        }
        whole.extend(payload);
        let length = whole.len();
        let outer = IpPacket::of(&whole).unwrap();
        outer.shorten_tunnel(&mut whole, 0);
        assert!(outer.end == length && outer.has_correct_tunnel(&whole));
        (whole, length - packet.len())
    }

    #[test]
    fn packets_in_tunnels_are_found() {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, UDP_NUMBER, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 8, 0, 0]);
        for (tunnel, is_ip6) in TUNNELS.into_iter().flat_map(|tunnel| [(tunnel, false), (tunnel, true)]) {
            let (whole, network) = in_tunnel(tunnel, is_ip6, &frame);
            let outer = IpPacket::of(&whole).unwrap();
            let inner = IpPacket {
                network,
                is_ip6: false,
                protocol: UDP_NUMBER,
                transport: Some(network + IP4),
                end: whole.len(),
            };
            assert_eq!(outer.inside(&whole), Some(inner), "{tunnel:?} {is_ip6}");
            assert_eq!(inner.inside(&whole), None);
            // Padding is in no packet, and a packet that was cut off is none.
            let padded = [&whole[..], &[0; 9]].concat();
            assert_eq!(IpPacket::of(&padded).unwrap().inside(&padded), Some(inner));
            for end in outer.network..whole.len() {
                assert_eq!(IpPacket { end, ..outer }.inside(&whole), None, "{tunnel:?} {end}");
            }
        }
    }

    /// Unknown flags of GRE, its later versions, UDP datagrams of other forms, and other protocols.
    #[test]
    fn other_packets_carry_none() {
        let frame = [&[2; 12][..], &[0x86, 0xdd, 0x60], &[0; 39]].concat();
        for (tunnel, at, value) in [
            (Tunnel::Gre, 0, 0x40),
            (Tunnel::Gre, 1, 1),
            (Tunnel::Gre, 2, 9),
            (Tunnel::Vxlan { has_checksum: false }, UDP, 0),
            (Tunnel::Vxlan { has_checksum: false }, UDP, 0x0c),
            (Tunnel::Geneve { has_checksum: false }, UDP, 0x42),
            (Tunnel::Geneve { has_checksum: false }, UDP + 3, 0x59),
            (Tunnel::Geneve { has_checksum: false }, UDP + 7, 1),
        ] {
            let (mut whole, _) = in_tunnel(tunnel, false, &frame);
            let outer = IpPacket::of(&whole).unwrap();
            assert!(outer.inside(&whole).is_some());
            whole[ETHERNET + IP4 + at] = value;
            assert_eq!(outer.inside(&whole), None, "{tunnel:?} {at}");
            assert_eq!(IpPacket { protocol: 50, ..outer }.inside(&whole), None);
            assert_eq!(IpPacket { transport: None, ..outer }.inside(&whole), None);
        }
    }
}
