//! Which of several shards a packet belongs to: by a symmetric hash of its addresses, or by the numbers of a translator.
//! Shards are engines that run one configuration together.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::socket_filter::Mix;

/// EtherType of IPv4.
pub const IP4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IP6: u16 = 0x86dd;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherTypes of tags with another type behind them.
pub const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags that are looked behind.
pub const MAX_TAGS: usize = 2;
/// Types of ICMP messages that hold the header of a packet (RFC 792).
pub const ICMP_ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// Types of ICMPv6 messages that hold the header of a packet (RFC 4443).
pub const ICMP6_ERRORS: core::ops::RangeInclusive<u8> = 1..=4;
/// Type of the ICMPv6 message that answers about an address (RFC 4861).
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Types of the ICMPv6 messages about neighbours (RFC 4861).
pub const NEIGHBOUR_DISCOVERY: core::ops::RangeInclusive<u8> = 133..=137;
/// Operation of an ARP message that answers (RFC 826).
pub const ARP_REPLY: u16 = 2;

/// The step for each word of the addresses.
pub const WORD_MIX: Mix = Mix(0x9e37_79b1, 15, 0x85eb_ca77);
/// The step for the sum of these.
pub const SUM_MIX: Mix = Mix(0xc2b2_ae3d, 16, 0x27d4_eb2f);

/// Numbers that a translator gives to flows, a part of them in each shard, so that replies show which shard has the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DividedRange {
    /// Ports of an address, both ends included.
    Ports(Ipv4Addr, u16, u16),
    /// Addresses, both ends included.
    Addresses(Ipv4Addr, Ipv4Addr),
}

impl DividedRange {
    /// Whether a reply could belong to both.
    pub fn overlaps(&self, other: &DividedRange) -> bool {
        let ends = |range: &DividedRange| match *range {
            DividedRange::Ports(address, ..) => (address, address),
            DividedRange::Addresses(first, last) => (first, last),
        };
        let ((first, last), (other_first, other_last)) = (ends(self), ends(other));
        match (self, other) {
            (DividedRange::Ports(one, low, high), DividedRange::Ports(two, other_low, other_high)) => {
                one == two && low <= other_high && other_low <= high
            }
            _ => first <= other_last && other_first <= last,
        }
    }
}

/// The first and the last of the numbers 0 to `top` that shard `index` of `count` has. `None` if there are fewer numbers than
/// shards.
pub fn part(top: u32, index: u32, count: u32) -> Option<(u32, u32)> {
    let start = |index: u32| (u64::from(top) + 1) * u64::from(index) / u64::from(count.max(1));
    let (first, end) = (start(index), start(index + 1));
    (end > first).then(|| (first as u32, (end - 1) as u32))
}

/// The shard that has `number` of the numbers 0 to `top`.
pub fn owner(number: u32, top: u32, count: u32) -> u32 {
    let owns = |index: &u32| part(top, *index, count).is_some_and(|(_, last)| number <= last);
    (0..count).find(owns).unwrap_or(0)
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To one shard.
    Shard(u32),
    /// To each shard, a copy.
    All,
}

/// How packets are spread over shards.
///
/// Both directions of a flow and all its fragments go to the same shard: a hash of the two addresses decides. An ICMP error
/// goes where the packet went that it is about. Replies to translated packets go to the shard that has their port or address.
/// Requests for addresses, and everything that is not IP, go to the first shard; answers about addresses go to all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steering {
    shards: u32,
    ranges: Vec<DividedRange>,
}

impl Steering {
    /// For this number of shards, without translators.
    pub fn new(shards: u32) -> Steering {
        Steering { shards: shards.max(1), ranges: Vec::new() }
    }

    /// Whether this range is divided.
    pub fn divides(&self, range: DividedRange) -> bool {
        self.ranges.contains(&range)
    }

    /// Divides a range. Returns false, and changes nothing, if it overlaps another one. The same range may be divided twice.
    pub fn divide(&mut self, range: DividedRange) -> bool {
        if self.ranges.contains(&range) {
            return true;
        }
        let is_free = !self.ranges.iter().any(|other| other.overlaps(&range));
        if is_free {
            self.ranges.push(range);
        }
        is_free
    }

    /// Where an Ethernet frame goes.
    pub fn of_frame(&self, frame: &[u8]) -> Destination {
        let mut at = 12;
        let mut kind = word(frame, at);
        for _ in 0..MAX_TAGS {
            if kind.is_some_and(|kind| TAGS.contains(&kind)) {
                at += 4;
                kind = word(frame, at);
            }
        }
        let body = frame.get(at + 2..).unwrap_or_default();
        match kind {
            Some(IP4 | IP6) => self.of_ip(body),
            Some(ARP) if word(body, 6) == Some(ARP_REPLY) => Destination::All,
            _ => Destination::Shard(0),
        }
    }

