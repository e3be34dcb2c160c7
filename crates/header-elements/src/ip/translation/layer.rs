//! The IP header of one version for a packet of the other version, and what depends on it in the transport header.

use core::net::{Ipv4Addr, Ipv6Addr};

use element::prelude::*;
use packet::checksum::{Sum, update};
use packet::view::ip4::HeaderOption;
use packet::view::{icmp4, icmp6, ip4, ip6, protocol};
use packet::{Ip4View, Ip4ViewMut, Ip6View, Ip6ViewMut, UdpViewMut};

use super::embedding::Embedding;

/// Length of an IPv6 fragment header.
const FRAGMENT_LENGTH: usize = 8;

/// IPv4 packets up to this length may be fragmented on their way: those of the least MTU of IPv6 (RFC 7915, section 5.1).
const MAX_FRAGMENTABLE: usize = 1260;

/// A header of the other version for a packet.
pub(super) struct Layer {
    /// Length of the old header, with its options or extensions.
    pub(super) removed: usize,
    /// Bytes that follow the old header, as it says.
    pub(super) payload: usize,
    /// Whether the packet is a fragment.
    pub(super) is_fragment: bool,
    /// Whether the payload begins with a transport header.
    pub(super) is_first: bool,
    /// The protocol, with its number in the old header.
    protocol: u8,
    /// Whether the new header is one of IPv6.
    is_ip6: bool,
    source: (Ipv4Addr, Ipv6Addr),
    destination: (Ipv4Addr, Ipv6Addr),
    header: [u8; ip6::LENGTH + FRAGMENT_LENGTH],
    length: usize,
}

