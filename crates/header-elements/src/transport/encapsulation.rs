//! Encapsulation in UDP and IPv4.

use core::net::Ipv4Addr;

use packet::{Packet, UdpViewMut, protocol, view};

use crate::ip::HeaderTemplate;

/// Length of both headers.
const HEADERS_LENGTH: usize = view::ip4::LENGTH + view::udp::LENGTH;

/// Makes room for both headers at the front of a packet. Returns false if the packet would be too long.
#[inline(always)]
pub(super) fn make_room(packet: &mut Packet) -> bool {
    packet.prepend(HEADERS_LENGTH).is_some()
}

/// Writes both headers into the room made for them.
#[inline(always)]
pub(super) fn write(
    packet: &mut Packet,
    header: &mut HeaderTemplate,
    [source, destination]: [Ipv4Addr; 2],
    [source_port, destination_port]: [u16; 2],
    checksum: bool,
) {
    let bytes = packet.data_mut();
    let (whole, length) = (bytes.len() as u16, (bytes.len() - view::ip4::LENGTH) as u16);
    header.write(bytes, whole, destination);
    if let Some(mut udp) = bytes.get_mut(view::ip4::LENGTH..).and_then(UdpViewMut::new) {
        udp.set_source(source_port);
        udp.set_destination(destination_port);
        udp.set_length(length);
        udp.set_checksum(0);
        if checksum {
            udp.fill_checksum(HeaderTemplate::pseudo(protocol::UDP, source, destination, length));
        }
    }
    packet.set_network(0, view::ip4::LENGTH);
}
