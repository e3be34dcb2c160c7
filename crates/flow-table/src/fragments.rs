//! The ports of fragmented packets: later fragments get those of the first one.

use std::collections::VecDeque;
use std::time::Duration;

use flow::{Seed, Table};

use crate::extract::Fragment;
use crate::key::Key;
use crate::layout::{LATER_FRAGMENT, TRANSPORT_PRESENT};

/// Time for which the ports of a first fragment are kept: RFC 8200 (4.5) gives up reassembly after 60 seconds, Linux
/// after 30 (IPv4) or 60 (IPv6).
const LIFETIME: Duration = Duration::from_secs(60);

/// Memory for one packet: its key and value, its share of the index, and its place in the order of expiry.
const BYTES_PER_PACKET: usize = 256;

/// Counters of a [`Fragments`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FragmentCounters {
    /// First fragments whose ports were remembered.
    pub remembered: u64,
    /// Later fragments that got the ports of the first one.
    pub resolved: u64,
    /// Later fragments without a known first one. Matches on ports do not match them.
    pub unresolved: u64,
    /// First fragments whose ports differ from those of an earlier one with the same identification. The earlier ones
    /// stay, so that an attacker cannot divert fragments that are under way.
    pub conflicting: u64,
    /// Packets that were forgotten to make room before their lifetime ended.
    pub evicted: u64,
    /// Packets that were forgotten because their lifetime ended.
    pub expired: u64,
}

/// What identifies a packet that was fragmented: network header fields, ingress port, VLAN, tunnel, and identification.
type Identity = [u128; 4];

/// The fields that only the first fragment has.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FirstFragment {
    ports: u64,
    /// For IPv6, the fragment header of later fragments names an extension header, not the protocol.
    protocol: u8,
}

/// Remembers the ports of first fragments, for a bounded number of packets.
///
/// A fragment that arrives before the first one is not resolved. The table does not store fragments.
pub struct Fragments {
    packets: Table<Identity, FirstFragment>,
    /// Identities in the order of their arrival, which is the order of expiry, with the time of expiry.
    order: VecDeque<(Duration, Identity)>,
    capacity: usize,
    counters: FragmentCounters,
}

impl Fragments {
    /// A table for `capacity` packets. Its memory grows with use.
    #[must_use]
    pub fn new(capacity: usize, seed: Seed) -> Self {
        Self {
            packets: Table::new(seed),
            order: VecDeque::new(),
            capacity: capacity.max(1),
            counters: FragmentCounters::default(),
        }
    }

    /// The most memory that a table for `capacity` packets takes, in bytes.
    #[must_use]
    pub fn max_bytes(capacity: usize) -> usize {
        capacity.saturating_mul(BYTES_PER_PACKET)
    }

    /// Number of packets whose ports are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The counters since the start.
    #[must_use]
    pub fn counters(&self) -> FragmentCounters {
        self.counters
    }

    /// Completes the key of a fragment: remembers the ports of a first one, and adds them to a later one.
    pub fn resolve(&mut self, key: &mut Key, fragment: Fragment, now: Duration) {
        self.expire(now);
        let identity = identity(key, fragment);
        let known = self.packets.get(identity).copied();
        if key.presence() & LATER_FRAGMENT == 0 {
            if key.presence() & TRANSPORT_PRESENT != 0 {
                let first = FirstFragment { ports: key.words[3] >> 32, protocol: key.protocol() };
                self.remember(identity, first, known, now);
            }
        } else if let Some(first) = known {
            key.words[1] = key.words[1] & !0xff00 | u64::from(first.protocol) << 8;
            key.words[2] |= TRANSPORT_PRESENT;
            key.words[3] |= first.ports << 32;
            self.counters.resolved += 1;
        } else {
            self.counters.unresolved += 1;
        }
    }

    /// Forgets the packets whose lifetime has ended.
    pub fn expire(&mut self, now: Duration) {
        while let Some((expiry, identity)) = self.order.front().copied()
            && expiry <= now
        {
            self.order.pop_front();
            self.packets.remove(identity);
            self.counters.expired += 1;
        }
    }

    fn remember(
        &mut self,
        identity: Identity,
        first: FirstFragment,
        known: Option<FirstFragment>,
        now: Duration,
    ) {
        match known {
            Some(known) if known != first => self.counters.conflicting += 1,
            Some(_) => {}
            None => {
                if self.order.len() >= self.capacity
                    && let Some((_, oldest)) = self.order.pop_front()
                {
                    self.packets.remove(oldest);
                    self.counters.evicted += 1;
                }
                if self.packets.insert(identity, first).is_ok() {
                    self.order.push_back((now.saturating_add(LIFETIME), identity));
                    self.counters.remembered += 1;
                }
            }
        }
    }
}

