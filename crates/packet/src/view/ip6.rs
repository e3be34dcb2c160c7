//! IPv6 headers and their chain of extension headers (RFC 8200).

use super::protocol;
use crate::checksum::Sum;
use core::fmt;
use core::net::Ipv6Addr;

/// The maximum number of extension headers walked. It bounds the cost of a packet that consists of headers.
pub const MAX_EXTENSIONS: usize = 16;

header! {
    /// An IPv6 header and what follows it.
    40 bytes;
    /// Version, traffic class and flow label together.
    version_class_flow, set_version_class_flow: u32 = 0;
    /// The length of the payload, in bytes.
    payload_length, set_payload_length: u16 = 4;
    /// The protocol of the next header.
    next_header, set_next_header: u8 = 6;
    /// Remaining hops.
    hop_limit, set_hop_limit: u8 = 7;
    /// The sender's address.
    source, set_source: Ipv6Addr = 8;
    /// The receiver's address.
    destination, set_destination: Ipv6Addr = 24;
}

impl<'a> View<'a> {
    /// The version, 6 in a sound header.
    #[inline]
    pub fn version(&self) -> u8 {
        self.fixed[0] >> 4
    }

    /// The traffic class: DSCP and ECN together.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow() >> 20) as u8
    }

    /// The differentiated services code point, 0 to 63.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// The congestion notification bits, 0 to 3.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// The flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow() & 0xf_ffff
    }

    /// The payload, cut to the payload length and to the available bytes.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.rest[..self.rest.len().min(usize::from(self.payload_length()))]
    }

    /// Walks the extension headers to the transport header.
    pub fn transport(&self) -> Transport<'a> {
        let mut found = Transport {
            protocol: self.next_header(),
            offset: LENGTH,
            fragment: None,
            bytes: self.payload(),
            complete: true,
        };
        for _ in 0..MAX_EXTENSIONS {
            if !found.step() {
                return found;
            }
        }
        found.complete = !is_extension(found.protocol);
        found
    }

    /// The sum of the pseudo header, for a transport checksum over `length` bytes.
    #[inline]
    pub fn pseudo_header(&self, protocol: u8, length: u32) -> Sum {
        Sum::ZERO.pseudo6(self.source(), self.destination(), protocol, length)
    }
}

impl ViewMut<'_> {
    /// Sets version 6, the traffic class and the 20-bit flow label.
    #[inline]
    pub fn set_class_and_flow(&mut self, class: u8, flow: u32) {
        self.set_version_class_flow(6 << 28 | u32::from(class) << 20 | flow & 0xf_ffff);
    }
}

/// The header after the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport<'a> {
    /// Its protocol, or that of the extension header where the walk ended.
    pub protocol: u8,
    /// Its offset in bytes from the start of the IPv6 header.
    pub offset: usize,
    /// The fragment header, if the walk passed one.
    pub fragment: Option<Fragment>,
    /// The bytes from that header on.
    pub bytes: &'a [u8],
    /// Whether the walk reached a header that is not an extension; false for a truncated or overlong chain.
    pub complete: bool,
}

/// An IPv6 fragment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of this fragment's payload in the whole packet, in bytes.
    pub offset: u16,
    /// Whether further fragments follow.
    pub more: bool,
    /// The identification, equal in all fragments of a packet.
    pub identification: u32,
}

impl Transport<'_> {
    /// Steps over one extension header; returns false at the end of the walk.
    fn step(&mut self) -> bool {
        if !is_extension(self.protocol) || self.fragment.is_some_and(|f| f.offset != 0) {
            return false;
        }
        let &[next, units, high, low, a, b, c, d, ..] = self.bytes else {
            self.complete = false;
            return false;
        };
        let length = match self.protocol {
            protocol::FRAGMENT => {
                let field = u16::from_be_bytes([high, low]);
                let identification = u32::from_be_bytes([a, b, c, d]);
                self.fragment = Some(Fragment { offset: field & !7, more: field & 1 != 0, identification });
                8
            }
            // RFC 4302: the authentication header counts in units of four bytes.
            protocol::AH => (usize::from(units) + 2) * 4,
            _ => (usize::from(units) + 1) * 8,
        };
        let Some(bytes) = self.bytes.get(length..) else {
            self.complete = false;
            return false;
        };
        self.protocol = next;
        self.offset += length;
        self.bytes = bytes;
        true
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source(), self.destination());
        let (next, hops, length) = (self.next_header(), self.hop_limit(), self.payload_length());
        write!(f, "{source} > {destination} protocol {next} hop limit {hops} length {length}")
    }
}

/// Whether a protocol number is that of an extension header that the walk can skip.
const fn is_extension(protocol: u8) -> bool {
    use protocol::*;
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION | AH | MOBILITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        bytes.extend_from_slice(payload);
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_class_and_flow(0xb9, 0x12345);
        view.set_payload_length(payload.len() as u16);
        view.set_next_header(next);
        view.set_hop_limit(7);
        view.set_source("fe80::1".parse().unwrap());
        view.set_destination("fe80::2".parse().unwrap());
        bytes
    }

    #[test]
    fn reads_and_writes() {
        let bytes = packet(17, &[1; 8]);
        let view = View::new(&bytes).unwrap();
        assert_eq!((view.version(), view.dscp(), view.ecn(), view.flow_label()), (6, 46, 1, 0x12345));
        assert_eq!(view.to_string(), "fe80::1 > fe80::2 protocol 17 hop limit 7 length 8");
        let transport = view.transport();
        assert_eq!((transport.protocol, transport.offset, transport.complete), (17, 40, true));
    }

    #[test]
    fn walks_extensions() {
        let mut chain = vec![44, 0, 0, 0, 0, 0, 0, 0];
        chain.extend([51, 0, 0, 1, 0, 0, 0, 9]);
        chain.extend([60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        chain.extend([6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77]);
        let bytes = packet(0, &chain);
        let transport = View::new(&bytes).unwrap().transport();
        assert_eq!((transport.protocol, transport.offset, transport.bytes), (6, 84, &[77][..]));
        assert_eq!(transport.fragment, Some(Fragment { offset: 0, more: true, identification: 9 }));
        assert!(transport.complete);
        for cut in 40..bytes.len() - 1 {
            let transport = View::new(&bytes[..cut]).unwrap().transport();
            assert!(!transport.complete, "{cut}");
        }
    }

    #[test]
    fn a_later_fragment_ends_the_walk() {
        let bytes = packet(44, &[60, 0, 0, 8, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0]);
        let transport = View::new(&bytes).unwrap().transport();
        assert_eq!((transport.protocol, transport.offset), (60, 48));
    }

    #[test]
    fn endless_chains_end() {
        let bytes = packet(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(1000));
        let transport = View::new(&bytes).unwrap().transport();
        assert_eq!((transport.offset, transport.complete), (40 + 8 * MAX_EXTENSIONS, false));
    }
}
