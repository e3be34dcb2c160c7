//! Routes with arbitrary masks, in insertion order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use packet::Ip4Prefix;

use crate::route::{Lookup, NextHop, Route, RouteError, RouteStore, StepwiseTable};
use crate::routes::trie_prefix;
use crate::slots::{Reuse, Slots};
use crate::{Entry, NO_HOP, PrefixTable};

/// Routes whose masks need not be contiguous. The most specific one wins, as in Click's linear tables.
///
/// While all masks are contiguous, that is the longest prefix, which a trie finds. Otherwise the routes are searched in
/// order: the first match wins, unless a later match has a mask that includes all bits of the best one so far.
pub struct LinearRoutes {
    slots: Slots<Route>,
    /// The routes with contiguous masks; a hop is a slot number.
    table: PrefixTable<u32>,
    /// The slots of the routes with non-contiguous masks.
    scattered: BTreeMap<Ip4Prefix, u32>,
    /// While changes are deferred: what lookups still see.
    before: Option<Before>,
    /// What lookups have stopped to see, to be freed in steps.
    forgotten: Vec<BTreeMap<u32, Option<Route>>>,
}

/// What was before the deferred changes.
struct Before {
    /// The slots that have changed.
    slots: BTreeMap<u32, Option<Route>>,
    is_scattered: bool,
}

/// Changed slots that are freed in a step.
const SLOTS_A_STEP: usize = 128;

/// The route that free slots look like in Click; it must precede them to be found.
const ZERO: Ip4Prefix = Ip4Prefix::host(Ipv4Addr::UNSPECIFIED);

impl Default for LinearRoutes {
    fn default() -> Self {
        Self {
            slots: Slots::new(Reuse::Lowest),
            table: PrefixTable::new(),
            scattered: BTreeMap::new(),
            before: None,
            forgotten: Vec::new(),
        }
    }
}

impl LinearRoutes {
    /// The slot of exactly this prefix.
    fn find(&self, prefix: Ip4Prefix) -> Option<u32> {
        match trie_prefix(prefix) {
            Some(prefix) => self.table.get(prefix).map(|entry| entry.hop),
            None => self.scattered.get(&prefix).copied(),
        }
    }

    /// Whether lookups see routes with non-contiguous masks.
    fn is_scattered(&self) -> bool {
        self.before.as_ref().map_or(!self.scattered.is_empty(), |before| before.is_scattered)
    }

    /// The route in a slot, as lookups see it.
    #[inline]
    fn seen(&self, slot: u32) -> Option<&Route> {
        match self.before.as_ref().and_then(|before| before.slots.get(&slot)) {
            Some(before) => before.as_ref(),
            None => self.slots.get(slot),
        }
    }

    /// Keeps what lookups see in a slot that changes.
    fn keep(&mut self, slot: u32, route: Option<Route>) {
        if let Some(before) = &mut self.before {
            before.slots.entry(slot).or_insert(route);
        }
    }

    /// Frees some of what lookups have stopped to see. Returns whether nothing is left.
    fn forget_some(&mut self) -> bool {
        for _ in 0..SLOTS_A_STEP {
            let Some(slots) = self.forgotten.last_mut() else { return true };
            if slots.pop_first().is_none() {
                self.forgotten.pop();
            }
        }
        self.forgotten.is_empty()
    }

    /// The slot of the best route for an address.
    fn best(&self, address: Ipv4Addr) -> Option<u32> {
        if !self.is_scattered() {
            return self.table.lookup(address.to_bits());
        }
        let mut best: Option<(u32, u32)> = None;
        let seen = (0..self.slots.end()).filter_map(|slot| Some((slot, self.seen(slot)?)));
        for (slot, route) in seen.filter(|(_, route)| route.prefix.contains(address)) {
            let mask = route.prefix.mask.to_bits();
            if best.is_none_or(|(_, best)| mask & best == best) {
                best = Some((slot, mask));
            }
        }
        best.map(|(slot, _)| slot)
    }

    fn add(&mut self, route: Route) -> Result<(), RouteError> {
        let slot = self.slots.add(route);
        self.keep(slot, None);
        match trie_prefix(route.prefix) {
            Some(prefix) => {
                let added = self.table.insert(prefix, Entry { hop: slot, tag: 0 });
                added.map(drop).map_err(|_| RouteError::Full)
            }
            None => {
                self.scattered.insert(route.prefix, slot);
                Ok(())
            }
        }
    }

    fn take(&mut self, slot: u32) -> Option<Route> {
        let route = self.slots.remove(slot)?;
        self.keep(slot, Some(route));
        match trie_prefix(route.prefix) {
            Some(prefix) => drop(self.table.remove(prefix)),
            None => drop(self.scattered.remove(&route.prefix)),
        }
        Some(route)
    }
}

