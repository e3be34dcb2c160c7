//! `TimedUnqueue`: pulls a few packets in every interval and pushes them on.

use element::prelude::*;

use super::timedpull::{Timed, TimedPull};

/// Pulls at most BURST packets in every INTERVAL and pushes them on.
///
/// It sleeps while what is upstream says that it is empty.
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
    /// The interval.
    #[arg(position)]
    interval: Timestamp,
    /// The most packets in it.
    #[arg(position, default = "1")]
    burst: i32,
}

/// The kind.
pub struct Steady;

impl Timed for Steady {
    type Args = TimedUnqueueArgs;

    fn pace(args: TimedUnqueueArgs) -> (Timestamp, i32) {
        (args.interval, args.burst)
    }
}

/// The element.
pub type TimedUnqueue = TimedPull<Steady>;
