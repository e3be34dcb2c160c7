//! The element behind `RatedUnqueue` and `BandwidthRatedUnqueue`.

use element::Signal;
use element::prelude::*;

use crate::shaping::rated::{RateArguments, RateLimit};

/// Pulls packets at a limited rate and pushes them on.
pub struct RatedPull<R: RateArguments> {
    rate_limit: RateLimit<R::Measure>,
    active: bool,
    signal: Signal,
    runs: u64,
    pushes: u64,
    failed: u64,
    empty: u64,
}

impl<R: RateArguments> Element for RatedPull<R> {
    type Args = R;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("calls", "Number of task runs, by outcome.", |rated| {
            format!(
                "{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n",
                rated.runs, rated.empty, rated.pushes, rated.failed
            )
        }),
        Handler::read("rate", "Maximum rate.", |rated| rated.rate_limit.text()),
        Handler::argument("rate", (Some(0), "RATE"), "Sets the rate.", |rated, cx, value| {
            rated.rate_limit.write(cx, value)
        }),
        Handler::read("active", "Whether it pulls packets.", |rated| rated.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |rated, cx, value| {
            rated.active = cx.data(value)?;
            Ok(())
        }),
        Handler::read("config", "Maximum rate.", |rated| rated.rate_limit.text()),
    ];

    const LIVE_RECONFIGURE: bool = true;

    fn new(args: R, setup: &mut Setup) -> Result<RatedPull<R>, SetupError> {
        Ok(RatedPull {
            rate_limit: args.rate_limit()?.divided(setup.shard)?,
            active: true,
            signal: Signal::BUSY,
            runs: 0,
            pushes: 0,
            failed: 0,
            empty: 0,
        })
    }

    fn reconfigure(&mut self, args: R, setup: &mut Setup) -> Result<(), SetupError> {
        self.rate_limit.adopt(args.rate_limit()?.divided(setup.shard)?);
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signal = cx.upstream_signal(0);
        cx.schedule();
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        self.runs += 1;
        if !self.active {
            return false;
        }
        if !self.rate_limit.allows(cx.steady()) {
            cx.set_timer_after(0, self.rate_limit.wait());
            self.empty += 1;
            return false;
        }
        let Some(packet) = cx.pull_one(0) else {
            self.failed += 1;
            if self.signal.is_active() {
                self.empty += 1;
                cx.schedule();
            }
            return false;
        };
        self.rate_limit.consume(&packet);
        self.pushes += 1;
        cx.send(0, packet);
        cx.schedule();
        true
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }
}
