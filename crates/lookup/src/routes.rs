//! Routes in a trie, with shared hops.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use packet::Ip4Prefix;

use crate::route::{Lookup, NextHop, Route, RouteError, RouteStore, StepwiseTable};
use crate::slots::{Reuse, Slots};
use crate::{Address, Entry, MAX_HOP, NextHopTooLarge, Prefix, PrefixTable};

/// Unused hops that are removed in a step.
const HOPS_A_STEP: usize = 32;

/// Routes to any number of hops. Each distinct hop is stored once, so that the hops stay in the cache.
pub struct Routes<A> {
    table: PrefixTable<A>,
    hops: Slots<(NextHop<A>, u32)>,
    numbers: BTreeMap<NextHop<A>, u32>,
    order: Order<A>,
    /// Hops that lost their last route while changes are deferred, so that lookups may still find them.
    unused: Vec<u32>,
}

/// Numbers the routes; the numbers give the display order.
enum Order<A> {
    /// Freed numbers are reused. A replaced route frees its number before or after the new one takes one.
    Slots { slots: Slots<Prefix<A>>, moves: Moves },
    /// Numbers increase; this is the last one.
    Age(u32),
}

/// When a replaced route frees its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    /// Before the new route takes one.
    Before,
    /// After the new route has taken another.
    After,
}

impl<A> Order<A> {
    fn number(&mut self, prefix: Prefix<A>, old: Option<u32>) -> u32 {
        match self {
            Order::Slots { slots, moves: Moves::Before } => {
                old.and_then(|old| slots.remove(old));
                slots.add(prefix)
            }
            Order::Slots { slots, moves: Moves::After } => {
                let number = slots.add(prefix);
                old.and_then(|old| slots.remove(old));
                number
            }
            Order::Age(last) => old.unwrap_or_else(|| {
                *last = last.wrapping_add(1);
                *last
            }),
        }
    }

    fn release(&mut self, number: u32) {
        if let Order::Slots { slots, .. } = self {
            slots.remove(number);
        }
    }
}

impl<A: Address> Routes<A> {
    /// Creates an empty table in slot order. A new route takes the lowest free slot, and a replaced route frees its own
    /// first.
    pub fn in_lowest_slot_order() -> Self {
        Self::in_slot_order(Reuse::Lowest, Moves::Before)
    }

    fn in_slot_order(reuse: Reuse, moves: Moves) -> Self {
        Self::ordered(Order::Slots { slots: Slots::new(reuse), moves })
    }

    /// Creates an empty table in insertion order. A replaced route keeps its position.
    fn in_insertion_order() -> Self {
        Self::ordered(Order::Age(0))
    }

    fn ordered(order: Order<A>) -> Self {
        Self {
            table: PrefixTable::new(),
            hops: Slots::new(Reuse::Latest),
            numbers: BTreeMap::new(),
            order,
            unused: Vec::new(),
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The hop of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NextHop<A>> {
        self.hop(self.table.get(prefix)?.hop)
    }

    /// The hop of an address.
    pub fn lookup(&self, address: A) -> Option<NextHop<A>> {
        self.hop(self.table.lookup(address)?)
    }

    /// Adds or replaces a route and returns the replaced hop.
    pub fn set(&mut self, prefix: Prefix<A>, hop: NextHop<A>) -> Result<Option<NextHop<A>>, RouteError> {
        let hop = self.share(hop);
        if hop > MAX_HOP {
            self.release(hop);
            return Err(RouteError::Full);
        }
        let old = self.table.get(prefix);
        let tag = self.order.number(prefix, old.map(|old| old.tag));
        self.table.insert(prefix, Entry { hop, tag }).map_err(|NextHopTooLarge| RouteError::Full)?;
        Ok(old.and_then(|old| self.release(old.hop)))
    }

    /// Removes the route of exactly this prefix.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<NextHop<A>> {
        let old = self.table.remove(prefix)?;
        self.order.release(old.tag);
        self.release(old.hop)
    }

    /// Removes all routes, also those that lookups see while changes are deferred.
    pub fn clear(&mut self) {
        let order = match &self.order {
            Order::Slots { slots, moves } => Order::Slots { slots: slots.emptied(), moves: *moves },
            Order::Age(_) => Order::Age(0),
        };
        let is_deferring = self.table.is_deferring();
        *self = Self::ordered(order);
        if is_deferring {
            self.table.defer_updates();
        }
    }

    /// All routes, in display order.
    pub fn list(&self) -> Vec<(Prefix<A>, NextHop<A>)> {
        let mut routes: Vec<_> = self.table.iter().collect();
        sorting::sort_by_key(&mut routes, |(_, entry)| entry.tag);
        routes.into_iter().filter_map(|(prefix, entry)| Some((prefix, self.hop(entry.hop)?))).collect()
    }

    /// The number of a hop, with one more reference.
    fn share(&mut self, hop: NextHop<A>) -> u32 {
        let number = match self.numbers.get(&hop) {
            Some(&number) => number,
            None => {
                let number = self.hops.add((hop, 0));
                self.numbers.insert(hop, number);
                number
            }
        };
        if let Some((_, users)) = self.hops.get_mut(number) {
            *users += 1;
        }
        number
    }

    /// Drops a reference to a hop. An unreferenced hop is removed.
    fn release(&mut self, number: u32) -> Option<NextHop<A>> {
        let (hop, users) = self.hops.get_mut(number)?;
        let hop = *hop;
        *users -= 1;
        if *users == 0 {
            match self.table.is_deferring() {
                true => self.unused.push(number),
                false => self.remove_unused(number),
            }
        }
        Some(hop)
    }

    /// Removes a hop, unless a route has it.
    fn remove_unused(&mut self, number: u32) {
        if let Some((hop, 0)) = self.hops.get(number).copied() {
            self.hops.remove(number);
            self.numbers.remove(&hop);
        }
    }
}

impl<A: Address> StepwiseTable for Routes<A> {
    fn defer_updates(&mut self) {
        self.table.defer_updates();
    }