    /// Where an IP packet goes.
    pub fn of_ip(&self, packet: &[u8]) -> Destination {
        match packet.first().map(|first| first >> 4) {
            Some(4) => Destination::Shard(self.of_ip4(packet, true)),
            Some(6) => self.of_ip6(packet, true),
            _ => Destination::Shard(0),
        }
    }

    fn of_ip4(&self, packet: &[u8], look_inside: bool) -> u32 {
        let (Some(source), Some(destination)) = (address(packet, 12), address(packet, 16)) else { return 0 };
        let is_first = word(packet, 6).is_some_and(|fragment| fragment & 0x1fff == 0);
        let length = usize::from(packet.first().copied().unwrap_or_default() & 0xf) * 4;
        let body = if is_first { packet.get(length..).unwrap_or_default() } else { &[] };
        let protocol = packet.get(9).copied().unwrap_or_default();
        if protocol == 1 && look_inside && body.first().is_some_and(|kind| ICMP_ERRORS.contains(kind)) {
            // The packet inside went the other way: its source is what the translator gave it.
            return self.of_ip4(body.get(8..).unwrap_or_default(), false);
        }
        let has_ports = protocol == 6 || protocol == 17;
        let (receiver, at) = if look_inside { (destination, 2) } else { (source, 0) };
        let port = if has_ports { word(body, at) } else { None };
        self.translated(receiver, port).unwrap_or_else(|| self.spread(hash(&[source, destination])))
    }

    fn of_ip6(&self, packet: &[u8], look_inside: bool) -> Destination {
        let Some(body) = packet.get(40..) else { return Destination::Shard(0) };
        if packet.get(6) == Some(&58)
            && let Some(kind) = body.first()
        {
            if ICMP6_ERRORS.contains(kind) && look_inside {
                return self.of_ip6(body.get(8..).unwrap_or_default(), false);
            }
            if NEIGHBOUR_DISCOVERY.contains(kind) {
                return if *kind == NEIGHBOUR_ADVERTISEMENT {
                    Destination::All
                } else {
                    Destination::Shard(0)
                };
            }
        }
        let mut words = [0; 8];
        for (index, word) in words.iter_mut().enumerate() {
            *word = address(packet, 8 + index * 4).unwrap_or_default();
        }
        Destination::Shard(self.spread(hash(&words)))
    }

    /// The shard that translates what comes to this address and port.
    fn translated(&self, receiver: u32, port: Option<u16>) -> Option<u32> {
        self.ranges.iter().find_map(|range| {
            let (number, first, last) = match *range {
                DividedRange::Ports(address, first, last) if address.to_bits() == receiver => {
                    (u32::from(port?), first.into(), last.into())
                }
                DividedRange::Ports(..) => return None,
                DividedRange::Addresses(first, last) => (receiver, first.to_bits(), last.to_bits()),
            };
            let is_in = (first..=last).contains(&number);
            is_in.then(|| owner(number - first, last - first, self.shards))
        })
    }

    /// The number of shards.
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// The divided ranges.
    pub fn ranges(&self) -> &[DividedRange] {
        &self.ranges
    }

    /// The shard of a hash: by its upper half, so that 32 bits are enough for the product.
    fn spread(&self, hash: u32) -> u32 {
        (hash >> 16).wrapping_mul(self.shards) >> 16
    }
}

