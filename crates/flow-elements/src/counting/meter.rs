//! `Meter`: selects an output by packet rate.

use element::arguments::Raw;
use element::prelude::*;

use super::ratemeter::{Measure, RateMeter};

/// Sends all packets to one output, chosen by the current packet rate.
///
/// Packets go to output 0 while the rate is below the first threshold, to output 1 below the second, and so on. There
/// is one more output than there are thresholds. The packet rate is an exponentially weighted moving average over a few
/// hundredths of a second.
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
    /// Packet rate thresholds, in packets per second and increasing order.
    #[arg(rest, keyword = "RATES")]
    rates: Vec<Raw>,
}

/// Counts packets.
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

pub type Meter = RateMeter<Packets>;
