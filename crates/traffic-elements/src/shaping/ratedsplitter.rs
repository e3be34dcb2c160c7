//! `RatedSplitter`: splits traffic by packet rate.

use element::prelude::*;

use super::rated::{PacketRate, Packets, RateArguments, RateLimit};
use super::ratedsplit::RatedSplit;

/// Splits traffic by packet rate: up to RATE packets a second go to output 0, the excess to output 1.
///
/// A token bucket measures the rate. After a pause it allows a burst of BURST_SIZE packets, or of as many packets as
/// RATE yields in BURST_DURATION (20 ms by default). Without output 1 the excess is dropped as `over_rate`.
/// ```click
/// InfiniteSource(LIMIT 10, STOP true) -> s :: RatedSplitter(1000, BURST_SIZE 4);
/// s[0] -> within :: Counter -> Discard;
/// s[1] -> over :: Counter -> Discard;
/// ```
/// ```expect
/// within.count = 4
/// over.count = 6
/// ```
#[derive(Args)]
#[element(
    name = "RatedSplitter",
    group = "shaping",
    ports = "1/1-2",
    processing = "h/h",
    shards = "divide",
    see = "BandwidthRatedSplitter, Meter, Shaper, RatedUnqueue",
    drops = "over_rate"
)]
pub struct RatedSplitterArgs {
    #[arg(flatten)]
    rate: PacketRate,
}

impl RateArguments for RatedSplitterArgs {
    type Measure = Packets;

    fn rate_limit(self) -> Result<RateLimit<Packets>, SetupError> {
        self.rate.rate_limit()
    }
}

pub type RatedSplitter = RatedSplit<RatedSplitterArgs>;
