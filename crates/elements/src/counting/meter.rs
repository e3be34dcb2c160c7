//! `Meter`: sorts traffic by the packets a second in which it comes.

use element::arguments::Raw;
use element::prelude::*;

use super::ratemeter::{Measure, RateMeter};

/// Sends all packets to output 0 while they come at less than the first rate, to output 1 below the second, and so on.
///
/// The rates are packets a second. There is one output more than rates. The rate at which packets come is a
/// moving average over the last few hundredths of a second.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> m :: Meter(10000);
/// m[0] -> low :: Counter -> Discard;
/// m[1] -> high :: Counter -> Discard;
/// ```
/// ```expect
/// low.count = 5
/// high.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "Meter",
    group = "counting",
    ports = "1/2-",
    processing = "h/h",
    see = "BandwidthMeter, RatedSplitter, Shaper"
)]
pub struct MeterArgs {
    /// Packets a second, each more than the one before.
    #[arg(rest, keyword = "RATES")]
    rates: Vec<Raw>,
}

/// The kind.
pub struct Packets;

impl Measure for Packets {
    type Args = MeterArgs;

    fn rates(args: MeterArgs) -> Vec<Raw> {
        args.rates
    }

    fn amount(batch: &Batch) -> u64 {
        batch.len() as u64
    }
}

/// The element.
pub type Meter = RateMeter<Packets>;
