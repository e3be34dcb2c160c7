//! Options of a router.

use alloc::string::String;
use alloc::vec::Vec;

use element::Shard;
use packet::Timestamp;

/// The default maximum number of packets in a batch. Headers and first bytes of 128 packets, three cache lines each,
/// fit a 32 KB first-level cache. Twice as many do not, and make a plain forwarding path a third slower.
pub const DEFAULT_BATCH: usize = 128;

/// Options of a router.
#[derive(Clone, Debug)]
pub struct Options {
    /// The maximum number of packets in a batch, 1 to 256. Results do not depend on it.
    pub batch: usize,
    /// The maximum number of live packets.
    pub packets: usize,
    /// The start of simulated time. Simulated time advances only when there is nothing to do.
    pub simulated: Option<Timestamp>,
    /// The seed of all randomness; if absent, the environment provides one.
    pub seed: Option<u64>,
    /// The number of threads that tasks may be assigned to. One thread runs them all.
    pub threads: usize,
    /// The shard that the router is, of those that run the configuration together.
    pub shard: Shard,
    /// Whether the `hotconfig` handler may be written.
    pub allow_reconfigure: bool,
    /// The configuration text, for the `config` handler.
    pub source: String,
    /// Elements added to each configuration that is written to `hotconfig`.
    pub added: Vec<click_lang::Element>,
    /// Whether a run ends when nothing more can happen, instead of waiting to be stopped. It does not wait for the timers of classes
    /// with [`upkeep`](element::ClassInfo::upkeep).
    pub stop_when_idle: bool,
    /// Whether writes of elements that change the configuration are kept for [`Router::own_writes`](crate::Router::own_writes).
    pub report_writes: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            batch: DEFAULT_BATCH,
            packets: 1 << 18,
            simulated: None,
            seed: None,
            threads: 1,
            shard: Shard::ONLY,
            allow_reconfigure: true,
            source: String::new(),
            added: Vec::new(),
            stop_when_idle: true,
            report_writes: false,
        }
    }
}
