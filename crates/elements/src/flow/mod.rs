//! Tables of flows: hash tables that grow a little at a time, timeouts, and the choice of free ports.

mod expiry;
mod hash;
mod index;
mod ip4;
mod lifetimes;
mod pairs;
mod ports;
mod slab;
mod table;

pub use expiry::Timeouts;
pub use hash::{Key, Seed};
pub use index::Index;
pub use ip4::Ip4Flow;
pub use lifetimes::{Lifetime, Lifetimed, Lifetimes};
pub use pairs::{Pair, PairError, Pairs, Side};
pub use ports::{Choice, NumberSet, Range, TakenNumbers};
pub use slab::Slab;
pub use table::{ABSENT, Table};
