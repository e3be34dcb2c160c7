//! `RatedSplitter` and `BandwidthRatedSplitter` but for their arguments.

use element::prelude::*;

use super::rated::{Allowance, Rated};

/// Splits traffic by rate: packets within the rate to output 0, the excess to output 1.
pub struct RatedSplit<R: Rated> {
    allowance: Allowance<R::Measure>,
}

impl<R: Rated> Element for RatedSplit<R> {
    type Args = R;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("rate", "Maximum rate.", |split| split.allowance.text()),
        Handler::argument("rate", (Some(0), "RATE"), "Sets the rate.", |split, cx, value| {
            split.allowance.write(cx, value)
        }),
        Handler::read("config", "Maximum rate.", |split| split.allowance.text()),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: R, _: &mut Setup) -> Result<RatedSplit<R>, SetupError> {
        Ok(RatedSplit { allowance: args.allowance()? })
    }

    fn reconfigure(&mut self, args: R, _: &mut Setup) -> Result<(), SetupError> {
        self.allowance.adopt(args.allowance()?);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        let now = cx.steady();
        for packet in batch.drain() {
            if self.allowance.allows(now) {
                self.allowance.pay(&packet);
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
