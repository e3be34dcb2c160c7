//! `Shaper`: limits a pull path to a packet rate.

use element::prelude::*;

use super::gaprate::{GapRate, MAX_RATE};

/// Limits a pull path to RATE packets a second, evenly spaced.
///
/// Pulls on output 1, if it exists, take packets at times when output 0 would get none.
/// ```click
/// InfiniteSource -> s :: Shaper(100) -> TimedUnqueue(1ms) -> c :: Counter -> Discard;
/// InfiniteSource -> TimedUnqueue(1s) -> seconds :: Counter(COUNT_CALL 2 stop) -> Discard;
/// ```
/// ```expect
/// s.rate = 100
/// c.count = 101
/// seconds.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "Shaper",
    group = "shaping",
    ports = "1/1-2",
    processing = "l/l",
    shards = "divide",
    see = "BandwidthShaper, RatedSplitter, RatedUnqueue"
)]
pub struct ShaperArgs {
    /// Packets per second.
    #[arg(position)]
    rate: u32,
}

pub struct Shaper {
    /// The rate of all shards together.
    given: u32,
    rate: GapRate,
}

impl Element for Shaper {
    type Args = ShaperArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("rate", "Packets per second.", |shaper| shaper.given.to_string()),
        Handler::argument("rate", (Some(0), "RATE"), "Sets the packets a second.", |shaper, cx, value| {
            let rate = cx.keyword("RATE", value)?;
            shaper.rate.set_rate(cx.shard().divide("RATE", rate)?, cx.now());
            shaper.given = rate.min(MAX_RATE);
            Ok(())
        }),
        Handler::read("config", "Packets per second.", |shaper| shaper.given.to_string()),
        Handler::action("reset", "Restarts the measurement of the rate.", |shaper, _, _| {
            shaper.rate.reset();
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ShaperArgs, setup: &mut Setup) -> Result<Shaper, SetupError> {
        let rate = GapRate::new(setup.shard.divide("RATE", args.rate)?);
        Ok(Shaper { given: args.rate.min(MAX_RATE), rate })
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        let left = self.rate.left(cx.now());
        if port == 0 {
            let count = cx.pull_burst(0, most.min(left), into);
            self.rate.add(count as u32);
        } else if left == 0 {
            cx.pull_burst(0, most, into);
        }
    }
}
