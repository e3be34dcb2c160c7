//! A port of a switch.

use crate::rate_limiter::RateLimit;
use packet::MacAddr;

/// The number of a port in its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// What a port may do, and how much of the switch it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Its share of the switch beside ports with other weights: frames a visit, in quanta.
    pub weight: u32,
    /// What it may send.
    pub rate_limit: RateLimit,
    /// The only source address that it may send from; none: any.
    pub source: Option<MacAddr>,
}

impl Default for PortSettings {
    /// Weight 1, no cap, any source.
    fn default() -> Self {
        Self { weight: 1, rate_limit: RateLimit::default(), source: None }
    }
}