/// A hash that does not depend on the order of the words, so that it is the same in both directions.
fn hash(words: &[u32]) -> u32 {
    let sum = words.iter().fold(0u32, |sum, word| sum.wrapping_add(WORD_MIX.apply(*word)));
    SUM_MIX.apply(sum)
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

fn address(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| Ipv4Addr::from(*bytes).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Destination::{All, Shard as One};

    fn udp(source: [u8; 4], source_port: u16, destination: [u8; 4], port: u16) -> Vec<u8> {
        let mut packet = [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0].to_vec();
        packet.extend(source.into_iter().chain(destination));
        packet.extend(source_port.to_be_bytes().into_iter().chain(port.to_be_bytes()));
        packet.extend([0, 8, 0, 0]);
        packet
    }

    fn error_about(packet: &[u8], from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
        let mut error = [0x45, 0, 0, 56, 0, 1, 0, 0, 64, 1, 0, 0].to_vec();
        error.extend(from.into_iter().chain(to).chain([3, 1, 0, 0, 0, 0, 0, 0]));
        error.extend(packet);
        error
    }

    fn framed(kind: &[u8], body: &[u8]) -> Vec<u8> {
        [&[2; 12], kind, body].concat()
    }

    const SERVER: [u8; 4] = [9, 9, 9, 9];

    #[test]
    fn both_directions_fragments_and_errors_meet() {
        let steering = Steering::new(4);
        let mut hits = [0; 4];
        for client in 0..=255 {
            let client = [10, 0, 7, client];
            let there = steering.of_ip(&udp(client, 5000, SERVER, 53));
            let One(shard) = there else { panic!("a shard") };
            hits[shard as usize] += 1;
            assert_eq!(steering.of_ip(&udp(SERVER, 53, client, 5000)), there);
            assert_eq!(steering.of_frame(&framed(&[8, 0], &udp(client, 1, SERVER, 2))), there);
            assert_eq!(steering.of_frame(&framed(&[0x81, 0, 0, 5, 8, 0], &udp(client, 1, SERVER, 2))), there);
            let mut fragment = udp(client, 0xffff, SERVER, 0xffff);
            fragment[7] = 9;
            assert_eq!(steering.of_ip(&fragment), there);
            let sent = udp(client, 5000, SERVER, 53);
            assert_eq!(steering.of_ip(&error_about(&sent, [7, 7, 7, 7], client)), there);
        }
        assert!(hits.iter().all(|hits| (40..90).contains(hits)), "{hits:?}");
    }

    #[test]
    fn replies_to_translated_packets_find_their_owner() {
        let mut steering = Steering::new(2);
        let public = [1, 0, 0, 1];
        assert!(steering.divide(DividedRange::Ports(public.into(), 1024, 65_535)));
        assert!(steering.divide(DividedRange::Ports(public.into(), 1024, 65_535)), "shared patterns");
        assert!(!steering.divide(DividedRange::Ports(public.into(), 2000, 3000)));
        assert!(steering.divide(DividedRange::Addresses([2, 0, 0, 0].into(), [2, 0, 0, 3].into())));
        for (port, owner) in [(1024, 0), (33_279, 0), (33_280, 1), (65_535, 1)] {
            assert_eq!(steering.of_ip(&udp(SERVER, 53, public, port)), One(owner));
            let sent = udp(public, port, SERVER, 53);
            assert_eq!(steering.of_ip(&error_about(&sent, [7, 7, 7, 7], public)), One(owner));
        }
        for (last, owner) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            assert_eq!(steering.of_ip(&udp(SERVER, 53, [2, 0, 0, last], 7)), One(owner));
        }
    }

    #[test]
    fn requests_go_to_the_first_shard_and_answers_to_all() {
        let steering = Steering::new(3);
        let arp = |operation| framed(&[8, 6], &[0, 1, 8, 0, 6, 4, 0, operation, 0, 0]);
        assert_eq!([1, 2].map(|operation| steering.of_frame(&arp(operation))), [One(0), All]);
        let neighbour =
            |kind| framed(&[0x86, 0xdd], &[&[0x60, 0, 0, 0, 0, 8, 58, 255][..], &[7; 32], &[kind]].concat());
        assert_eq!([135, 136].map(|kind| steering.of_frame(&neighbour(kind))), [One(0), All]);
        assert_eq!(steering.of_frame(&framed(&[0x88, 0x63], &[1; 30])), One(0));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut steering = Steering::new(2);
        steering.divide(DividedRange::Ports([1, 0, 0, 1].into(), 1, 2));
        let sound = framed(&[8, 0], &error_about(&udp(SERVER, 1, [1, 0, 0, 1], 2), SERVER, [1, 0, 0, 1]));
        for length in 0..sound.len() {
            steering.of_frame(&sound[..length]);
            steering.of_ip(&sound[..length]);
            for value in [0, 0x4f, 0x60, 0xff] {
                let mut bytes = sound.clone();
                bytes[length] = value;
                steering.of_frame(&bytes);
            }
        }
    }

    #[test]
    fn parts_cover_each_number_once() {
        for (top, count) in [(64_511, 2), (64_511, 7), (3, 4), (u32::MAX, 3)] {
            let mut next = 0;
            for index in 0..count {
                let (first, last) = part(top, index, count).expect("enough numbers");
                assert_eq!(u64::from(first), next);
                next = u64::from(last) + 1;
                for number in [first, last, first + (last - first) / 2] {
                    assert_eq!(owner(number, top, count), index);
                }
            }
            assert_eq!(next, u64::from(top) + 1);
        }
        assert_eq!(part(1, 0, 3), None);
    }

    #[test]
    fn ranges_overlap_by_address_and_port() {
        let ports = |last, low, high| DividedRange::Ports(Ipv4Addr::new(1, 0, 0, last), low, high);
        let addresses =
            |low, high| DividedRange::Addresses(Ipv4Addr::new(1, 0, 0, low), Ipv4Addr::new(1, 0, 0, high));
        assert!(ports(1, 10, 20).overlaps(&ports(1, 20, 30)));
        assert!(!ports(1, 10, 20).overlaps(&ports(1, 21, 30)));
        assert!(!ports(1, 10, 20).overlaps(&ports(2, 10, 20)));
        assert!(addresses(1, 4).overlaps(&ports(4, 1, 2)));
        assert!(!addresses(1, 3).overlaps(&addresses(4, 5)));
    }
}
