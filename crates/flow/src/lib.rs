//! Flow tables: hash tables that grow without pauses, timeouts, and the allocation of free ports.
//!
//! [`Table`] maps keys to values, and [`BidirectionalTable`] stores both directions of a translated flow. Entries have
//! stable handles, which [`Timeouts`] and [`Lifetimes`] use to expire them. [`NumberChooser`] finds a free port or
//! address for a new flow.
//!
//! Invariants, each checked by a test:
//! - a table gives the same results as an ordered map for any sequence of operations, even if all hashes collide;
//! - an insertion splits at most two buckets, whatever the size of the table.
//!
//! Absent: elements, packet contents, clocks and random sources; times and seeds are arguments.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bidirectional;
mod expiry;
mod hash;
mod index;
mod ip4;
mod lifetimes;
mod ports;
mod slab;
mod table;

pub use bidirectional::{BidirectionalFlow, BidirectionalTable, FlowDirection, FlowLookup, InsertError};
pub use expiry::Timeouts;
pub use hash::{Key, Seed};
pub use index::{Index, LOOKUP_GROUP};
pub use ip4::Ip4Flow;
pub use lifetimes::{Lifetime, LifetimeStore, Lifetimes};
pub use ports::{NumberChooser, NumberPool, NumberSet, TakenNumbers};
pub use slab::Slab;
pub use table::{NO_ENTRY, Table};
