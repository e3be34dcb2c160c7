//! The order of routes in a table.

use alloc::collections::BTreeMap;

use crate::{Address, Prefix};

/// Orders routes by level and address, so that those of one block are adjacent and wider ones precede those inside
/// them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<A> {
    pub(crate) level: u8,
    pub(crate) address: A,
    pub(crate) length: u8,
}

impl<A: Address> Key<A> {
    pub(crate) fn new(prefix: Prefix<A>) -> Self {
        let level = prefix.length().saturating_sub(1) / 8;
        Self { level, address: prefix.address(), length: prefix.length() }
    }

    /// First address of the route's block.
    pub(crate) fn block(self) -> A {
        self.address.first(8 * self.level)
    }

    /// The routes of a block, wider ones first.
    pub(crate) fn routes_of<V>(
        routes: &BTreeMap<Self, V>,
        level: u8,
        block: A,
    ) -> impl Iterator<Item = (&Self, &V)> {
        let low = Self { level, address: block, length: 0 };
        let high = Self { level, address: block.last(8 * level), length: u8::MAX };
        routes.range(low..=high)
    }
}
