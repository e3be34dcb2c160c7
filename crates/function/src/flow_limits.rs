//! The limits of the state of flows.

use core::time::Duration;

/// How many flows a function remembers, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// The maximum number of flows. Beyond it, the flow that was idle for longest is forgotten: senders of ever new flows
    /// must not fill the memory.
    pub flows: usize,
    /// The time without packets after which a flow is forgotten.
    pub idle: Duration,
}

impl FlowLimits {
    /// 65,536 flows, each until it was idle for a minute.
    pub const DEFAULT: FlowLimits = FlowLimits { flows: 1 << 16, idle: Duration::from_secs(60) };
}
