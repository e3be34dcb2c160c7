//! Headers of packets: their lengths, and how fields of them are written.

use packet::checksum::Sum;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Length of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Length of a VLAN tag, and the EtherTypes that announce one.
pub(super) const TAG: usize = 4;
pub(super) const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
/// Lengths of the headers without options.
pub(super) const IP4: usize = 20;
pub(super) const IP6: usize = 40;
pub(super) const TCP: usize = 20;
pub(super) const UDP: usize = 8;
/// IP protocol numbers.
pub(super) const TCP_NUMBER: u8 = 6;
pub(super) const UDP_NUMBER: u8 = 17;
/// IPv6 extension headers that may precede the transport header: hop-by-hop, routing, fragment, destination options.
pub(super) const EXTENSIONS: [u8; 4] = [0, 43, 44, 60];

/// Writes the length of an IP packet, and the checksum of an IPv4 header.
pub(super) fn put_length(ip: &mut [u8], is_ip6: bool, length: usize) {
    if is_ip6 {
        put(ip, 4, (length - IP6) as u16);
    } else {
        put(ip, 2, length as u16);
        put(ip, 10, 0);
        put(ip, 10, packet::checksum::internet(ip));
    }
}

/// Sum of the pseudo-header. The destination address is the one in the IP header: routing headers with segments left
/// are not considered, because the kernel does not coalesce such packets.
pub(super) fn pseudo(ip: &[u8], is_ip6: bool, protocol: u8, length: u16) -> Sum {
    if is_ip6 {
        let address =
            |at: usize| ip.get(at..).and_then(<[u8]>::first_chunk).map_or([0; 16], |bytes: &[u8; 16]| *bytes);
        let [source, destination] = [8, 24].map(|at| Ipv6Addr::from(address(at)));
        Sum::ZERO.pseudo6(source, destination, protocol, length.into())
    } else {
        let address =
            |at: usize| ip.get(at..).and_then(<[u8]>::first_chunk).map_or([0; 4], |bytes: &[u8; 4]| *bytes);
        let [source, destination] = [12, 16].map(|at| Ipv4Addr::from(address(at)));
        Sum::ZERO.pseudo4(source, destination, protocol, length)
    }
}

/// Writes a two-byte field, if it is inside `bytes`.
pub(super) fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}