    fn apply_updates(&mut self) {
        self.table.apply_updates();
        while let Some(number) = self.unused.pop() {
            self.remove_unused(number);
        }
    }

    fn apply_some_updates(&mut self) -> bool {
        if !self.table.apply_some_updates() {
            return false;
        }
        for _ in 0..HOPS_A_STEP {
            let Some(number) = self.unused.pop() else { return true };
            self.remove_unused(number);
        }
        false
    }

    fn free_some(&mut self) -> bool {
        for _ in 0..HOPS_A_STEP {
            self.numbers.pop_first();
        }
        self.table.free_some() && self.numbers.is_empty()
    }
}

impl<A: Address> Lookup<A> for Routes<A> {
    fn lookup_batch(&mut self, addresses: &[A], hops: &mut [u32]) {
        self.table.lookup_batch(addresses, hops);
    }

    #[inline]
    fn hop(&self, number: u32) -> Option<NextHop<A>> {
        self.hops.get(number).map(|(hop, _)| *hop)
    }
}

/// IPv4 routes with contiguous masks, as written in configurations.
pub struct Ip4Routes {
    routes: Routes<u32>,
    in_buckets: bool,
}

impl Ip4Routes {
    /// Creates an empty table in slot order. A new route takes the slot freed last. A replaced route moves to another
    /// slot.
    pub fn in_slot_order() -> Self {
        Self { routes: Routes::in_slot_order(Reuse::Latest, Moves::After), in_buckets: false }
    }

    /// Creates an empty table in the order of `bucket`; routes of one bucket are listed latest first.
    pub fn in_bucket_order() -> Self {
        Self { routes: Routes::in_insertion_order(), in_buckets: true }
    }
}

impl Lookup<u32> for Ip4Routes {
    fn lookup_batch(&mut self, addresses: &[u32], hops: &mut [u32]) {
        self.routes.lookup_batch(addresses, hops);
    }

    #[inline]
    fn hop(&self, number: u32) -> Option<NextHop<u32>> {
        self.routes.hop(number)
    }
}

impl RouteStore for Ip4Routes {
    fn get(&self, prefix: Ip4Prefix) -> Option<Route> {
        Some(Route::new(prefix, self.routes.get(trie_prefix(prefix)?)?))
    }

    fn set(&mut self, route: Route) -> Result<Option<Route>, RouteError> {
        let prefix = trie_prefix(route.prefix).ok_or(RouteError::Mask)?;
        let old = self.routes.set(prefix, route.hop().ok_or(RouteError::Port)?)?;
        Ok(old.map(|hop| Route::new(route.prefix, hop)))
    }

    fn remove(&mut self, prefix: Ip4Prefix) -> Option<Route> {
        let hop = self.routes.remove(trie_prefix(prefix)?)?;
        Some(Route::new(prefix, hop))
    }

    fn routes(&self) -> Vec<Route> {
        let mut routes = self.routes.list();
        if self.in_buckets {
            routes.reverse();
            sorting::sort_by_key(&mut routes, |(prefix, _)| bucket(*prefix));
        }
        let written = |(prefix, hop): (Prefix<u32>, NextHop<u32>)| {
            let prefix = Ip4Prefix::new(Ipv4Addr::from_bits(prefix.address()), prefix.length())?;
            Some(Route::new(prefix, hop))
        };
        routes.into_iter().filter_map(written).collect()
    }

