//! The neighbour cache: addresses, and packets that wait for them.

use alloc::collections::VecDeque;
use core::net::Ipv4Addr;

use element::prelude::*;
use packet::MacAddr;

use flow::{NO_ENTRY, Seed, Table};

/// Maximum entries if ENTRY_CAPACITY is 0, so that a sender to many addresses can't fill the memory.
const MAX_ENTRIES: usize = 1 << 20;
/// Initial time between queries for an address, in milliseconds.
const FAST_QUERY_INTERVAL: i64 = 100;
/// Time between queries for an address that does not answer, in milliseconds.
const SLOW_QUERY_INTERVAL: i64 = 2_000;
/// Unanswered queries after which the interval is longer.
const FAST_QUERIES: u8 = 10;
/// Age of the last query of a new entry, in milliseconds, so that it may be queried at once.
const INITIAL_QUERY_AGE: i64 = 1_000;

/// The limits of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum waiting packets in total; 0 for no limit.
    pub(super) packets: usize,
    /// Maximum entries; 0 for the highest possible number.
    pub(super) entries: usize,
    /// Maximum waiting packets per address; 0 for no limit.
    pub(super) packets_each: usize,
    /// If too many packets wait, one in this many is dropped; at least 1.
    pub(super) slim: usize,
    /// Lifetime of an entry in milliseconds; 0 for no expiry.
    pub(super) timeout: i64,
}

/// Neighbours by IPv4 address, ordered by the time of the last answer, oldest first.
pub(super) struct ArpCache {
    pub(super) limits: Limits,
    table: Table<u32, Entry>,
    oldest: u32,
    newest: u32,
    waiting: usize,
    drops: u64,
    /// The element that holds the packets, if several elements share the cache.
    owner: Option<usize>,
}

struct Entry {
    mac: MacAddr,
    known: bool,
    /// Queries since the last answer.
    polls: u8,
    /// Time of the last answer, in milliseconds.
    live_at: i64,
    /// Time of the last query, in milliseconds.
    polled_at: i64,
    packets: VecDeque<Packet>,
    /// Since when the first of them waits.
    since: Timestamp,
    older: u32,
    newer: u32,
}

/// The result for a packet with an unknown neighbour.
pub(super) enum QueueResult {
    /// The packet waits; `true` asks the caller to send a query.
    Queued(bool),
    /// The neighbour is known after all.
    Known(Packet),
    /// There is no room for the packet; the drop is already counted.
    Full(Packet),
}

impl Entry {
    fn new(now: i64) -> Entry {
        Entry {
            mac: MacAddr::BROADCAST,
            known: false,
            polls: 0,
            live_at: now,
            polled_at: now - INITIAL_QUERY_AGE,
            packets: VecDeque::new(),
            since: Timestamp::ZERO,
            older: NO_ENTRY,
            newer: NO_ENTRY,
        }
    }

    fn is_expired(&self, now: i64, timeout: i64) -> bool {
        timeout != 0 && self.live_at + timeout < now
    }

    fn is_known(&self, now: i64, timeout: i64) -> bool {
        self.known && !self.is_expired(now, timeout)
    }

    /// Whether a query may be sent now. If so, it is recorded as sent.
    fn try_query(&mut self, now: i64) -> bool {
        let pause = if self.polls >= FAST_QUERIES { SLOW_QUERY_INTERVAL } else { FAST_QUERY_INTERVAL };
        let may = now >= self.polled_at + pause;
        if may {
            self.polled_at = now;
            self.polls = self.polls.saturating_add(1);
        }
        may
    }
}

impl ArpCache {
    pub(super) fn new(limits: Limits, seed: u64) -> ArpCache {
        let table = Table::new(Seed::new(seed, !seed));
        ArpCache { limits, table, oldest: NO_ENTRY, newest: NO_ENTRY, waiting: 0, drops: 0, owner: None }
    }

    /// Shares the cache between elements. Its packets are held by the element with this index.
    pub(super) fn share(&mut self, owner: usize) {
        self.owner = Some(owner);
    }

    /// Counts that packets which the owner holds now belong to the calling element, or with `gives` the reverse.
    fn transfer(&self, cx: &Context, count: usize, gives: bool) {
        if let Some(owner) = self.owner.filter(|owner| *owner != cx.element()) {
            cx.count_transfer(owner, count, gives);
        }
    }

    /// Reports the packets that wait.
    pub(super) fn report(&self, waiting: &mut Waiting) {
        let mut at = self.oldest;
        while waiting.packets < self.waiting as u64
            && let Some((_, entry)) = self.table.entry(at)
        {
            waiting.add(entry.packets.len(), Some(entry.since));
            at = entry.newer;
        }
    }

