//! `Burster`: `TimedUnqueue` with larger bursts.

use element::prelude::*;

use super::timedpull::{Timed, TimedPull};

/// Pulls at most BURST packets in every INTERVAL and pushes them on; as `TimedUnqueue`, but of eight.
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
    /// The interval.
    #[arg(position)]
    interval: Timestamp,
    /// The most packets in it.
    #[arg(position, default = "8")]
    burst: i32,
}

/// The kind.
pub struct Bursts;

impl Timed for Bursts {
    type Args = BursterArgs;

    fn pace(args: BursterArgs) -> (Timestamp, i32) {
        (args.interval, args.burst)
    }
}

/// The element.
pub type Burster = TimedPull<Bursts>;
