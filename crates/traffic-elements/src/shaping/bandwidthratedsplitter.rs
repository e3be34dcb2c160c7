//! `BandwidthRatedSplitter`: splits traffic by bandwidth.

use element::prelude::*;

use super::rated::{ByteRate, Bytes, RateArguments, RateLimit};
use super::ratedsplit::RatedSplit;

/// Splits traffic by bandwidth: packets within RATE go to output 0, the excess to output 1.
///
/// A token bucket measures the rate. After a pause it allows a burst of BURST_BYTES, or of as many bytes as RATE yields
/// in BURST_DURATION (20 ms by default). Without output 1 the excess is dropped as `over_rate`.
/// ```click
/// InfiniteSource(LENGTH 1000, LIMIT 10, STOP true) -> s :: BandwidthRatedSplitter(1MBps, BURST_BYTES 4000);
/// s[0] -> within :: Counter -> Discard;
/// s[1] -> over :: Counter -> Discard;
/// ```
/// ```expect
/// within.count = 5
/// over.count = 5
/// ```
#[derive(Args)]
#[element(
    name = "BandwidthRatedSplitter",
    group = "shaping",
    ports = "1/1-2",
    processing = "h/h",
    shards = "divide",
    see = "RatedSplitter, BandwidthMeter, BandwidthShaper, BandwidthRatedUnqueue",
    drops = "over_rate"
)]
pub struct BandwidthRatedSplitterArgs {
    #[arg(flatten)]
    rate: ByteRate,
}

impl RateArguments for BandwidthRatedSplitterArgs {
    type Measure = Bytes;

    fn rate_limit(self) -> Result<RateLimit<Bytes>, SetupError> {
        self.rate.rate_limit()
    }
}

pub type BandwidthRatedSplitter = RatedSplit<BandwidthRatedSplitterArgs>;
