//! Forwarding by learned addresses, as a bridge does (IEEE 802.1D, 7.7 to 7.9; VALE).
//!
//! The table is a fixed number of buckets of eight entries, selected by a hash with a secret seed, so that an attacker
//! cannot fill the bucket of another's addresses on purpose. Entries that are not refreshed within the ageing time
//! expire.
//!
//! No port can take another's entries:
//! - An address can be *bound* to a port. A bound address is never learned elsewhere and never expires. A frame that
//!   another port sends from it is [`Decision::Spoofed`].
//! - The number of addresses per second that a port teaches, or takes over from others, can be limited. A frame from one
//!   more is [`Decision::Capped`].
//! - The number of addresses that a port may teach is limited. A port at its limit teaches nothing new until some of
//!   its addresses expire.
//! - In a full bucket, an address replaces an expired entry or the oldest of its own port. If there is neither, it is
//!   not learned. Frames to an address that was not learned are flooded.
//!
//! Group addresses and the zero address are never learned.

use super::contract::{Decision, Forward};
use super::static_table::TableError;
use crate::port::PortId;
use flow_table::TokenBucket;
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
    /// Time of the last frame from it; 0: unused; [`BOUND`]: the address is bound to the port.
    seen: u64,
}

/// The time of a bound entry: in the future of every frame, so it neither expires nor is the oldest.
const BOUND: u64 = u64::MAX;

impl Entry {
    const ADDRESS: u64 = (1 << 48) - 1;

    fn port(self) -> PortId {
        PortId((self.key >> 48) as u16)
    }

    fn is_learned(self) -> bool {
        self.seen != 0 && self.seen != BOUND
    }
}

/// A learning bridge.
#[derive(Clone, Debug)]
pub struct LearningBridge {
    settings: LearningSettings,
    buckets: Vec<[Entry; WAYS]>,
    taught: Vec<Taught>,
    /// What other shards of the switch must be told of; `None` if there are none.
    news: Option<Vec<(MacAddr, PortId)>>,
}

/// Addresses that wait to be reported to other shards. Beyond, an address is reported when it is refreshed: stops a port with
/// invented ones from filling memory.
const MAX_NEWS: usize = 4096;

/// The part of the ageing time after which a refreshed address is reported again.
const REPORTS_PER_AGEING: u64 = 8;

/// The addresses that one port has taught.
#[derive(Clone, Debug, Default)]
struct Taught {
    /// Learned entries of the port, live or expired.
    count: u32,
    /// Frames whose source address was not learned.
    not_learned: u64,
    /// The port's expired entries are not searched for again before this time.
    reclaim_after: u64,
    /// The addresses that the port may teach now.
    quota: TokenBucket,
}

/// Minimum interval in nanoseconds between searches of the whole table for the expired entries of a port at its limit.
/// Stops a port from triggering a search with every frame.
const RECLAIM_INTERVAL: u64 = 1_000_000_000;

impl LearningBridge {
    /// A bridge with an empty table.
    pub fn new(settings: LearningSettings) -> Self {
        let buckets = settings.capacity.div_ceil(WAYS).clamp(1, 1 << 20).next_power_of_two();
        Self { settings, buckets: vec![[Entry::default(); WAYS]; buckets], taught: Vec::new(), news: None }
    }

    /// Binds an address to a port, until the port is removed. What another port taught about it is forgotten.
    ///
    /// # Errors
    ///
    /// The address is a group address or zero, it is bound to another port, or its bucket is full of bound addresses.
    pub fn bind(&mut self, address: MacAddr, port: PortId) -> Result<(), TableError> {
        if address.is_group() {
            return Err(TableError::Group(address));
        }
        if address == MacAddr::ZERO {
            return Err(TableError::Zero);
        }
        let key = address.to_u64();
        let at = self.bucket(key);
        let bucket = &self.buckets[at];
        let known = bucket.iter().position(|entry| entry.seen != 0 && entry.key & Entry::ADDRESS == key);
        let way = match known {
            Some(way) if bucket[way].seen == BOUND && bucket[way].port() != port => {
                return Err(TableError::Bound(address));
            }
            Some(way) => way,
            // The oldest entry, which is a bound one only if all are.
            None => (0..WAYS)
                .filter(|way| bucket[*way].seen != BOUND)
                .min_by_key(|way| bucket[*way].seen)
                .ok_or(TableError::BucketFull(address))?,
        };
        self.replace(at, way, Entry { key: key | u64::from(port.0) << 48, seen: BOUND });
        Ok(())
    }

