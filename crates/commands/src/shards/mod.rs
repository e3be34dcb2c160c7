//! Several engines that run one configuration, each in a thread of its own and with a part of the flows.

mod engines;
mod others;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use engines::{Engines, MAX_SHARDS, Plan};