impl Layer {
    /// An IPv6 header for a packet that begins with an IPv4 header. What follows the header may be cut.
    pub(super) fn to6(bytes: &[u8], embedding: &Embedding) -> Result<Layer, Reason> {
        let view = Ip4View::new(bytes).filter(|view| view.version() == 4).ok_or(Reason::NO_IP_HEADER)?;
        let (removed, total) = (view.header_length(), usize::from(view.total_length()));
        if removed < ip4::LENGTH || bytes.len() < removed || total < removed {
            return Err(Reason::BAD_LENGTH);
        }
        // A source route is followed to its end if its pointer is behind it.
        let is_unfinished = |option: HeaderOption<'_>| {
            matches!(option.kind, ip4::OPTION_LOOSE_ROUTE | ip4::OPTION_STRICT_ROUTE)
                && option.data.first().is_some_and(|pointer| usize::from(*pointer) <= option.data.len() + 2)
        };
        if view.options_iter().any(is_unfinished) {
            return Err(Reason::NOT_REWRITABLE);
        }
        // In an IPv6 packet, the payload would be taken for an extension header, or for a message of the other ICMP.
        let is_foreign = matches!(
            view.protocol(),
            protocol::HOP_BY_HOP
                | protocol::ROUTING
                | protocol::FRAGMENT
                | protocol::AH
                | protocol::DESTINATION
                | protocol::MOBILITY
                | protocol::ICMP6
        );
        if is_foreign {
            return Err(Reason::NOT_REWRITABLE);
        }
        let next = if view.protocol() == protocol::ICMP { protocol::ICMP6 } else { view.protocol() };
        let source = (view.source(), embedding.embed(view.source()));
        let destination = (view.destination(), embedding.embed(view.destination()));
        let (mut header, mut length) = ([0; ip6::LENGTH + FRAGMENT_LENGTH], ip6::LENGTH);
        let mut ip6 = Ip6ViewMut::new(&mut header).ok_or(Reason::NO_IP_HEADER)?;
        ip6.set_class_and_flow(view.tos(), 0);
        ip6.set_next_header(if view.is_fragment() { protocol::FRAGMENT } else { next });
        ip6.set_hop_limit(view.ttl());
        ip6.set_source(source.1);
        ip6.set_destination(destination.1);
        if let Some(extension) = header.get_mut(length..).filter(|_| view.is_fragment()) {
            let offset = (view.fragment() & ip4::OFFSET_BITS) << 3 | u16::from(view.more_fragments());
            let ([high, low], [a, b]) = (offset.to_be_bytes(), view.identification().to_be_bytes());
            extension.copy_from_slice(&[next, 0, high, low, 0, 0, a, b]);
            length += FRAGMENT_LENGTH;
        }
        Ok(Layer {
            removed,
            payload: total - removed,
            is_fragment: view.is_fragment(),
            is_first: view.fragment_offset() == 0,
            protocol: view.protocol(),
            is_ip6: true,
            source,
            destination,
            header,
            length,
        })
    }

    /// An IPv4 header for a packet that begins with an IPv6 header. What follows the headers may be cut.
    pub(super) fn to4(bytes: &[u8], embedding: &Embedding, identification: u16) -> Result<Layer, Reason> {
        let view = Ip6View::new(bytes).filter(|view| view.version() == 6).ok_or(Reason::NO_IP_HEADER)?;
        let transport = view.transport();
        let total = ip6::LENGTH + usize::from(view.payload_length());
        if !transport.complete || total < transport.offset {
            return Err(Reason::BAD_LENGTH);
        }
        let extensions = bytes.get(ip6::LENGTH..transport.offset).unwrap_or_default();
        if transport.protocol == protocol::ICMP || !are_removable(view.next_header(), extensions) {
            return Err(Reason::NOT_REWRITABLE);
        }
        let extract = |address| embedding.extract(address).ok_or(Reason::UNMAPPED_ADDRESS);
        let source = (extract(view.source())?, view.source());
        let destination = (extract(view.destination())?, view.destination());
        let is_icmp = transport.protocol == protocol::ICMP6;
        let offset = transport.fragment.map_or(0, |fragment| fragment.offset);
        let more = transport.fragment.is_some_and(|fragment| fragment.more);
        let mut header = [0; ip6::LENGTH + FRAGMENT_LENGTH];
        let mut ip4 = Ip4ViewMut::new(&mut header).ok_or(Reason::NO_IP_HEADER)?;
        ip4.set_version_length(0x45);
        ip4.set_tos(view.traffic_class());
        ip4.set_identification(
            transport.fragment.map_or(identification, |found| found.identification as u16),
        );
        ip4.set_fragment(offset >> 3 | if more { ip4::MORE_FRAGMENTS } else { 0 });
        ip4.set_ttl(view.hop_limit());
        ip4.set_protocol(if is_icmp { protocol::ICMP } else { transport.protocol });
        ip4.set_source(source.0);
        ip4.set_destination(destination.0);
        Ok(Layer {
            removed: transport.offset,
            payload: total - transport.offset,
            is_fragment: offset > 0 || more,
            is_first: offset == 0,
            protocol: transport.protocol,
            is_ip6: false,
            source,
            destination,
            header,
            length: ip4::LENGTH,
        })
    }

    /// Whether the payload is a message of the old version's ICMP.
    pub(super) fn is_icmp(&self) -> bool {
        self.protocol == if self.is_ip6 { protocol::ICMP } else { protocol::ICMP6 }
    }

    /// Whether the new header is one of IPv6.
    pub(super) fn is_ip6(&self) -> bool {
        self.is_ip6
    }

    /// The new destination.
    pub(super) fn set_destination(&self, packet: &mut Packet) {
        match self.is_ip6 {
            true => packet.set_destination_ip6(self.destination.1),
            false => packet.set_destination_ip(self.destination.0),
        }
    }

    /// The new header for this length of payload.
    pub(super) fn finish(&mut self, payload: usize) -> Result<&[u8], Reason> {
        let Layer { is_ip6, is_fragment, length, header, .. } = self;
        let whole = if *is_ip6 { payload + *length - ip6::LENGTH } else { payload + *length };
        let field = u16::try_from(whole).map_err(|_| Reason::BAD_LENGTH)?;
        if let Some(mut ip6) = Ip6ViewMut::new(header).filter(|_| *is_ip6) {
            ip6.set_payload_length(field);
        } else if let Some(mut ip4) = Ip4ViewMut::new(header) {
            ip4.set_total_length(field);
            if !*is_fragment && whole > MAX_FRAGMENTABLE {
                ip4.set_fragment(ip4::DONT_FRAGMENT);
            }
            ip4.fill_checksum();
        }
        header.get(..*length).ok_or(Reason::BAD_LENGTH)
    }

    /// The pseudo-headers of ICMP, before and after: that of ICMP for IPv4 has none. `lengths`: those of the message.
    pub(super) fn icmp_pseudo_headers(&self, lengths: [usize; 2]) -> [Sum; 2] {
        let of =
            |length| Sum::ZERO.pseudo6(self.source.1, self.destination.1, protocol::ICMP6, length as u32);
        let [before, after] = lengths;
        if self.is_ip6 { [Sum::ZERO, of(after)] } else { [of(before), Sum::ZERO] }
    }

    /// Adapts the checksum of the transport header at the start of `bytes`, and the type of an ICMP echo. `whole`: whether all of
    /// the payload is there. Returns the sums of the words that were changed, before and after.
    pub(super) fn adapt(&self, bytes: &mut [u8], whole: bool) -> Result<[Sum; 2], Reason> {
        let sum4 = Sum::ZERO.bytes(&self.source.0.octets()).bytes(&self.destination.0.octets());
        let sum6 = Sum::ZERO.bytes(&self.source.1.octets()).bytes(&self.destination.1.octets());
        let mut sums = if self.is_ip6 { [sum4, sum6] } else { [sum6, sum4] };
        let mut words = [Sum::ZERO; 2];
        let is_udp = self.protocol == protocol::UDP;
        let place = match self.protocol {
            protocol::TCP => 16,
            protocol::UDP => 6,
            _ if self.is_icmp() => {
                if let Some([kind, code, ..]) = bytes.first_chunk_mut::<4>() {
                    let before = u16::from_be_bytes([*kind, *code]);
                    *kind = echo(*kind).ok_or(Reason::NOT_REWRITABLE)?;
                    words = [before, u16::from_be_bytes([*kind, *code])].map(|word| Sum::ZERO.word(word));
                }
                let [before, after] = self.icmp_pseudo_headers([self.payload; 2]);
                sums = [before.word(words[0].fold()), after.word(words[1].fold())];
                2
            }
            _ => return Ok(words),
        };
        // Of a packet that an error quotes, it may be cut off.
        let Some(field) = bytes.get_mut(place..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
            return if whole && self.payload > 0 { Err(Reason::BAD_LENGTH) } else { Ok(words) };
        };
        let before = u16::from_be_bytes(*field);
        if is_udp && before == 0 {
            return match self.is_ip6 && whole {
                false => Ok(words),
                true if self.is_fragment => Err(Reason::IS_FRAGMENT),
                true => {
                    let length = self.payload as u32;
                    let pseudo = Sum::ZERO.pseudo6(self.source.1, self.destination.1, protocol::UDP, length);
                    UdpViewMut::new(bytes).ok_or(Reason::BAD_LENGTH)?.fill_checksum(pseudo);
                    Ok(words)
                }
            };
        }
        let after = match update(before, sums[0].fold(), sums[1].fold()) {
            0 if is_udp => 0xffff,
            after => after,
        };
        *field = after.to_be_bytes();
        Ok([words[0].word(before), words[1].word(after)])
    }
}

/// The type of an echo message of the other version.
fn echo(kind: u8) -> Option<u8> {
    let types = [(icmp4::kind::ECHO, icmp6::kind::ECHO), (icmp4::kind::ECHO_REPLY, icmp6::kind::ECHO_REPLY)];
    types.iter().find_map(|(of4, of6)| match kind {
        _ if kind == *of4 => Some(*of6),
        _ if kind == *of6 => Some(*of4),
        _ => None,
    })
}

/// Whether extension headers can be left out: not those that authenticate the packet, or route it on.
fn are_removable(first: u8, mut extensions: &[u8]) -> bool {
    let mut kind = first;
    while let &[next, units, _, left, ..] = extensions {
        let length = match kind {
            protocol::AH => return false,
            protocol::ROUTING if left > 0 => return false,
            protocol::FRAGMENT => FRAGMENT_LENGTH,
            _ => (usize::from(units) + 1) * 8,
        };
        kind = next;
        extensions = extensions.get(length..).unwrap_or_default();
    }
    true
}
