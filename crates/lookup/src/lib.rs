//! Route tables: longest-prefix match for IPv4 and IPv6.
//!
//! [`PrefixTable`] is the trie that packets are looked up in. [`Routes`], [`Ip4Routes`] and [`LinearRoutes`] keep the
//! routes of an element in it, with their gateways, outputs and display order.
//!
//! Invariants, each held by a test:
//! - a lookup gives what a linear search over all prefixes gives, while routes come and go;
//! - removed routes leave no memory behind.
//!
//! Absent: elements, handlers, and how a route is written in a configuration.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ip4;
mod ip6;
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
pub use route::{Hop, Lookup, Route, RouteError, RouteStore};
pub use routes::{Ip4Routes, Routes};
pub use trie::{Entry, HopTooLarge, MAX_HOP, NO_HOP, PrefixTable};
