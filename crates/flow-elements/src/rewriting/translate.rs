//! Identifies the flow of a packet, and translates the packet.

use core::net::Ipv4Addr;

use packet::view::{icmp4, tcp as tcp_header};
use packet::{Packet, checksum, protocol};

use super::mapping::{Mapping, tcp, udp};
use flow::Ip4Flow;

/// The header fields that identify a flow and are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFields {
    /// Addresses and ports of TCP and UDP, in separate tables.
    Both,
    /// Addresses and ports of TCP.
    Tcp,
    /// Addresses and ports of TCP, UDP or DCCP, in one table.
    Udp,
    /// The source address; in replies, the destination address.
    Address,
    /// Both addresses.
    AddressPair,
    /// Addresses and identifier of ICMP echo messages.
    Ping,
}

/// The annotations that a rewriter sets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Annotations {
    /// Whether to set the destination annotation to the new destination.
    pub(crate) destination: bool,
    /// Offset of the annotation byte that replies inherit from the flow's first packet.
    pub(crate) reply: Option<usize>,
}

/// The flow key of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) flow: Ip4Flow,
    /// Index of the table.
    pub(crate) map: u8,
    pub(crate) protocol: u8,
    /// Whether the packet may start a flow.
    pub(crate) begins: bool,
}

/// Length of a TCP header up to the end of the checksum.
const TCP_CHECKSUM_END: usize = 18;

impl KeyFields {
    /// Whether only addresses identify a flow, so that packets of any protocol and ports belong to it.
    pub(crate) fn has_only_addresses(self) -> bool {
        matches!(self, KeyFields::Address | KeyFields::AddressPair)
    }

    /// Whether a packet can have this key, which a flow of another box has.
    pub(crate) fn has_form(self, key: Ip4Flow) -> bool {
        match self {
            KeyFields::Both | KeyFields::Tcp | KeyFields::Udp => true,
            KeyFields::Address => key == Ip4Flow { source: key.source, ..Ip4Flow::default() },
            KeyFields::AddressPair => (key.source_port, key.destination_port) == (0, 0),
            KeyFields::Ping => key == ping(key, key.source_port, true),
        }
    }

    /// The table for flows of a protocol; `None` if it is not supported.
    pub(crate) fn map(self, number: u8) -> Option<usize> {
        match (self, number) {
            (KeyFields::Both | KeyFields::Tcp, protocol::TCP) => Some(0),
            (KeyFields::Both, protocol::UDP) => Some(1),
            (KeyFields::Udp, protocol::TCP | protocol::UDP | protocol::DCCP) => Some(0),
            (KeyFields::Ping, protocol::ICMP) => Some(0),
            (KeyFields::Address | KeyFields::AddressPair, _) => Some(0),
            _ => None,
        }
    }

    /// The key of a packet; `None` if it can't belong to a flow.
    #[inline(always)]
    pub(crate) fn key(self, packet: &Packet) -> Option<Key> {
        let network = packet.network();
        let header: &[u8; 20] = network.first_chunk()?;
        let addresses = header.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let (source, destination) = ((addresses >> 32) as u32, addresses as u32);
        let number = header[9];
        let addresses = Ip4Flow { source, destination, ..Ip4Flow::default() };
        let key = Key { flow: addresses, map: 0, protocol: number, begins: true };
        match self {
            KeyFields::Address => {
                Some(Key { flow: Ip4Flow { destination: 0, ..addresses }, protocol: 0, ..key })
            }
            KeyFields::AddressPair => Some(Key { protocol: 0, ..key }),
            KeyFields::Both | KeyFields::Tcp | KeyFields::Udp => {
                let map = self.map(number)? as u8;
                let transport: &[u8; 8] = first_fragment(packet, header)?.first_chunk()?;
                let [sh, sl, dh, dl, ..] = *transport;
                let source_port = u16::from_be_bytes([sh, sl]);
                let destination_port = u16::from_be_bytes([dh, dl]);
                Some(Key { flow: Ip4Flow { source_port, destination_port, ..addresses }, map, ..key })
            }
            KeyFields::Ping => {
                self.map(number)?;
                let [kind, _, _, _, high, low, ..] = *first_fragment(packet, header)? else { return None };
                let begins = kind == icmp4::kind::ECHO;
                if !begins && kind != icmp4::kind::ECHO_REPLY {
                    return None;
                }
                let flow = ping(addresses, u16::from_be_bytes([high, low]), begins);
                Some(Key { flow, begins, ..key })
            }
        }
    }

    /// The key of a packet as a reply, if that differs from its key.
    #[inline(always)]
    pub(crate) fn reply_key(self, packet: &Packet) -> Option<Ip4Flow> {
        if self != KeyFields::Address {
            return None;
        }
        let destination = packet.network().get(16..20)?.first_chunk()?;
        Some(Ip4Flow { destination: u32::from_be_bytes(*destination), ..Ip4Flow::default() })
    }
}

/// The key of an echo message. Requests and replies differ in which port is the identifier plus one, added in
/// little-endian order, because the tables show these numbers.
pub(crate) fn ping(addresses: Ip4Flow, identifier: u16, request: bool) -> Ip4Flow {
    let next = identifier.swap_bytes().wrapping_add(1).swap_bytes();
    let (source_port, destination_port) = if request { (identifier, next) } else { (next, identifier) };
    Ip4Flow { source_port, destination_port, ..addresses }
}

