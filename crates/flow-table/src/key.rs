//! Keys: the match fields of one packet.

use crate::Field;
use crate::field::Nature;
use crate::layout::{NARROW_WORDS, NETWORK_PRESENT, TRANSPORT_PRESENT, VLAN_PRESENT, Words};
use crate::tuple::fold;

/// The match fields of one packet.
///
/// The default key is that of an empty frame from port 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key {
    pub(crate) words: Words,
}

impl Key {
    /// The value of a field; `None` if the packet does not have it.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u128> {
        self.has(field).then(|| field.bit_range().read(&self.words))
    }

    /// Sets a field that the packet has. Returns false, and changes nothing, if it does not have it.
    pub(crate) fn set(&mut self, field: Field, value: u128) -> bool {
        let present = self.has(field);
        if present {
            field.bit_range().write(&mut self.words, value);
        }
        present
    }

    /// A hash of the packet's flow that is the same for both directions: of addresses, protocol, and ports of TCP, UDP and SCTP. Of
    /// packets that are not IP, of the Ethernet addresses and type, and of the IPv4 addresses of ARP. It spreads flows if the seed is
    /// random, and does not if it is zero.
    #[must_use]
    pub fn flow_hash(&self, seed: u64) -> u64 {
        let words = &self.words;
        let pair = |one: u64, other: u64| {
            let [one, other] = [one, other].map(|word| fold(word ^ seed, 0x9e37_79b9_7f4a_7c15));
            one.wrapping_add(other)
        };
        // Ends of a direction are hashed together with their port, so that no sum mixes them.
        let has_ports = matches!(self.protocol(), 6 | 17 | 132) && self.presence() & TRANSPORT_PRESENT != 0;
        let (source, destination) =
            if has_ports { (words[3] >> 48, words[3] >> 32 & 0xffff) } else { (0, 0) };
        let end = |high: u64, low: u64, port: u64| {
            fold(high ^ seed.rotate_left(17), low ^ 0xe703_7ed1_a0b4_28db) ^ port
        };
        let sum = match self.eth_type() {
            0x0800 => pair(end(0, words[4] >> 32, source), end(0, words[4] & 0xffff_ffff, destination)),
            0x86dd => pair(end(words[4], words[5], source), end(words[6], words[7], destination)),
            _ => {
                let [source, destination] = match self.eth_type() {
                    0x0806 => [words[4] >> 32, words[4] & 0xffff_ffff],
                    _ => [0; 2],
                };
                pair(end(source, words[2] >> 16, 0), end(destination, words[1] >> 16, 0))
            }
        };
        fold(sum ^ u64::from(self.protocol()), 0xa076_1d64_78bd_642f ^ u64::from(self.eth_type()) << 48)
    }

    /// Whether the packet has a field.
    fn has(&self, field: Field) -> bool {
        let has_transport = self.presence() & TRANSPORT_PRESENT != 0;
        let nature = Nature {
            vlan: self.has_vlan(),
            eth_type: Some(self.eth_type()),
            protocol: Some(self.protocol()),
            icmp_type: has_transport.then_some((self.words[3] >> 48) as u8),
        };
        self.presence() & field.presence() == field.presence() && field.belongs(nature)
    }

    pub(crate) fn eth_type(&self) -> u16 {
        (self.words[0] >> 16) as u16
    }

    pub(crate) fn protocol(&self) -> u8 {
        (self.words[1] >> 8) as u8
    }

    pub(crate) fn has_vlan(&self) -> bool {
        self.words[0] & VLAN_PRESENT != 0
    }

    pub(crate) fn presence(&self) -> u64 {
        self.words[2]
    }

    /// Replaces metadata bits (OpenFlow 1.3.5, 5.9, Write-Metadata).
    pub(crate) fn write_metadata(&mut self, value: u64, mask: u64) {
        self.words[8] = self.words[8] & !mask | value & mask;
    }

    /// The change of the fields when a VLAN tag is pushed (OpenFlow 1.3.5, 5.12.1): its values are those of the tag
    /// outside until now, or zero.
    pub(crate) fn push_vlan(&mut self) {
        if !self.has_vlan() {
            self.words[0] = self.words[0] & !0xffff | VLAN_PRESENT;
        }
    }

    /// The change of the fields when an MPLS header is pushed (OpenFlow 1.3.5, 5.12.1): the label is that of the header
    /// outside until now, or zero, and the fields inside are no longer visible.
    pub(crate) fn push_mpls(&mut self, eth_type: u16) {
        let inside = matches!(self.eth_type(), 0x8847 | 0x8848) && self.presence() & NETWORK_PRESENT != 0;
        let shim = if inside { self.words[3] & 0xffff_fe00 } else { 1 << 8 };
        self.words[0] = self.words[0] & !0xffff_0000 | u64::from(eth_type) << 16;
        self.words[1] &= !0xffff;
        self.words[2] = self.words[2] & !0xffff | NETWORK_PRESENT;
        self.words[3] = shim;
        for word in [4, 5, 6, 7, 10, 11, 12, 13] {
            self.words[word] = 0;
        }
    }

    /// The change of the fields when a header of provider backbone bridging is pushed (OpenFlow 1.3.5, 5.12.1): the number of
    /// the service is that of the header outside until now, or zero, and the fields inside are no longer visible.
    pub(crate) fn push_pbb(&mut self, eth_type: u16) {
        let inside = self.eth_type() == 0x88e7 && self.presence() & NETWORK_PRESENT != 0;
        let service = if inside { self.words[3] & 0xff_ffff } else { 0 };
        self.words[0] = self.words[0] & !0xffff_ffff | u64::from(eth_type) << 16;
        self.words[1] &= !0xffff;
        self.words[2] = self.words[2] & !0xffff | NETWORK_PRESENT;
        self.words[3] = service;
        for word in [4, 5, 6, 7, 10, 11, 12, 13] {
            self.words[word] = 0;
        }
    }

    /// Whether the words beyond the narrow ones are all zero.
    #[inline(always)]
    pub(crate) fn is_narrow(&self) -> bool {
        self.words[NARROW_WORDS..].iter().fold(0, |all, word| all | word) == 0
    }

    /// The first `N` words.
    #[inline(always)]
    pub(crate) fn first_words<const N: usize>(&self) -> &[u64; N] {
        self.words.first_chunk().unwrap_or(&[0; N])
    }
}

