//! `RatedUnqueue`: moves packets from pull to push at a packet rate.

use element::prelude::*;

use super::ratedpull::RatedPull;
use crate::shaping::rated::{PacketRate, Packets, RateArguments, RateLimit};

/// Moves packets from pull to push at up to RATE packets a second.
///
/// A token bucket measures the rate. After a pause it allows a burst of BURST_SIZE packets, or of as many packets as
/// RATE yields in BURST_DURATION (20 ms by default). The task sleeps while the upstream queue is empty.
/// ```click
/// RatedSource(RATE 1000) -> q :: Queue -> u :: RatedUnqueue(100) -> c :: Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
/// ```expect
/// u.rate = 100
/// c.count = 50
/// q.length = 440
/// ```
#[derive(Args)]
#[element(
    name = "RatedUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    shards = "divide",
    see = "BandwidthRatedUnqueue, Unqueue, Shaper, RatedSplitter"
)]
pub struct RatedUnqueueArgs {
    #[arg(flatten)]
    rate: PacketRate,
}

impl RateArguments for RatedUnqueueArgs {
    type Measure = Packets;

    fn rate_limit(self) -> Result<RateLimit<Packets>, SetupError> {
        self.rate.rate_limit()
    }
}

pub type RatedUnqueue = RatedPull<RatedUnqueueArgs>;
