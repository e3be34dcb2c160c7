//! `TimedUnqueue`: moves packets from pull to push, a burst per interval.

use element::prelude::*;

use super::timedpull::{TimedPull, TimedPullVariant};

/// Moves up to BURST packets from pull to push every INTERVAL.
///
/// It sleeps while the upstream queue is empty.
/// ```click
/// InfiniteSource(LIMIT 20, BURST 20) -> q :: Queue -> TimedUnqueue(10ms, 3) -> c :: Counter(COUNT_CALL 6 stop) -> Discard;
/// ```
/// ```expect
/// c.count = 6
/// q.length = 14
/// ```
#[derive(Args)]
#[element(
    name = "TimedUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    see = "Burster, RatedUnqueue, Unqueue"
)]
pub struct TimedUnqueueArgs {
    /// Time between bursts.
    #[arg(position)]
    interval: Timestamp,
    /// Maximum number of packets per interval.
    #[arg(position, default = "1")]
    burst: i32,
}

/// The variant that has a steady interval.
pub struct Steady;

impl TimedPullVariant for Steady {
    type Args = TimedUnqueueArgs;

    fn pace(args: TimedUnqueueArgs) -> (Timestamp, i32) {
        (args.interval, args.burst)
    }
}

pub type TimedUnqueue = TimedPull<Steady>;
