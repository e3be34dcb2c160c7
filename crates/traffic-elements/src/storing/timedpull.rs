//! The element behind `TimedUnqueue` and `Burster`.

use core::marker::PhantomData;

use element::Signal;
use element::prelude::*;

/// Distinguishes the elements that pull at intervals.
pub trait TimedPullVariant: 'static {
    type Args: Args;

    /// Interval, and maximum number of packets per interval.
    fn pace(args: Self::Args) -> (Timestamp, i32);
}

/// Pulls a burst of packets per interval and pushes them on.
pub struct TimedPull<T: TimedPullVariant> {
    interval: Timestamp,
    burst: usize,
    signal: Signal,
    /// When the timer was last due, unless it has slept since.
    expiry: Option<Timestamp>,
    kind: PhantomData<T>,
}

impl<T: TimedPullVariant> Element for TimedPull<T> {
    type Args = T::Args;

    fn new(args: T::Args, _: &mut Setup) -> Result<TimedPull<T>, SetupError> {
        let (interval, burst) = T::pace(args);
        let burst = usize::try_from(burst).ok().filter(|burst| *burst > 0);
        Ok(TimedPull {
            // Timers of this element count milliseconds.
            interval: Timestamp::from_millis(interval.millis()),
            burst: burst.ok_or_else(|| SetupError::new("bad BURST"))?,
            signal: Signal::BUSY,
            expiry: None,
            kind: PhantomData,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signal = cx.upstream_signal(0);
        cx.schedule();
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        // Packets that come meanwhile wait for the timer.
        if cx.timer(0).is_some() {
            return false;
        }
        let mut moved = 0;
        while moved < self.burst {
            // Not the last one: what it leads to may be written to this element.
            if moved > 0 {
                cx.deliver_singly();
            }
            let most = (self.burst - moved).min(cx.batch_limit());
            let mut batch = cx.batch();
            let count = cx.pull_burst(0, most, &mut batch);
            cx.emit(0, batch);
            moved += count;
            if count < most {
                break;
            }
        }
        if moved == 0 && !self.signal.is_active() {
            self.expiry = None;
            return false;
        }
        let next = self.expiry.unwrap_or(cx.steady()) + self.interval;
        self.expiry = Some(next);
        cx.set_timer(0, next);
        true
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }
}
