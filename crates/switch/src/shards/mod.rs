//! Switches that several threads run together: a shard for each thread.

mod exchange;
mod group;
mod spread;
mod spread_filter;
mod traffic;

pub(crate) use exchange::{Exchange, Message, SHARD_BITS, shard_of, without_shard};
pub use group::Shards;
pub use spread::Spread;
