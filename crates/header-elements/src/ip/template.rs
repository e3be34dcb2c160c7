//! The IPv4 header that an encapsulation prepends to every packet.

use core::net::Ipv4Addr;

use packet::Ip4ViewMut;
use packet::checksum::Sum;

/// An IPv4 header without options, in which length, identification and destination are set per packet.
#[derive(Clone, Debug)]
pub(crate) struct HeaderTemplate {
    tos: u8,
    fragment: u16,
    ttl: u8,
    protocol: u8,
    source: Ipv4Addr,
    /// The checksum of the constant fields, so that each header costs five additions.
    known: Sum,
    identification: u16,
}

impl HeaderTemplate {
    /// A TTL of 250, and identifications from 0 on.
    pub(crate) fn new(protocol: u8, source: Ipv4Addr) -> HeaderTemplate {
        let known = Sum::ZERO;
        let mut header =
            HeaderTemplate { tos: 0, fragment: 0, ttl: 250, protocol, source, known, identification: 0 };
        header.sum();
        header
    }

    /// Sets the type of service, fragment field and TTL.
    pub(crate) fn with(mut self, tos: u8, fragment: u16, ttl: u8) -> HeaderTemplate {
        (self.tos, self.fragment, self.ttl) = (tos, fragment, ttl);
        self.sum();
        self
    }

    /// Sets the source address.
    pub(crate) fn set_source(&mut self, source: Ipv4Addr) {
        self.source = source;
        self.sum();
    }

    /// Sets the identification of the next header.
    #[inline]
    pub(crate) fn set_identification(&mut self, identification: u16) {
        self.identification = identification;
    }

    fn sum(&mut self) {
        self.known = Sum::ZERO
            .word(u16::from_be_bytes([0x45, self.tos]))
            .word(self.fragment)
            .word(u16::from_be_bytes([self.ttl, self.protocol]))
            .bytes(&self.source.octets());
    }

    /// Writes the header of a packet of `length` bytes to the start of `bytes`, with the next identification.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &mut [u8], length: u16, destination: Ipv4Addr) {
        let Some(mut header) = Ip4ViewMut::new(bytes) else { return };
        header.set_version_length(0x45);
        header.set_tos(self.tos);
        header.set_total_length(length);
        header.set_identification(self.identification);
        header.set_fragment(self.fragment);
        header.set_ttl(self.ttl);
        header.set_protocol(self.protocol);
        header.set_source(self.source);
        header.set_destination(destination);
        let sum = self.known.word(length).word(self.identification).bytes(&destination.octets());
        header.set_checksum(sum.finish());
        self.identification = self.identification.wrapping_add(1);
    }

    /// The sum of the pseudo header for a transport checksum over `length` bytes.
    #[inline]
    pub(crate) fn pseudo(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr, length: u16) -> Sum {
        Sum::ZERO.pseudo4(source, destination, protocol, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Ip4View;

    #[test]
    fn headers_are_complete() {
        let mut template = HeaderTemplate::new(17, Ipv4Addr::new(10, 0, 0, 1)).with(0xb8, 0x4000, 7);
        for (identification, length) in [(0, 28), (1, 0xffff)] {
            let mut bytes = [0xaa; 20];
            template.write(&mut bytes, length, Ipv4Addr::new(255, 254, 253, 252));
            let ([high, low], [first, second]) = (length.to_be_bytes(), [bytes[10], bytes[11]]);
            let start = [0x45, 0xb8, high, low, 0, identification, 0x40, 0, 7, 17, first, second];
            assert_eq!(bytes, *[&start[..], &[10, 0, 0, 1, 255, 254, 253, 252]].concat());
            assert!(Ip4View::new(&bytes).unwrap().checksum_is_right());
        }
        template.set_source(Ipv4Addr::BROADCAST);
        let mut bytes = [0; 20];
        template.write(&mut bytes, 20, Ipv4Addr::UNSPECIFIED);
        assert_eq!(bytes[..10], [0x45, 0xb8, 0, 20, 0, 2, 0x40, 0, 7, 17]);
        assert_eq!(bytes[12..], [255, 255, 255, 255, 0, 0, 0, 0]);
        assert!(Ip4View::new(&bytes).unwrap().checksum_is_right());
        let mut short = [0; 19];
        template.write(&mut short, 20, Ipv4Addr::UNSPECIFIED);
        assert_eq!(short, [0; 19]);
    }
}
