//! Messages of IPv6 neighbour discovery (RFC 4861) as frames, shared by the elements of this group.

use core::net::Ipv6Addr;

use element::prelude::*;
use packet::view::{icmp6, ip6, protocol};
use packet::{EtherType, Icmp6View, Icmp6ViewMut, Ip6View, Ip6ViewMut, MacAddr};

use super::header::{LENGTH, addresses, ethernet, read_u16};

/// Length of a solicitation or advertisement with one Ethernet address.
const MESSAGE_LENGTH: usize = 32;
/// The hop limit of messages that no router has forwarded.
const MAX_HOP_LIMIT: u8 = 255;
/// The flags of an advertisement from a router in reply to a solicitation.
const SOLICITED_FROM_ROUTER: u32 = 0xc000_0000;
/// The option with the sender's Ethernet address.
const SOURCE_OPTION: u8 = 1;
/// The option with the requested Ethernet address.
const TARGET_OPTION: u8 = 2;

/// The addresses of one end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) mac: MacAddr,
    pub(super) ip: Ipv6Addr,
}

/// A solicitation: the sender, and the requested address.
pub(super) struct Solicitation {
    pub(super) sender: Endpoint,
    pub(super) target: Ipv6Addr,
}

/// Parses a valid solicitation.
pub(super) fn parse_solicitation(frame: &[u8]) -> Option<Solicitation> {
    let (_, mac) = addresses(frame)?;
    let header = Ip6View::new(frame.get(LENGTH..)?)?;
    let message = Icmp6View::new(frame.get(LENGTH + ip6::LENGTH..)?.get(..MESSAGE_LENGTH)?)?;
    let pseudo = header.pseudo_header(header.next_header(), header.payload_length().into());
    let is_sound = read_u16(frame, 12) == Some(EtherType::IP6.0)
        && header.hop_limit() == MAX_HOP_LIMIT
        && message.kind() == icmp6::kind::NEIGHBOUR_SOLICITATION
        && message.code() == 0
        && message.checksum_is_right(pseudo);
    let target = message.target().filter(|_| is_sound)?;
    Some(Solicitation { sender: Endpoint { mac, ip: header.source() }, target })
}

/// Parses the addresses of an advertisement.
pub(super) fn parse_advertisement(frame: &[u8]) -> Option<Endpoint> {
    let message = frame.get(LENGTH + ip6::LENGTH..)?.get(..MESSAGE_LENGTH)?;
    let view = Icmp6View::new(message)?;
    let is_advertisement =
        read_u16(frame, 12) == Some(EtherType::IP6.0) && view.kind() == icmp6::kind::NEIGHBOUR_ADVERTISEMENT;
    let ip = view.target().filter(|_| is_advertisement)?;
    Some(Endpoint { mac: MacAddr(*message.last_chunk()?), ip })
}

/// Creates a solicitation for `target`.
pub(super) fn solicit(cx: &mut Context, sender: Endpoint, target: Ipv6Addr) -> Option<Packet> {
    let [.., high, middle, low] = target.octets();
    // The solicited-node multicast group, which contains all addresses with these last bytes, and its Ethernet address.
    let ip = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, high, middle, low]);
    let to = Endpoint { mac: MacAddr([0x33, 0x33, 0xff, high, middle, low]), ip };
    frame(cx, sender, to, icmp6::kind::NEIGHBOUR_SOLICITATION, 0, target, (SOURCE_OPTION, sender.mac))
}

/// Creates an advertisement of `owner` for `requester`.
pub(super) fn advertise(cx: &mut Context, owner: Endpoint, requester: Endpoint) -> Option<Packet> {
    let kind = icmp6::kind::NEIGHBOUR_ADVERTISEMENT;
    frame(cx, owner, requester, kind, SOLICITED_FROM_ROUTER, owner.ip, (TARGET_OPTION, owner.mac))
}

fn frame(
    cx: &mut Context,
    from: Endpoint,
    to: Endpoint,
    kind: u8,
    parameter: u32,
    target: Ipv6Addr,
    option: (u8, MacAddr),
) -> Option<Packet> {
    let mut bytes = [0; LENGTH + ip6::LENGTH + MESSAGE_LENGTH];
    let (link, rest) = bytes.split_first_chunk_mut()?;
    *link = ethernet(to.mac, from.mac, EtherType::IP6);
    let (header, message) = rest.split_at_mut_checked(ip6::LENGTH)?;
    let mut header = Ip6ViewMut::new(header)?;
    header.set_version_class_flow(6 << 28);
    header.set_payload_length(MESSAGE_LENGTH as u16);
    header.set_next_header(protocol::ICMP6);
    header.set_hop_limit(MAX_HOP_LIMIT);
    header.set_source(from.ip);
    header.set_destination(to.ip);
    let pseudo = header.view().pseudo_header(protocol::ICMP6, MESSAGE_LENGTH as u32);
    let (address, link) = message.get_mut(icmp6::LENGTH..)?.split_first_chunk_mut::<16>()?;
    *address = target.octets();
    // The length is in units of eight bytes.
    let [option_type, length, mac @ ..] = link.first_chunk_mut::<8>()?;
    (*option_type, *length, *mac) = (option.0, 1, option.1.0);
    let mut view = Icmp6ViewMut::new(message)?;
    view.set_kind(kind);
    view.set_parameter(parameter);
    view.fill_checksum(pseudo);
    cx.packet(&bytes)
}
