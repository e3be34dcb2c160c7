//! A port of a switch.

use crate::rate_limiter::{RateLimit, RateLimiter};
use crate::source_guard::SourceGuard;
use flow_table::TokenBucket;
use packet::MacAddr;

/// The number of a port in its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Settings of a port: its limits and its share of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Weight relative to other ports: the number of quanta that are visited per round.
    pub weight: u32,
    /// Limit on what the port may send.
    pub rate_limit: RateLimit,
    /// Addresses per second that a learning bridge may learn from the port, or take over from another one; 0 means no limit.
    /// As many as in a second may come at once.
    pub new_addresses: u64,
    /// The only source address that the port may send from; `None` allows any.
    pub source: Option<MacAddr>,
    /// The IP addresses that the port may send from; `None` allows any.
    pub guard: Option<SourceGuard>,
}

impl Default for PortSettings {
    /// Weight 1, no limit, any source.
    fn default() -> Self {
        Self { weight: 1, rate_limit: RateLimit::default(), new_addresses: 0, source: None, guard: None }
    }
}

/// The limits of a port that each shard of its switch keeps together with the others: a clone has the same buckets.
#[derive(Clone, Debug)]
pub(crate) struct PortLimits {
    pub(crate) limiter: RateLimiter,
    pub(crate) new_addresses: TokenBucket,
}

impl PortLimits {
    /// Full buckets.
    pub(crate) fn new(settings: &PortSettings) -> Self {
        Self {
            limiter: RateLimiter::new(settings.rate_limit),
            new_addresses: TokenBucket::per_second(settings.new_addresses),
        }
    }
}
