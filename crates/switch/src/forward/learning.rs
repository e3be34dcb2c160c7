//! Forwarding by learned addresses, as a bridge does (IEEE 802.1D, 7.7 to 7.9; VALE).
//!
//! The table is a fixed number of buckets of eight entries, selected by a hash with a secret seed, so that an attacker
//! cannot fill the bucket of another's addresses on purpose. Entries that are not refreshed within the ageing time
//! expire; a full bucket evicts its oldest entry. The number of addresses that a port may teach is limited, so that no
//! port can crowd out the others.

use super::contract::{Decision, Forward};
use crate::port::PortId;
use packet::MacAddr;

/// Entries per bucket: two cache lines.
const WAYS: usize = 8;

/// Settings of a learning bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningSettings {
    /// Ageing time in nanoseconds: how long an address stays valid after its last frame. 802.1D: 300 seconds.
    pub ageing_ns: u64,
    /// Maximum number of addresses, rounded up to a power of two.
    pub capacity: usize,
    /// Maximum addresses that one port may teach. Stops a port from filling the table with invented ones.
    pub port_limit: u32,
    /// The secret seed of the hash.
    pub seed: u64,
}

impl Default for LearningSettings {
    /// 300 seconds, 8,192 addresses, 1,024 per port. The seed must be replaced by a secret one.
    fn default() -> Self {
        Self { ageing_ns: 300_000_000_000, capacity: 8192, port_limit: 1024, seed: 0 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The address, with the port in the bits above it.
    key: u64,
    /// Time of the last frame from it; 0: unused.
    seen: u64,
}

impl Entry {
    const ADDRESS: u64 = (1 << 48) - 1;

    fn port(self) -> PortId {
        PortId((self.key >> 48) as u16)
    }
}

/// A learning bridge.
#[derive(Clone, Debug)]
pub struct LearningBridge {
    settings: LearningSettings,
    buckets: Vec<[Entry; WAYS]>,
    taught: Vec<Taught>,
}

/// The addresses that one port has taught.
#[derive(Clone, Copy, Debug, Default)]
struct Taught {
    /// Entries of the port, live or expired.
    count: u32,
    /// The port's expired entries are not searched for again before this time.
    reclaim_after: u64,
}

/// Minimum interval in nanoseconds between searches of the whole table for the expired entries of a port at its limit.
/// Stops a port from triggering a search with every frame.
const RECLAIM_INTERVAL: u64 = 1_000_000_000;

impl LearningBridge {
    /// A bridge with an empty table.
    pub fn new(settings: LearningSettings) -> Self {
        let buckets = settings.capacity.div_ceil(WAYS).clamp(1, 1 << 20).next_power_of_two();
        Self { settings, buckets: vec![[Entry::default(); WAYS]; buckets], taught: Vec::new() }
    }

    /// The port at which an address was last seen, unless the entry has expired.
    pub fn find(&self, address: MacAddr, now: u64) -> Option<PortId> {
        let key = address.to_u64();
        let bucket = self.buckets.get(self.bucket(key))?;
        let entry = bucket.iter().find(|entry| entry.seen != 0 && entry.key & Entry::ADDRESS == key)?;
        self.is_live(*entry, now).then(|| entry.port())
    }

    /// All valid addresses, in no particular order, with the nanoseconds since they were last seen.
    pub fn entries(&self, now: u64) -> impl Iterator<Item = (MacAddr, PortId, u64)> {
        let live = self.buckets.iter().flatten().filter(move |entry| self.is_live(**entry, now));
        live.map(move |entry| {
            (MacAddr::from_u64(entry.key & Entry::ADDRESS), entry.port(), now.saturating_sub(entry.seen))
        })
    }

    #[inline]
    fn bucket(&self, key: u64) -> usize {
        let mut hash = (key ^ self.settings.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
        hash = hash.wrapping_add(self.settings.seed.rotate_left(32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (hash >> 40) as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn is_live(&self, entry: Entry, now: u64) -> bool {
        entry.seen != 0 && now.saturating_sub(entry.seen) <= self.settings.ageing_ns
    }

    fn taught(&mut self, port: PortId) -> &mut Taught {
        let index = usize::from(port.0);
        if self.taught.len() <= index {
            self.taught.resize(index + 1, Taught::default());
        }
        &mut self.taught[index]
    }

    #[inline]
    fn learn(&mut self, address: MacAddr, port: PortId, now: u64) {
        let key = address.to_u64();
        let whole = key | u64::from(port.0) << 48;
        let at = self.bucket(key);
        // 0 means "unused", so the first nanosecond is stored as the second.
        let seen = now.max(1);
        let known =
            self.buckets[at].iter().position(|entry| entry.seen != 0 && entry.key & Entry::ADDRESS == key);
        let way = match known {
            Some(way) if self.buckets[at][way].key == whole => {
                self.buckets[at][way].seen = seen;
                return;
            }
            Some(way) => way,
            None => self.victim(at),
        };
        if self.taught(port).count >= self.settings.port_limit && !self.reclaim(port, now) {
            return;
        }
        let old = std::mem::replace(&mut self.buckets[at][way], Entry { key: whole, seen });
        if old.seen != 0 {
            let taught = self.taught(old.port());
            taught.count = taught.count.saturating_sub(1);
        }
        self.taught(port).count += 1;
    }

    /// Index of an unused entry of a bucket, or else of the oldest.
    fn victim(&self, at: usize) -> usize {
        (0..WAYS).min_by_key(|way| self.buckets[at][*way].seen).unwrap_or(0)
    }

    /// Removes the expired entries of a port at its limit. Returns whether there were any.
    fn reclaim(&mut self, port: PortId, now: u64) -> bool {
        if now < self.taught(port).reclaim_after {
            return false;
        }
        let ageing = self.settings.ageing_ns;
        let aged = |entry: &Entry| {
            entry.seen != 0 && entry.port() == port && now.saturating_sub(entry.seen) > ageing
        };
        let mut given = 0;
        for entry in self.buckets.iter_mut().flatten().filter(|entry| aged(entry)) {
            *entry = Entry::default();
            given += 1;
        }
        let taught = self.taught(port);
        taught.count = taught.count.saturating_sub(given);
        taught.reclaim_after = now.saturating_add(RECLAIM_INTERVAL);
        given > 0
    }
}

impl Forward for LearningBridge {
    #[inline]
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        if !source.is_group() {
            self.learn(source, from, now);
        }
        if destination.is_group() {
            return Decision::Flood;
        }
        match self.find(destination, now) {
            Some(port) if port == from => Decision::Drop,
            Some(port) => Decision::To(port),
            None => Decision::Flood,
        }
    }

    fn remove_port(&mut self, port: PortId) {
        for entry in self.buckets.iter_mut().flatten().filter(|entry| entry.seen != 0 && entry.port() == port)
        {
            *entry = Entry::default();
        }
        *self.taught(port) = Taught::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn bridge(port_limit: u32) -> LearningBridge {
        LearningBridge::new(LearningSettings { port_limit, seed: 99, ..LearningSettings::default() })
    }

    #[test]
    fn addresses_are_learned_moved_and_expired() {
        let mut bridge = bridge(100);
        let (one, two, three) = (PortId(1), PortId(2), PortId(3));
        assert_eq!(bridge.decide(B, A, one, 0), Decision::Flood);
        assert_eq!(bridge.decide(A, B, two, 1), Decision::To(one));
        assert_eq!(bridge.decide(B, A, one, 2), Decision::To(two));
        assert_eq!(bridge.decide(A, A, one, 3), Decision::Drop);
        assert_eq!(bridge.decide(MacAddr::BROADCAST, A, one, 3), Decision::Flood);
        // A moves; group addresses are never learned.
        assert_eq!(bridge.decide(B, A, three, 4), Decision::To(two));
        assert_eq!(bridge.decide(A, MacAddr::BROADCAST, two, 5), Decision::To(three));
        assert_eq!(bridge.find(MacAddr::BROADCAST, 5), None);
        assert_eq!(bridge.find(A, 4 + 300 * SECOND), Some(three));
        assert_eq!(bridge.find(A, 5 + 300 * SECOND), None);
        bridge.remove_port(three);
        assert_eq!(bridge.decide(A, B, two, 6), Decision::Flood);
        assert_eq!(bridge.entries(6).collect::<Vec<_>>(), [(B, two, 0)]);
    }

    #[test]
    fn addresses_learned_per_port_are_limited() {
        let mut bridge = bridge(100);
        bridge.decide(B, A, PortId(1), 1);
        for number in 0..50_000 {
            bridge.decide(B, MacAddr::from_u64(number << 8), PortId(2), 2);
        }
        assert_eq!(bridge.entries(2).filter(|(_, port, _)| *port == PortId(2)).count(), 100);
        assert_eq!(bridge.find(A, 2), Some(PortId(1)), "the flood pushed another port's address out");
        // Once its addresses have expired, the port may teach others.
        let later = 400 * SECOND;
        bridge.decide(B, MacAddr::from_u64(4 << 40), PortId(2), later);
        assert_eq!(bridge.find(MacAddr::from_u64(4 << 40), later), Some(PortId(2)));
    }

    #[test]
    fn thousands_of_addresses_are_kept() {
        let mut bridge = bridge(10_000);
        for number in 0..4_000u64 {
            bridge.decide(B, MacAddr::from_u64(number << 4), PortId(number as u16 % 250), number);
        }
        let found = (0..4_000u64).filter(|number| {
            bridge.find(MacAddr::from_u64(number << 4), 4_000) == Some(PortId(*number as u16 % 250))
        });
        assert!(found.count() > 3_950);
        let counted: u32 = bridge.taught.iter().map(|taught| taught.count).sum();
        assert_eq!(counted as usize, bridge.entries(4_000).count());
    }
}
