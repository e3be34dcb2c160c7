//! `Burster`: `TimedUnqueue` with larger bursts.

use element::prelude::*;

use super::timedpull::{TimedPull, TimedPullVariant};

/// Moves up to BURST packets from pull to push every INTERVAL. The same as `TimedUnqueue`, with a default BURST of 8.
/// ```click
/// InfiniteSource(LIMIT 20, BURST 20) -> q :: Queue -> Burster(10ms) -> c :: Counter(COUNT_CALL 16 stop) -> Discard;
/// ```
/// ```expect
/// c.count = 16
/// q.length = 4
/// ```
#[derive(Args)]
#[element(name = "Burster", group = "storing", ports = "1/1", processing = "l/h", task, see = "TimedUnqueue")]
pub struct BursterArgs {
    /// Time between bursts.
    #[arg(position)]
    interval: Timestamp,
    /// Maximum number of packets per interval.
    #[arg(position, default = "8")]
    burst: i32,
}

/// The variant with bursts of eight.
pub struct Bursts;

impl TimedPullVariant for Bursts {
    type Args = BursterArgs;

    fn pace(args: BursterArgs) -> (Timestamp, i32) {
        (args.interval, args.burst)
    }
}

pub type Burster = TimedPull<Bursts>;
