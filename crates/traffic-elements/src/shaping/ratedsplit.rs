//! The element behind `RatedSplitter` and `BandwidthRatedSplitter`.

use element::prelude::*;

use super::rated::{RateArguments, RateLimit};

/// Splits traffic by rate: packets within the rate to output 0, the excess to output 1.
pub struct RatedSplit<R: RateArguments> {
    rate_limit: RateLimit<R::Measure>,
}

impl<R: RateArguments> Element for RatedSplit<R> {
    type Args = R;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("rate", "Maximum rate.", |split| split.rate_limit.text()),
        Handler::argument("rate", (Some(0), "RATE"), "Sets the rate.", |split, cx, value| {
            split.rate_limit.write(cx, value)
        }),
        Handler::read("config", "Maximum rate.", |split| split.rate_limit.text()),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: R, setup: &mut Setup) -> Result<RatedSplit<R>, SetupError> {
        Ok(RatedSplit { rate_limit: args.rate_limit()?.divided(setup.shard)? })
    }

    fn reconfigure(&mut self, args: R, setup: &mut Setup) -> Result<(), SetupError> {
        self.rate_limit.adopt(args.rate_limit()?.divided(setup.shard)?);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        let now = cx.steady();
        for packet in batch.drain() {
            if self.rate_limit.allows(now) {
                self.rate_limit.consume(&packet);
                cx.send(0, packet);
            } else if cx.outputs() < 2 {
                cx.drop(packet, Reason::OVER_RATE);
            } else {
                cx.send(1, packet);
            }
        }
        cx.recycle(batch);
    }
}