/// The bytes after the network header, if they start with the transport header.
#[inline(always)]
fn first_fragment<'p>(packet: &'p Packet, header: &[u8; 20]) -> Option<&'p [u8]> {
    let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    is_first.then(|| packet.transport())
}

/// How to rewrite a packet: the direction of its flow.
pub(crate) struct PacketRewrite<'f> {
    /// The key of the other direction: the new addresses and ports, reversed.
    pub(crate) other: &'f Ip4Flow,
    /// Whether it is a reply.
    pub(crate) reply: bool,
    /// The flow, whose progress is updated.
    pub(crate) mapping: &'f mut Mapping,
}

/// Translates a packet of a flow.
#[inline(always)]
pub(crate) fn translate(
    key_fields: KeyFields,
    packet: &mut Packet,
    rewrite: PacketRewrite,
    annotations: Annotations,
) {
    let PacketRewrite { other, reply, mapping } = rewrite;
    let set_destination = annotations.destination && (key_fields != KeyFields::Address || reply);
    if set_destination {
        packet.set_destination_ip(Ipv4Addr::from_bits(other.source));
    }
    if reply && let Some(offset) = annotations.reply {
        packet.set_annotation_u8(offset, mapping.reply_annotation);
    }
    let Some(header) = packet.network_mut().first_chunk_mut::<20>() else { return };
    let number = header[9];
    let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let header_length = usize::from(header[0] & 0xf) * 4;
    if key_fields != KeyFields::Address || !reply {
        header[12..16].copy_from_slice(&other.destination.to_be_bytes());
    }
    if key_fields != KeyFields::Address || reply {
        header[16..20].copy_from_slice(&other.source.to_be_bytes());
    }
    let (addresses, change) = match reply {
        false => (mapping.addresses, mapping.transport),
        true => (mapping.addresses.reverse(), mapping.transport.reverse()),
    };
    let sum = addresses.apply(u16::from_be_bytes([header[10], header[11]]));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    if !is_first {
        return;
    }
    let transport = packet.transport_mut();
    match key_fields {
        KeyFields::Both | KeyFields::Tcp if number == protocol::TCP => {
            if transport.len() >= TCP_CHECKSUM_END {
                set_ports(transport, other);
                update_checksum(transport, 16, change);
                track_tcp(transport, mapping, reply, header_length, total);
            }
        }
        KeyFields::Both | KeyFields::Tcp | KeyFields::Udp => {
            set_ports(transport, other);
            match number {
                protocol::TCP if transport.len() >= TCP_CHECKSUM_END => {
                    update_checksum(transport, 16, change)
                }
                protocol::UDP => update_udp_checksum(transport, change),
                _ => {}
            }
            if reply {
                mapping.progress |= udp::REPLY;
            }
            if mapping.progress < udp::MAX_COUNT {
                mapping.progress += 2;
            }
        }
        KeyFields::Address | KeyFields::AddressPair => match number {
            protocol::TCP if transport.len() >= TCP_CHECKSUM_END => update_checksum(transport, 16, change),
            protocol::UDP if transport.len() >= 8 => update_udp_checksum(transport, change),
            _ => {}
        },
        KeyFields::Ping => {
            let identifier = if reply { other.source_port } else { other.destination_port };
            if let Some(bytes) = transport.get_mut(4..6) {
                bytes.copy_from_slice(&identifier.to_be_bytes());
            }
            update_checksum(transport, 2, change);
            if let Some(&[high, low]) = transport.get(2..4) {
                let sum = checksum::correct_zero(u16::from_be_bytes([high, low]), transport);
                transport[2..4].copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

#[inline(always)]
fn set_ports(transport: &mut [u8], other: &Ip4Flow) {
    if let Some(ports) = transport.first_chunk_mut::<4>() {
        *ports = (u32::from(other.destination_port) << 16 | u32::from(other.source_port)).to_be_bytes();
    }
}

/// Applies a change to the checksum at `offset`.
#[inline(always)]
fn update_checksum(transport: &mut [u8], offset: usize, change: checksum::Delta) {
    if let Some(bytes) = transport.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *bytes = change.apply(u16::from_be_bytes(*bytes)).to_be_bytes();
    }
}

/// Applies a change to the UDP checksum, if there is one.
#[inline(always)]
fn update_udp_checksum(transport: &mut [u8], change: checksum::Delta) {
    if transport.get(6..8).is_some_and(|sum| sum != [0, 0]) {
        update_checksum(transport, 6, change);
    }
}

/// Tracks the progress of a TCP flow, and shifts sequence numbers.
#[inline(always)]
fn track_tcp(transport: &mut [u8], mapping: &mut Mapping, reply: bool, header_length: usize, total: usize) {
    use tcp_header::flag::{FIN, RST, SYN};
    let Some(&[offset, flags]) = transport.get(12..14) else { return };
    let length = usize::from(offset >> 4) * 4;
    let has_data = header_length + length < total;
    let direction = u8::from(reply);
    if flags & RST != 0 {
        mapping.progress |= tcp::BOTH_DONE;
    } else if flags & FIN != 0 {
        mapping.progress |= tcp::DONE << direction;
    } else if flags & SYN != 0 || has_data {
        mapping.progress &= !(tcp::DONE << direction);
    }
    if has_data {
        mapping.progress |= tcp::DATA << direction;
    }
    if let Some(shifts) = mapping.shifts.as_deref_mut()
        && transport.len() >= length
    {
        super::shift_segment::shift_numbers(transport, shifts, reply);
    }
}