    /// Frees the packets that wait, without counting them.
    pub(super) fn free_packets(&mut self) {
        let mut at = self.oldest;
        while self.waiting > 0
            && let Some(entry) = self.table.value_mut(at)
        {
            self.waiting = self.waiting.saturating_sub(entry.packets.len());
            entry.packets = VecDeque::new();
            at = entry.newer;
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Number of waiting packets.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Number of dropped packets.
    pub(super) fn drops(&self) -> u64 {
        self.drops
    }

    /// Looks up an address. The flag asks for a new query, `poll_after` milliseconds after the last answer (0: never).
    #[inline]
    pub(super) fn lookup(&mut self, ip: Ipv4Addr, now: i64, poll_after: i64) -> Option<(MacAddr, bool)> {
        let timeout = self.limits.timeout;
        match self.table.get_mut(ip.to_bits()) {
            Some(entry) if entry.is_known(now, timeout) => {
                let poll = poll_after != 0 && now >= entry.live_at + poll_after && entry.try_query(now);
                Some((entry.mac, poll))
            }
            _ => None,
        }
    }

    /// Stores an address, and returns the packets that waited for it. The broadcast address means unknown.
    pub(super) fn insert(
        &mut self,
        cx: &mut Context,
        ip: Ipv4Addr,
        mac: MacAddr,
        now: i64,
    ) -> VecDeque<Packet> {
        let Some(handle) = self.get_or_create(cx, ip, now) else { return VecDeque::new() };
        self.unlink(handle);
        let newest = self.newest;
        self.link_after(newest, handle);
        let Some(entry) = self.table.value_mut(handle) else { return VecDeque::new() };
        (entry.mac, entry.known) = (mac, !mac.is_broadcast());
        (entry.live_at, entry.polled_at, entry.polls) = (now, now - INITIAL_QUERY_AGE, 0);
        let packets = core::mem::take(&mut entry.packets);
        self.waiting = self.waiting.saturating_sub(packets.len());
        self.transfer(cx, packets.len(), false);
        packets
    }

    /// Stores or removes an address, without releasing waiting packets.
    pub(super) fn set(&mut self, cx: &mut Context, ip: Ipv4Addr, mac: MacAddr, now: i64) {
        let packets = self.insert(cx, ip, mac, now);
        self.waiting += packets.len();
        self.transfer(cx, packets.len(), true);
        if let Some(entry) = self.table.get_mut(ip.to_bits()) {
            entry.packets = packets;
        }
    }

    /// Queues a packet until its neighbour is known.
    pub(super) fn enqueue(
        &mut self,
        cx: &mut Context,
        ip: Ipv4Addr,
        packet: Packet,
        now: i64,
    ) -> QueueResult {
        let timeout = self.limits.timeout;
        let Some(handle) = self.get_or_create(cx, ip, now) else { return self.reject(packet) };
        let Some(entry) = self.table.value_mut(handle) else { return self.reject(packet) };
        if entry.is_known(now, timeout) {
            return QueueResult::Known(packet);
        }
        if timeout != 0 && entry.live_at < now - timeout {
            // The entry is still needed, so it is kept just short of expiry.
            entry.live_at = now - timeout;
            self.reposition(handle);
        }
        let each = self.limits.packets_each;
        if each != 0 && self.table.value(handle).is_some_and(|entry| entry.packets.len() >= each) {
            return self.reject(packet);
        }
        self.waiting += 1;
        if self.limits.packets != 0 && self.waiting > self.limits.packets {
            self.evict(cx, now, 0);
        }
        let Some(entry) = self.table.value_mut(handle) else {
            self.waiting = self.waiting.saturating_sub(1);
            return self.reject(packet);
        };
        if entry.packets.is_empty() {
            entry.since = cx.steady();
        }
        entry.packets.push_back(packet);
        let may_query = entry.try_query(now);
        self.transfer(cx, 1, true);
        QueueResult::Queued(may_query)
    }

    fn reject(&mut self, packet: Packet) -> QueueResult {
        self.drops += 1;
        QueueResult::Full(packet)
    }

    /// Drops expired entries, and packets beyond the capacity.
    pub(super) fn expire(&mut self, cx: &mut Context, now: i64) {
        self.evict(cx, now, 0);
    }

    /// Drops all entries and packets.
    pub(super) fn clear(&mut self, cx: &mut Context) {
        while self.remove_oldest(cx, Reason::TABLE_CLEARED) {}
        self.waiting = 0;
    }

    /// Takes over the entries of another cache if it is empty itself.
    pub(super) fn inherit(&mut self, old: &mut ArpCache) {
        if self.table.is_empty() {
            let (limits, owner) = (self.limits, self.owner);
            core::mem::swap(self, old);
            (old.limits, self.limits) = (self.limits, limits);
            (old.owner, self.owner) = (self.owner, owner);
        }
    }

    /// One entry per line, oldest first: address, whether it is known, link address, age in seconds.
    pub(super) fn text(&self, now: i64) -> String {
        let mut text = String::new();
        let mut at = self.oldest;
        while let Some((ip, entry)) = self.table.entry(at) {
            let known = u8::from(entry.is_known(now, self.limits.timeout));
            let age = Timestamp::from_millis(now - entry.live_at);
            text.push_str(&format!("{} {known} {} {age:.6}\n", Ipv4Addr::from_bits(ip), entry.mac));
            at = entry.newer;
        }
        text
    }

    /// The entry of an address, created if necessary.
    fn get_or_create(&mut self, cx: &mut Context, ip: Ipv4Addr, now: i64) -> Option<u32> {
        if let Some(handle) = self.table.find(ip.to_bits()) {
            return Some(handle);
        }
        if self.table.len() >= self.capacity() {
            self.evict(cx, now, 1);
        }
        let (handle, _) = self.table.insert(ip.to_bits(), Entry::new(now)).ok()?;
        let newest = self.newest;
        self.link_after(newest, handle);
        Some(handle)
    }

    fn capacity(&self) -> usize {
        if self.limits.entries == 0 { MAX_ENTRIES } else { self.limits.entries }
    }

    /// Drops expired entries, the oldest entries to make room for `more`, and packets beyond their limit.
    fn evict(&mut self, cx: &mut Context, now: i64, more: usize) {
        while let Some(entry) = self.table.value(self.oldest) {
            if entry.is_expired(now, self.limits.timeout) {
                self.remove_oldest(cx, Reason::NO_ANSWER);
            } else if self.table.len() + more > self.capacity() {
                self.remove_oldest(cx, Reason::TABLE_FULL);
            } else {
                break;
            }
        }
        let most = self.limits.packets;
        if most == 0 || self.waiting <= most {
            return;
        }
        // `waiting` already counts the packet that is about to be queued.
        let wanted = (most - most.checked_div(self.limits.slim).unwrap_or(0)).max(1);
        let (mut at, mut dropped) = (self.oldest, 0);
        while self.waiting > wanted
            && let Some(entry) = self.table.value_mut(at)
        {
            while self.waiting > wanted
                && let Some(packet) = entry.packets.pop_front()
            {
                self.waiting -= 1;
                self.drops += 1;
                dropped += 1;
                cx.drop(packet, Reason::TABLE_FULL);
            }
            at = entry.newer;
        }
        self.transfer(cx, dropped, false);
    }

    fn remove_oldest(&mut self, cx: &mut Context, reason: Reason) -> bool {
        let handle = self.oldest;
        self.unlink(handle);
        let Some((_, entry)) = self.table.remove_handle(handle) else { return false };
        self.waiting = self.waiting.saturating_sub(entry.packets.len());
        self.drops += entry.packets.len() as u64;
        self.transfer(cx, entry.packets.len(), false);
        for packet in entry.packets {
            cx.drop(packet, reason);
        }
        true
    }

    /// Moves an entry that was refreshed to its position in the list.
    fn reposition(&mut self, handle: u32) {
        let Some(entry) = self.table.value(handle) else { return };
        let (live_at, first) = (entry.live_at, entry.newer);
        let mut next = first;
        while let Some(entry) = self.table.value(next)
            && entry.live_at < live_at
        {
            next = entry.newer;
        }
        if next != first {
            let before = self.table.value(next).map_or(self.newest, |entry| entry.older);
            self.unlink(handle);
            self.link_after(before, handle);
        }
    }

    fn unlink(&mut self, handle: u32) {
        let Some(entry) = self.table.value_mut(handle) else { return };
        let older = core::mem::replace(&mut entry.older, NO_ENTRY);
        let newer = core::mem::replace(&mut entry.newer, NO_ENTRY);
        match self.table.value_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.table.value_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }

    /// Inserts an unlinked entry after `older`, or at the front if there is no such entry.
    fn link_after(&mut self, older: u32, handle: u32) {
        let newer = match self.table.value_mut(older) {
            Some(entry) => core::mem::replace(&mut entry.newer, handle),
            None => core::mem::replace(&mut self.oldest, handle),
        };
        match self.table.value_mut(newer) {
            Some(entry) => entry.older = handle,
            None => self.newest = handle,
        }
        if let Some(entry) = self.table.value_mut(handle) {
            (entry.older, entry.newer) = (older, newer);
        }
    }
}
