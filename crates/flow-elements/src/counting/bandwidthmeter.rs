//! `BandwidthMeter`: selects an output by bandwidth.

use element::arguments::Raw;
use element::prelude::*;

use super::ratemeter::{Measure, RateMeter};

/// Sends all packets to one output, chosen by the current bandwidth.
///
/// Packets go to output 0 while the bandwidth is below the first threshold, to output 1 below the second, and so on.
/// There is one more output than there are thresholds. The bandwidth is an exponentially weighted moving average over
/// a few hundredths of a second.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> m :: BandwidthMeter(20kBps);
/// m[0] -> low :: Counter -> Discard;
/// m[1] -> high :: Counter -> Discard;
/// ```
/// ```expect
/// low.count = 5
/// high.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "BandwidthMeter",
    group = "counting",
    ports = "1/2-",
    processing = "h/h",
    see = "Meter, BandwidthRatedSplitter, BandwidthShaper"
)]
pub struct BandwidthMeterArgs {
    /// Bandwidth thresholds in increasing order.
    #[arg(rest, keyword = "RATES")]
    rates: Vec<Raw>,
}

/// Counts bytes.
pub struct Bytes;

impl Measure for Bytes {
    type Args = BandwidthMeterArgs;

    fn rates(args: BandwidthMeterArgs) -> Vec<Raw> {
        args.rates
    }

    fn amount(batch: &Batch) -> u64 {
        batch.iter().map(|packet| packet.len() as u64).sum()
    }
}

pub type BandwidthMeter = RateMeter<Bytes>;