    /// Frames from a port whose source address was not learned, because the port was at its limit or because other
    /// ports' addresses had the bucket. Addresses of group and zero, and spoofed frames, are not counted here.
    pub fn not_learned(&self, port: PortId) -> u64 {
        self.taught.get(usize::from(port.0)).map_or(0, |taught| taught.not_learned)
    }

    /// The port to which an address is bound, or at which it was last seen, unless the entry has expired.
    pub fn find(&self, address: MacAddr, now: u64) -> Option<PortId> {
        let key = address.to_u64();
        let bucket = self.buckets.get(self.bucket(key))?;
        let entry = bucket.iter().find(|entry| entry.seen != 0 && entry.key & Entry::ADDRESS == key)?;
        self.is_live(*entry, now).then(|| entry.port())
    }

    /// All valid addresses, in no particular order, with the nanoseconds since they were last seen; `None` for bound
    /// ones.
    pub fn entries(&self, now: u64) -> impl Iterator<Item = (MacAddr, PortId, Option<u64>)> {
        let live = self.buckets.iter().flatten().filter(move |entry| self.is_live(**entry, now));
        live.map(move |entry| {
            let age = entry.is_learned().then(|| now.saturating_sub(entry.seen));
            (MacAddr::from_u64(entry.key & Entry::ADDRESS), entry.port(), age)
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
            self.taught.resize_with(index + 1, Taught::default);
        }
        &mut self.taught[index]
    }

    /// Where a frame to an address goes that was received at port `from`.
    #[inline]
    pub(super) fn route(&self, destination: MacAddr, from: PortId, now: u64) -> Decision {
        if destination.is_group() {
            return Decision::Flood;
        }
        match self.find(destination, now) {
            Some(port) if port == from => Decision::Drop,
            Some(port) => Decision::To(port),
            None => Decision::Flood,
        }
    }

    /// Learns that an address is at a port, unless it is the address of no station.
    ///
    /// # Errors
    ///
    /// The address is bound to another port, or new while the port's quota is used up.
    #[inline]
    pub(super) fn learn(&mut self, address: MacAddr, port: PortId, now: u64) -> Result<(), Decision> {
        if address.is_group() || address == MacAddr::ZERO {
            return Ok(());
        }
        let key = address.to_u64();
        let whole = key | u64::from(port.0) << 48;
        let at = self.bucket(key);
        // 0 means "unused", so the first nanosecond is stored as the second.
        let seen = now.clamp(1, BOUND - 1);
        let known =
            self.buckets[at].iter().position(|entry| entry.seen != 0 && entry.key & Entry::ADDRESS == key);
        let way = match known {
            Some(way) if self.buckets[at][way].key == whole => {
                // A bound entry stays bound.
                let entry = &mut self.buckets[at][way];
                if self.news.is_some() {
                    self.refresh_reported(at, way, port, seen);
                } else {
                    entry.seen = entry.seen.max(seen);
                }
                return Ok(());
            }
            Some(way) if self.buckets[at][way].seen == BOUND => return Err(Decision::Spoofed),
            known => known.or_else(|| self.victim(at, port, now)),
        };
        match way {
            Some(way) if self.taught(port).count < self.settings.port_limit || self.reclaim(port, now) => {
                let quota = &mut self.taught(port).quota;
                if !quota.has(1, now) {
                    return Err(Decision::Capped);
                }
                quota.take(1);
                quota.give_back();
                self.replace(at, way, Entry { key: whole, seen });
                self.report(address, port);
            }
            _ => self.taught(port).not_learned += 1,
        }
        Ok(())
    }

    /// Notes that other shards must be told of an address.
    fn report(&mut self, address: MacAddr, port: PortId) {
        if let Some(news) = self.news.as_mut().filter(|news| news.len() < MAX_NEWS) {
            news.push((address, port));
        }
    }

    /// Notes a frame from a known address. In a shard, an entry keeps the time at which it was reported last, until it is
    /// reported again: so it is as old everywhere.
    #[cold]
    fn refresh_reported(&mut self, at: usize, way: usize, port: PortId, seen: u64) {
        let interval = self.settings.ageing_ns / REPORTS_PER_AGEING;
        let entry = &mut self.buckets[at][way];
        if entry.is_learned() && seen.saturating_sub(entry.seen) >= interval {
            entry.seen = seen;
            let address = MacAddr::from_u64(entry.key & Entry::ADDRESS);
            self.report(address, port);
        }
    }

    /// Replaces an entry, and adjusts the counts of the learned entries of both ports.
    fn replace(&mut self, at: usize, way: usize, new: Entry) {
        let old = std::mem::replace(&mut self.buckets[at][way], new);
        if old.is_learned() {
            let taught = self.taught(old.port());
            taught.count = taught.count.saturating_sub(1);
        }
        if new.is_learned() {
            self.taught(new.port()).count += 1;
        }
    }

    /// Index of the entry of a bucket that a new address from a port may replace: an unused or expired one, or else
    /// the oldest of the port's own.
    fn victim(&self, at: usize, port: PortId, now: u64) -> Option<usize> {
        let bucket = &self.buckets[at];
        (0..WAYS).find(|way| !self.is_live(bucket[*way], now)).or_else(|| {
            let own = (0..WAYS).filter(|way| bucket[*way].is_learned() && bucket[*way].port() == port);
            own.min_by_key(|way| bucket[*way].seen)
        })
    }

    /// Removes the expired entries of a port at its limit. Returns whether there were any.
    fn reclaim(&mut self, port: PortId, now: u64) -> bool {
        if now < self.taught(port).reclaim_after {
            return false;
        }
        let ageing = self.settings.ageing_ns;
        let aged = |entry: &Entry| {
            entry.is_learned() && entry.port() == port && now.saturating_sub(entry.seen) > ageing
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
        match self.learn(source, from, now) {
            Ok(()) => self.route(destination, from, now),
            Err(decision) => decision,
        }
    }

    fn remove_port(&mut self, port: PortId) {
        for entry in self.buckets.iter_mut().flatten().filter(|entry| entry.seen != 0 && entry.port() == port)
        {
            *entry = Entry::default();
        }
        *self.taught(port) = Taught::default();
    }

    fn report_news(&mut self) {
        self.news.get_or_insert_default();
    }

    fn take_news(&mut self, into: &mut Vec<(MacAddr, PortId)>) {
        self.news.iter_mut().for_each(|news| into.append(news));
    }

    /// What the other shard has checked is not checked again.
    fn learn_elsewhere(&mut self, address: MacAddr, port: PortId, now: u64) {
        let key = address.to_u64();
        let whole = key | u64::from(port.0) << 48;
        let (at, seen) = (self.bucket(key), now.clamp(1, BOUND - 1));
        let known =
            self.buckets[at].iter().position(|entry| entry.seen != 0 && entry.key & Entry::ADDRESS == key);
        let way = known.or_else(|| self.victim(at, port, now));
        let has_room = self.taught(port).count < self.settings.port_limit || known.is_some();
        if let Some(way) = way.filter(|way| has_room && self.buckets[at][*way].seen != BOUND) {
            self.replace(at, way, Entry { key: whole, seen });
        }
    }

    fn limit_new_addresses(&mut self, port: PortId, quota: TokenBucket) {
        self.taught(port).quota = quota;
    }

    fn flush_port(&mut self, port: PortId) {
        if self.taught(port).count == 0 {
            return;
        }
        let learned = |entry: &&mut Entry| entry.is_learned() && entry.port() == port;
        self.buckets.iter_mut().flatten().filter(learned).for_each(|entry| *entry = Entry::default());
        self.taught(port).count = 0;
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
        assert_eq!(bridge.entries(6).collect::<Vec<_>>(), [(B, two, Some(0))]);
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
        // The first address is zero, which is never learned.
        assert_eq!((bridge.not_learned(PortId(1)), bridge.not_learned(PortId(2))), (0, 50_000 - 1 - 100));
        // Once its addresses have expired, the port may teach others.
        let later = 400 * SECOND;
        bridge.decide(B, MacAddr::from_u64(4 << 40), PortId(2), later);
        assert_eq!(bridge.find(MacAddr::from_u64(4 << 40), later), Some(PortId(2)));
    }

    #[test]
    fn a_bound_address_stays_at_its_port() {
        let mut bridge = bridge(100);
        let (owner, thief) = (PortId(1), PortId(2));
        // The thief was first. Binding takes the address back, and the thief's count with it.
        assert_eq!(bridge.decide(B, A, thief, 1), Decision::Flood);
        assert_eq!(bridge.bind(A, owner), Ok(()));
        assert_eq!(bridge.taught(thief).count, 0);
        for now in [2, 400 * SECOND, u64::MAX] {
            assert_eq!(bridge.decide(B, A, thief, now), Decision::Spoofed, "at {now}");
            assert_eq!(bridge.find(A, now), Some(owner));
            assert_eq!(bridge.decide(B, A, owner, now), Decision::Flood);
            assert_eq!(bridge.entries(now).collect::<Vec<_>>(), [(A, owner, None)]);
        }
        let refused = [
            (A, thief, Err(TableError::Bound(A))),
            (A, owner, Ok(())),
            (MacAddr::BROADCAST, owner, Err(TableError::Group(MacAddr::BROADCAST))),
            (MacAddr::ZERO, owner, Err(TableError::Zero)),
        ];
        for (address, port, expected) in refused {
            assert_eq!(bridge.bind(address, port), expected, "{address}");
        }
        bridge.flush_port(owner);
        assert_eq!(bridge.find(A, 3), Some(owner), "a port that goes down keeps its bound address");
        bridge.remove_port(owner);
        assert_eq!(bridge.decide(A, A, thief, 3), Decision::Drop, "a removed port has no address");
        assert_eq!(bridge.bind(A, PortId(3)), Ok(()));
    }

    #[test]
    fn group_and_zero_addresses_are_never_learned() {
        let mut bridge = bridge(100);
        for source in [MacAddr::ZERO, MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
            assert_eq!(bridge.decide(source, source, PortId(1), 1), Decision::Flood, "{source}");
        }
        assert_eq!(bridge.entries(1).count(), 0);
        assert_eq!(bridge.not_learned(PortId(1)), 0);
    }

    #[test]
    fn a_port_that_goes_down_leaves_nothing_learned() {
        let mut bridge = bridge(2);
        let (one, two) = (PortId(1), PortId(2));
        bridge.bind(MacAddr([2; 6]), one).unwrap();
        bridge.decide(B, A, one, 1);
        bridge.decide(A, B, two, 1);
        bridge.flush_port(one);
        assert_eq!((bridge.find(A, 1), bridge.find(B, 1)), (None, Some(two)));
        assert_eq!(bridge.find(MacAddr([2; 6]), 1), Some(one));
        // Its limit counts from zero again.
        for number in 10..12 {
            bridge.decide(B, MacAddr::from_u64(number), one, 2);
        }
        assert_eq!((bridge.taught(one).count, bridge.not_learned(one)), (2, 0));
        assert_eq!(bridge.entries(2).count(), 4);
    }

    #[test]
    fn a_full_bucket_takes_no_other_ports_entry() {
        // One bucket: every address competes for it.
        let settings = LearningSettings { capacity: WAYS, port_limit: 100, ..LearningSettings::default() };
        let mut bridge = LearningBridge::new(settings);
        let (bound, host, flood, late) = (PortId(0), PortId(1), PortId(2), PortId(3));
        bridge.bind(A, bound).unwrap();
        bridge.decide(A, B, host, 1);
        for number in 100..1100 {
            assert_eq!(bridge.decide(B, MacAddr::from_u64(number), flood, number), Decision::To(host));
        }
        assert_eq!((bridge.find(A, 1100), bridge.find(B, 1100)), (Some(bound), Some(host)));
        let kept: Vec<u64> = (100..1100)
            .filter(|number| bridge.find(MacAddr::from_u64(*number), 1100) == Some(flood))
            .collect();
        assert_eq!(kept, [1094, 1095, 1096, 1097, 1098, 1099], "the port replaced its own oldest entries");
        // Another port finds no room, until entries expire.
        assert_eq!(bridge.decide(B, MacAddr::from_u64(7), late, 1100), Decision::To(host));
        assert_eq!((bridge.find(MacAddr::from_u64(7), 1100), bridge.not_learned(late)), (None, 1));
        let later = 400 * SECOND;
        bridge.decide(B, MacAddr::from_u64(7), late, later);
        assert_eq!(bridge.find(MacAddr::from_u64(7), later), Some(late));
        let counts = [bound, host, flood, late].map(|port| bridge.taught(port).count);
        // The first expired entry was replaced; the others still count until they are, too.
        assert_eq!(counts, [0, 0, 6, 1]);
        // Learned entries make room for bound ones.
        for number in 0..WAYS as u64 - 1 {
            assert_eq!(bridge.bind(MacAddr::from_u64(number + 1), late), Ok(()));
        }
        assert_eq!(bridge.bind(B, late), Err(TableError::BucketFull(B)));
        assert_eq!(bridge.taught.iter().map(|taught| taught.count).sum::<u32>(), 0);
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