impl std::fmt::Debug for Key {
    /// Lists the fields that the packet has.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = formatter.debug_map();
        for &field in Field::ALL {
            if let Some(value) = self.get(field) {
                map.entry(&field, &format_args!("{value:#x}"));
            }
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ingress;
    use std::collections::BTreeSet;

    fn udp(source: [u8; 2], destination: [u8; 2]) -> Key {
        let mut frame = vec![2; 12];
        frame.extend([
            8,
            0,
            0x45,
            0,
            0,
            28,
            0,
            0,
            0,
            0,
            64,
            17,
            0,
            0,
            10,
            0,
            0,
            source[0],
            10,
            0,
            0,
            destination[0],
        ]);
        frame.extend([0, source[1], 0, destination[1], 0, 8, 0, 0]);
        Key::extract(&frame, &Ingress::default()).0
    }

    /// A message of ARP between stations with these last bytes of their addresses.
    fn arp(source: [u8; 2], destination: [u8; 2]) -> Key {
        let mut frame = vec![2, 0, 0, 0, 0, destination[0], 2, 0, 0, 0, 0, source[0], 8, 6];
        frame.extend([0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, source[0], 10, 0, 0, source[1]]);
        frame.extend([2, 0, 0, 0, 0, destination[0], 10, 0, 0, destination[1]]);
        Key::extract(&frame, &Ingress::default()).0
    }

    #[test]
    fn frames_that_are_not_ip_are_spread_by_their_addresses() {
        for at in 0..4 {
            let mut hashes = BTreeSet::new();
            for last in 1..100 {
                let mut ends = [101, 102, 103, 104];
                ends[at] = last;
                let [source, destination] = [[ends[0], ends[1]], [ends[2], ends[3]]];
                assert_eq!(arp(source, destination).flow_hash(5), arp(destination, source).flow_hash(5));
                hashes.insert(arp(source, destination).flow_hash(5));
            }
            assert_eq!(hashes.len(), 99, "address {at}");
        }
        let other = |eth_type: u8, source: u8, destination: u8| {
            let frame = [2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 0x88, eth_type, 1, 2, 3, 4];
            Key::extract(&frame, &Ingress::default()).0.flow_hash(5)
        };
        let hashes: BTreeSet<u64> = [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 2), (1, 2, 4)]
            .map(|(eth_type, source, destination)| other(eth_type, source, destination))
            .into();
        assert_eq!((hashes.len(), other(1, 2, 3)), (5, other(1, 3, 2)));
    }

    #[test]
    fn both_directions_of_a_flow_have_one_hash() {
        let mut hashes = BTreeSet::new();
        let mut flows = 0;
        for source in 0..20 {
            for destination in 0..20 {
                let (one, other) = ([source, destination], [destination, 3]);
                assert_eq!(udp(one, other).flow_hash(5), udp(other, one).flow_hash(5));
                hashes.insert(udp(one, other).flow_hash(5));
                flows += 1;
            }
        }
        // None of these flows is the reverse of another.
        assert_eq!(hashes.len(), flows);
        assert_ne!(udp([1, 7], [2, 8]).flow_hash(5), udp([1, 8], [2, 7]).flow_hash(5));
        assert_ne!(udp([1, 7], [2, 8]).flow_hash(5), udp([1, 7], [2, 8]).flow_hash(6));
    }
}
