//! Route tables: longest-prefix match for IPv4 and IPv6.
//!
//! [`PrefixTable`] is the trie that lookups use. [`Routes`], [`Ip4Routes`] and [`LinearRoutes`] store an element's
//! routes in it, with their gateways, outputs and display order.
//!
//! Invariants, each checked by a test:
//! - a lookup gives the result of a linear search over all prefixes, while routes are added and removed;
//! - removed routes leave no memory allocated.
//!
//! Absent: elements, handlers, and the syntax of routes in a configuration.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod deferred;
mod flat;
mod ip4;
mod ip6;
mod key;
mod linear;
mod node;
mod prefix;
mod route;
mod routes;
mod slots;
mod trie;

pub use ip4::Ip4Table;
pub use ip6::Ip6Table;
pub use linear::LinearRoutes;
pub use prefix::{Address, Prefix};
pub use route::{Lookup, NextHop, Route, RouteError, RouteStore, StepwiseTable};
pub use routes::{Ip4Routes, Routes};
pub use trie::{Entry, MAX_HOP, NO_HOP, NextHopTooLarge, PrefixTable};
