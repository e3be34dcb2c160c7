//! `RatedSplitter` and `BandwidthRatedSplitter` but for their arguments.

use element::prelude::*;

use super::rated::{Measure, Meter};

/// What tells the two apart.
pub trait Rated: 'static {
    /// The arguments.
    type Args: Args;
    /// What counts.
    type Measure: Measure;

    /// The token bucket that the arguments describe.
    fn meter(args: Self::Args) -> Result<Meter<Self::Measure>, SetupError>;
}

/// Sends packets within a rate to output 0 and the others to output 1.
pub struct RatedSplit<R: Rated> {
    meter: Meter<R::Measure>,
}

impl<R: Rated> Element for RatedSplit<R> {
    type Args = R::Args;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("rate", "The rate.", |split| split.meter.text()),
        Handler::write("rate", "Sets the rate.", |split, cx, value| split.meter.write(cx, value)),
        Handler::read("config", "The rate.", |split| split.meter.text()),
    ];
    const LIVE: bool = true;

    fn new(args: R::Args, _: &mut Setup) -> Result<RatedSplit<R>, SetupError> {
        Ok(RatedSplit { meter: R::meter(args)? })
    }

    fn reconfigure(&mut self, args: R::Args, _: &mut Setup) -> Result<(), SetupError> {
        self.meter.adopt(R::meter(args)?);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        let now = cx.steady();
        for packet in batch.drain() {
            if self.meter.allows(now) {
                self.meter.pay(&packet);
                cx.send(0, packet);
            } else if cx.outputs() < 2 {
                cx.drop(packet, "over_rate");
            } else {
                cx.send(1, packet);
            }
        }
        cx.recycle(batch);
    }
}
