//! `BandwidthShaper`: limits a pull path to a bandwidth.

use element::arguments::Bandwidth;
use element::number_format;
use element::prelude::*;

use super::gaprate::{GapRate, MAX_RATE};

/// Limits a pull path to a bandwidth of RATE, with packets evenly spaced.
/// ```click
/// InfiniteSource(LENGTH 1000) -> s :: BandwidthShaper(80kBps) -> TimedUnqueue(1ms) -> c :: Counter -> Discard;
/// InfiniteSource -> TimedUnqueue(1s) -> seconds :: Counter(COUNT_CALL 2 stop) -> Discard;
/// ```
/// ```expect
/// s.rate = 640kbps
/// c.byte_count = 81000
/// c.count = 81
/// seconds.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "BandwidthShaper",
    group = "shaping",
    ports = "1/1-2",
    processing = "l/l",
    shards = "divide",
    see = "Shaper, BandwidthRatedSplitter, BandwidthRatedUnqueue"
)]
pub struct BandwidthShaperArgs {
    /// Maximum bandwidth.
    #[arg(position)]
    rate: Bandwidth,
}

pub struct BandwidthShaper {
    /// The rate of all shards together.
    given: u32,
    rate: GapRate,
}

impl Element for BandwidthShaper {
    type Args = BandwidthShaperArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("rate", "Maximum bandwidth.", |shaper| number_format::bandwidth(shaper.given)),
        Handler::argument("rate", (Some(0), "RATE"), "Sets the bandwidth.", |shaper, cx, value| {
            let rate: Bandwidth = cx.keyword("RATE", value)?;
            shaper.rate.set_rate(cx.shard().divide("RATE", rate.0 as u32)?, cx.now());
            shaper.given = (rate.0 as u32).min(MAX_RATE);
            Ok(())
        }),
        Handler::read("config", "Maximum bandwidth.", |shaper| number_format::bandwidth(shaper.given)),
        Handler::action("reset", "Restarts the measurement of the rate.", |shaper, _, _| {
            shaper.rate.reset();
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: BandwidthShaperArgs, setup: &mut Setup) -> Result<BandwidthShaper, SetupError> {
        let given = (args.rate.0 as u32).min(MAX_RATE);
        let rate = GapRate::new(setup.shard.divide("RATE", given)?);
        Ok(BandwidthShaper { given, rate })
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let now = cx.now();
        for _ in 0..most {
            if !self.rate.is_due(now) {
                return;
            }
            if cx.pull(0, 1, into) == 0 {
                return;
            }
            self.rate.add(into.as_slice().last().map_or(0, Packet::len) as u32);
        }
    }
}
