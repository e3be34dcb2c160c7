//! `BandwidthMeter`: sorts traffic by the bandwidth in which it comes.

use element::arguments::Raw;
use element::prelude::*;

use super::ratemeter::{Measure, RateMeter};

/// Sends all packets to output 0 while they come at less than the first rate, to output 1 below the second, and so on.
///
/// The rates are bandwidths. There is one output more than rates. The rate at which packets come is a
/// moving average over the last few hundredths of a second.
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
    /// Bandwidths, each more than the one before.
    #[arg(rest, keyword = "RATES")]
    rates: Vec<Raw>,
}

/// The kind.
pub struct Octets;

impl Measure for Octets {
    type Args = BandwidthMeterArgs;

    fn rates(args: BandwidthMeterArgs) -> Vec<Raw> {
        args.rates
    }

    fn amount(batch: &Batch) -> u64 {
        batch.iter().map(|packet| packet.len() as u64).sum()
    }
}

/// The element.
pub type BandwidthMeter = RateMeter<Octets>;
