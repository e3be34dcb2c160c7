//! `BandwidthRatedUnqueue`: moves packets from pull to push at a bandwidth.

use element::prelude::*;

use super::ratedpull::RatedPull;
use crate::shaping::rated::{ByteRate, Bytes, RateArguments, RateLimit};

/// Moves packets from pull to push at a bandwidth of up to RATE.
///
/// A token bucket measures the rate. After a pause it allows a burst of BURST_BYTES, or of as many bytes as RATE yields
/// in BURST_DURATION (20 ms by default). The task sleeps while the upstream queue is empty.
/// ```click
/// RatedSource(LENGTH 1000, RATE 1000) -> q :: Queue -> u :: BandwidthRatedUnqueue(800kbps)
///   -> c :: Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
/// ```expect
/// c.byte_count = 50000
/// c.count = 50
/// q.length = 429
/// ```
#[derive(Args)]
#[element(
    name = "BandwidthRatedUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    shards = "divide",
    see = "RatedUnqueue, BandwidthShaper, BandwidthRatedSplitter"
)]
pub struct BandwidthRatedUnqueueArgs {
    #[arg(flatten)]
    rate: ByteRate,
}

impl RateArguments for BandwidthRatedUnqueueArgs {
    type Measure = Bytes;

    fn rate_limit(self) -> Result<RateLimit<Bytes>, SetupError> {
        self.rate.rate_limit()
    }
}

pub type BandwidthRatedUnqueue = RatedPull<BandwidthRatedUnqueueArgs>;