/// The identity of the packet to which a fragment belongs.
fn identity(key: &Key, fragment: Fragment) -> Identity {
    let words = &key.words;
    // An IPv6 packet is identified without its protocol (RFC 8200, 4.5): the first fragment's may be known only after
    // further extension headers.
    let protocol = if key.eth_type() == 0x0800 { u64::from(key.protocol()) } else { 0 };
    let pair = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    [
        pair(words[0], words[9]),
        pair(words[4], words[5]),
        pair(words[6], words[7]),
        pair(protocol, u64::from(fragment.identification)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, Ingress};

    /// The key of a fragment of a UDP packet with these ports. `offset` is in units of eight bytes.
    fn fragment(offset: u16, identification: u8, port: u8, ingress: u32) -> (Key, Fragment) {
        let mut frame = vec![2; 12];
        let place = (u16::from(offset == 0) << 13 | offset).to_be_bytes();
        frame.extend([8, 0, 0x45, 0, 0, 36, 0, identification, place[0], place[1], 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, port, 0, 53, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let (key, fragment) = Key::extract(&frame, &Ingress { port: ingress, ..Ingress::default() });
        (key, fragment.expect("a fragment"))
    }

    #[test]
    fn later_fragments_get_the_ports_of_the_first() {
        let mut table = Fragments::new(100, Seed::new(1, 2));
        let mut port_of = |offset, identification, port, ingress, seconds| {
            let (mut key, part) = fragment(offset, identification, port, ingress);
            table.resolve(&mut key, part, Duration::from_secs(seconds));
            key.get(Field::UdpSrc)
        };
        assert_eq!(port_of(4, 1, 9, 1, 0), None, "the payload is no port");
        assert_eq!(port_of(0, 1, 7, 1, 0), Some(7));
        assert_eq!(port_of(4, 1, 9, 1, 1), Some(7));
        assert_eq!(port_of(4, 2, 9, 1, 1), None, "another packet");
        assert_eq!(port_of(4, 1, 9, 2, 1), None, "another port");
        assert_eq!(port_of(0, 1, 8, 1, 2), Some(8), "a first fragment has its own ports");
        assert_eq!(port_of(4, 1, 9, 1, 3), Some(7), "and does not change those of the earlier one");
        assert_eq!(port_of(4, 1, 9, 1, 60), None, "expired");
        let expected = FragmentCounters {
            remembered: 1,
            resolved: 2,
            unresolved: 4,
            conflicting: 1,
            evicted: 0,
            expired: 1,
        };
        assert_eq!(table.counters(), expected);
    }

    #[test]
    fn the_oldest_packets_make_room() {
        let mut table = Fragments::new(3, Seed::new(1, 2));
        for identification in 0..200 {
            let (mut key, part) = fragment(0, identification, 7, 1);
            table.resolve(&mut key, part, Duration::from_secs(1));
            assert!(table.len() <= 3);
        }
        for (identification, expected) in [(196, None), (197, Some(7)), (199, Some(7))] {
            let (mut key, part) = fragment(4, identification, 9, 1);
            table.resolve(&mut key, part, Duration::from_secs(1));
            assert_eq!(key.get(Field::UdpSrc), expected);
        }
        assert_eq!(table.counters().evicted, 197);
    }

    /// A later fragment of IPv6 names the header that follows the fragment header, which need not be the protocol.
    #[test]
    fn ip6_fragments_follow_the_first_behind_extension_headers() {
        let frame = |place: u8, payload: &[u8]| {
            let mut frame = vec![2; 12];
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8 + payload.len() as u8, 44, 64]);
            frame.extend([0xfd; 32]);
            frame.extend([60, 0, 0, place, 0, 0, 0, 5]);
            frame.extend(payload);
            let (key, fragment) = Key::extract(&frame, &Ingress::default());
            (key, fragment.expect("a fragment"))
        };
        let mut table = Fragments::new(3, Seed::new(1, 2));
        let (mut first, part) = frame(1, &[6, 0, 0, 0, 0, 0, 0, 0, 0, 80, 0, 81]);
        table.resolve(&mut first, part, Duration::ZERO);
        assert_eq!(first.get(Field::TcpDst), Some(81));
        let (mut later, part) = frame(16, &[1; 16]);
        assert_eq!(later.get(Field::IpProto), Some(60));
        table.resolve(&mut later, part, Duration::ZERO);
        assert_eq!((later.get(Field::IpProto), later.get(Field::TcpDst)), (Some(6), Some(81)));
    }
}