    fn lookup(&self, address: Ipv4Addr) -> Option<NextHop<u32>> {
        self.routes.lookup(address.to_bits())
    }

    fn clear(&mut self) {
        self.routes.clear();
    }
}

impl StepwiseTable for Ip4Routes {
    fn defer_updates(&mut self) {
        self.routes.defer_updates();
    }

    fn apply_updates(&mut self) {
        self.routes.apply_updates();
    }

    fn apply_some_updates(&mut self) -> bool {
        self.routes.apply_some_updates()
    }

    fn free_some(&mut self) -> bool {
        self.routes.free_some()
    }
}

/// Converts a prefix to the trie's type; `None` if its mask is not contiguous.
pub(crate) fn trie_prefix(prefix: Ip4Prefix) -> Option<Prefix<u32>> {
    Prefix::new(prefix.address.to_bits(), prefix.length()?)
}

/// The bucket, out of 65,536, that holds a route in Click's direct table. It defines the display order.
fn bucket(prefix: Prefix<u32>) -> u32 {
    let (address, length) = (prefix.address(), u32::from(prefix.length()));
    let first = address ^ (length << 5) ^ (address >> (length >> 2)).wrapping_sub(length);
    let second =
        first ^ (first >> 23) ^ (first >> 15).wrapping_mul(length) ^ (address >> 17).wrapping_mul(53);
    let shifted = second.wrapping_shr(length).wrapping_mul(7);
    let third = second.wrapping_sub((address >> 3) ^ shifted ^ (second >> 11).wrapping_mul(103));
    (third ^ (third >> 17)) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn route(prefix: &str, gateway: u8, port: i32) -> Route {
        let prefix = Ip4Prefix::parse(prefix).unwrap();
        Route { prefix, gateway: Ipv4Addr::new(0, 0, 0, gateway), port }
    }

    /// Sets each route, then returns the table as shown.
    fn shown(store: &mut Ip4Routes, routes: &[Route]) -> String {
        routes.iter().for_each(|route| assert!(store.set(*route).is_ok()));
        store.routes().iter().map(|route| route.to_string()).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn slots_order_the_table() {
        let mut store = Ip4Routes::in_slot_order();
        let routes = [route("10/8", 0, 1), route("11/8", 0, 2), route("12/8", 5, 3)];
        assert_eq!(shown(&mut store, &routes), "10.0.0.0/8 - 1, 11.0.0.0/8 - 2, 12.0.0.0/8 0.0.0.5 3");
        let expected = "11.0.0.0/8 - 2, 12.0.0.0/8 0.0.0.5 3, 10.0.0.0/8 - 7";
        assert_eq!(shown(&mut store, &[route("10/8", 0, 7)]), expected);
        let expected = "13.0.0.0/8 - 1, 11.0.0.0/8 - 2, 12.0.0.0/8 0.0.0.5 3, 10.0.0.0/8 - 7";
        assert_eq!(shown(&mut store, &[route("13/8", 0, 1)]), expected);
    }

    #[test]
    fn buckets_order_the_table() {
        let mut store = Ip4Routes::in_bucket_order();
        let routes =
            [route("10/8", 0, 1), route("10.1/16", 0, 2), route("0/0", 5, 3), route("10.1.2.3/32", 0, 4)];
        let expected = "0.0.0.0/0 0.0.0.5 3, 10.0.0.0/8 - 1, 10.1.0.0/16 - 2, 10.1.2.3/32 - 4";
        assert_eq!(shown(&mut store, &routes), expected);
        store.clear();
        assert_eq!(shown(&mut store, &[route("192.168.0.0/25", 0, 1)]), "192.168.0.0/25 - 1");
    }

    #[test]
    fn hops_are_shared_and_removed() {
        let mut store = Ip4Routes::in_slot_order();
        shown(&mut store, &[route("10/8", 1, 1), route("11/8", 1, 1), route("12/8", 2, 1)]);
        assert_eq!(store.routes.hops.iter().count(), 2);
        assert_eq!(store.remove(route("10/8", 0, 0).prefix), Some(route("10/8", 1, 1)));
        assert_eq!(store.set(route("11/8", 2, 1)), Ok(Some(route("11/8", 1, 1))));
        assert_eq!((store.routes.hops.iter().count(), store.routes.numbers.len()), (1, 1));
        assert_eq!(store.lookup(Ipv4Addr::new(11, 1, 1, 1)), route("11/8", 2, 1).hop());
        assert_eq!(store.lookup(Ipv4Addr::new(10, 1, 1, 1)), None);
        assert_eq!(store.set(route("1.0.1.0/255.0.255.0", 0, 1)), Err(RouteError::Mask));
    }
}
