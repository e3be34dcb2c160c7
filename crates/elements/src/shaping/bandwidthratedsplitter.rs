//! `BandwidthRatedSplitter`: separates packets above a bandwidth.

use element::prelude::*;

use super::rated::{Allowance, ByteRate, Octets, Rated};
use super::ratedsplit::RatedSplit;

/// Sends packets of a bandwidth of at most RATE to output 0, and the others to output 1.
///
/// After a pause as many bytes may follow each other at once as come in BURST_DURATION (20 ms by default), or
/// BURST_BYTES. Without output 1 the excess is dropped as `over_rate`.
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
    see = "RatedSplitter, BandwidthMeter, BandwidthShaper, BandwidthRatedUnqueue",
    drops = "over_rate"
)]
pub struct BandwidthRatedSplitterArgs {
    #[arg(flatten)]
    rate: ByteRate,
}

impl Rated for BandwidthRatedSplitterArgs {
    type Measure = Octets;

    fn allowance(self) -> Result<Allowance<Octets>, SetupError> {
        self.rate.allowance()
    }
}

/// The element.
pub type BandwidthRatedSplitter = RatedSplit<BandwidthRatedSplitterArgs>;