impl Lookup<u32> for LinearRoutes {
    fn lookup_batch(&mut self, addresses: &[u32], hops: &mut [u32]) {
        if !self.is_scattered() {
            return self.table.lookup_batch(addresses, hops);
        }
        for (&address, hop) in addresses.iter().zip(hops) {
            *hop = self.best(Ipv4Addr::from_bits(address)).unwrap_or(NO_HOP);
        }
    }

    #[inline]
    fn hop(&self, number: u32) -> Option<NextHop<u32>> {
        self.seen(number)?.hop()
    }
}

impl RouteStore for LinearRoutes {
    fn get(&self, prefix: Ip4Prefix) -> Option<Route> {
        self.slots.get(self.find(prefix)?).copied()
    }

    fn set(&mut self, route: Route) -> Result<Option<Route>, RouteError> {
        route.hop().ok_or(RouteError::Port)?;
        let Some(slot) = self.find(route.prefix) else { return self.add(route).map(|()| None) };
        let old = self.slots.get_mut(slot).map(|known| core::mem::replace(known, route));
        self.keep(slot, old);
        Ok(old)
    }

    fn remove(&mut self, prefix: Ip4Prefix) -> Option<Route> {
        let slot = self.find(prefix)?;
        let route = self.take(slot)?;
        if let Some(zero) = self.find(ZERO).filter(|&zero| zero > slot)
            && let Some(route) = self.take(zero)
            && self.add(route).is_err()
        {
            return None;
        }
        Some(route)
    }

    fn routes(&self) -> Vec<Route> {
        self.slots.iter().map(|(_, route)| *route).collect()
    }

    fn lookup(&self, address: Ipv4Addr) -> Option<NextHop<u32>> {
        self.hop(self.best(address)?)
    }

    fn clear(&mut self) {
        let is_deferring = self.table.is_deferring();
        *self = Self::default();
        if is_deferring {
            self.defer_updates();
        }
    }
}

impl StepwiseTable for LinearRoutes {
    fn defer_updates(&mut self) {
        self.table.defer_updates();
        let is_scattered = self.is_scattered();
        self.before.get_or_insert_with(|| Before { slots: BTreeMap::new(), is_scattered });
    }

    fn apply_updates(&mut self) {
        self.table.apply_updates();
        self.before = None;
    }

    fn apply_some_updates(&mut self) -> bool {
        if !self.table.apply_some_updates() {
            return false;
        }
        self.forgotten.extend(self.before.take().map(|before| before.slots));
        self.forget_some()
    }

    fn free_some(&mut self) -> bool {
        self.forgotten.extend(self.before.take().map(|before| before.slots));
        (0..SLOTS_A_STEP).any(|_| self.scattered.pop_first().is_none())
            && self.forget_some()
            && self.table.free_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(prefix: &str, port: i32) -> Route {
        Route { prefix: Ip4Prefix::parse(prefix).unwrap(), gateway: Ipv4Addr::UNSPECIFIED, port }
    }

    fn ports(store: &LinearRoutes) -> Vec<i32> {
        store.routes().iter().map(|route| route.port).collect()
    }

    #[test]
    fn scattered_masks_go_by_their_bits() {
        let mut store = LinearRoutes::default();
        let address = Ipv4Addr::new(10, 1, 7, 1);
        for (prefix, port, best) in [
            ("10.0.0.0/8", 1, 1),
            ("10.0.7.0/255.0.255.0", 2, 2),
            // More bits, but not all bits of the best mask: the earlier route stays.
            ("10.1.0.0/16", 3, 2),
            ("10.1.7.0/24", 4, 4),
        ] {
            assert_eq!(store.set(route(prefix, port)), Ok(None));
            assert_eq!(store.lookup(address).map(|hop| hop.port), Some(best));
            let mut hops = [0];
            store.lookup_batch(&[address.to_bits()], &mut hops);
            assert_eq!(store.hop(hops[0]).map(|hop| hop.port), Some(best));
        }
        assert_eq!(
            store.remove(route("10.0.7.0/255.0.255.0", 0).prefix),
            Some(route("10.0.7.0/255.0.255.0", 2))
        );
        assert_eq!((store.scattered.len(), ports(&store)), (0, [1, 3, 4].to_vec()));
        assert_eq!(store.lookup(Ipv4Addr::new(10, 2, 7, 1)).map(|hop| hop.port), Some(1));
    }

    #[test]
    fn the_lowest_free_slot_is_used_and_the_zero_route_moves_up() {
        let mut store = LinearRoutes::default();
        for (port, prefix) in (0..).zip(["1/8", "2/8", "3/8", "0.0.0.0/32", "4/8"]) {
            assert_eq!(store.set(route(prefix, port)), Ok(None));
        }
        store.remove(route("2/8", 0).prefix);
        assert_eq!(ports(&store), [0, 3, 2, 4]);
        assert_eq!(store.set(route("5/8", 5)), Ok(None));
        assert_eq!(ports(&store), [0, 3, 2, 5, 4]);
        assert_eq!(store.set(route("3/8", 9)), Ok(Some(route("3/8", 2))));
        assert_eq!(ports(&store), [0, 3, 9, 5, 4]);
    }
}
