//! Rate control of the benchmark sources: rate, limit and achieved rate.

use element::prelude::*;

use super::frame::SenderArguments;
use super::production::Quota;
use crate::shaping::gaprate::{GapRate, MAX_RATE};

/// Rate control of a benchmark source.
pub(crate) struct RateControl {
    rate: Option<GapRate>,
    pub(crate) quota: Quota,
    pub(crate) active: bool,
    /// Steady time of the first and last packet in milliseconds.
    first: i64,
    last: Option<i64>,
}

impl RateControl {
    /// Reads the arguments.
    pub(crate) fn new(args: &SenderArguments, active: bool) -> RateControl {
        let rate = (args.rate > 0).then(|| GapRate::new(args.rate));
        RateControl { rate, quota: Quota::new(args.limit.into()), active, first: 0, last: None }
    }

    /// Whether the rate allows a packet now.
    pub(crate) fn is_due(&mut self, now: Timestamp) -> bool {
        let Some(rate) = &mut self.rate else { return true };
        let due = rate.is_due(now);
        if due {
            rate.add(1);
        }
        due
    }

    /// Counts a packet.
    pub(crate) fn count(&mut self, steady: Timestamp) {
        self.quota.count += 1;
        if self.quota.count == 1 {
            self.first = steady.millis();
        }
        if self.quota.is_used_up() {
            self.last = Some(steady.millis());
        }
    }

    /// Starts over.
    pub(crate) fn reset(&mut self) {
        (self.quota.count, self.first, self.last) = (0, 0, None);
    }

    /// Packets per second between the first and the last packet; 0 before the last.
    pub(crate) fn achieved(&self) -> String {
        let Some(last) = self.last else { return "0".into() };
        let span = last.saturating_sub(self.first).max(1) as u64;
        (self.quota.count.saturating_mul(1_000) / span).to_string()
    }

    /// Sets the rate from a handler's value.
    pub(crate) fn write_rate(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let rate = cx.argument(value);
        let rate: u32 = rate.map_err(|_| HandlerError::new("rate parameter must be integer >= 0"))?;
        if rate > MAX_RATE {
            return Err(HandlerError::new(format!("rate too large; max is {MAX_RATE}")));
        }
        if let Some(pace) = &mut self.rate {
            pace.set_rate(rate, cx.now());
        }
        Ok(())
    }

    /// Sets the limit from a handler's value.
    pub(crate) fn write_limit(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let limit = cx.argument(value);
        let limit: i32 = limit.map_err(|_| HandlerError::new("limit parameter must be integer >= 0"))?;
        self.quota.limit = limit.into();
        Ok(())
    }

    /// Starts or stops the source from a handler's value; starting resets it.
    pub(crate) fn write_active(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let active = cx.argument(value);
        self.active = active.map_err(|_| HandlerError::new("active parameter must be boolean"))?;
        if self.active {
            self.reset();
        }
        Ok(())
    }
}

/// Handlers of a benchmark source: the common ones, then its own. The block resets what the source itself counts.
macro_rules! handlers {
    (|$source:ident| $rewind:block; $($own:expr),* $(,)?) => {
        &[
            Handler::read("count", "Packets sent.", |source| source.pace.quota.count.to_string()),
            Handler::read("rate", "Achieved packets per second, after the last packet.", |source| source.pace.achieved()),
            Handler::setting("rate", "Sets the packets per second.", |source, cx, value| {
                source.pace.write_rate(cx, value)
            }),
            Handler::action("reset", "Starts over.", |$source, _, _| {
                $source.pace.reset();
                $rewind
                Ok(())
            }),
            Handler::setting("active", "Starts over, or stops.", |$source, cx, value| {
                $rewind
                $source.pace.write_active(cx, value)
            }),
            Handler::setting("limit", "Sets the number of packets to send.", |source, cx, value| {
                source.pace.write_limit(cx, value)
            }),
            $($own,)*
        ]
    };
}
pub(super) use handlers;
