//! `TimedSink`: pulls and discards a packet per interval.

use element::number_format;
use element::prelude::*;

/// Pulls a packet every INTERVAL and discards it. Discarded packets do not count as drops.
/// ```click
/// source :: InfiniteSource(LIMIT 3, STOP true) -> t :: TimedSink(10ms);
/// ```
/// ```expect
/// t.interval = 10ms
/// source.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "TimedSink",
    group = "sources",
    ports = "1/0",
    processing = "l/",
    see = "Discard, TimedSource",
    fates = "discarded"
)]
pub struct TimedSinkArgs {
    /// Time between packets.
    #[arg(position, default = "500ms")]
    interval: Timestamp,
}

pub struct TimedSink {
    interval: Timestamp,
    /// When the timer is due, or was last due.
    next: Timestamp,
}

impl Element for TimedSink {
    type Args = TimedSinkArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("interval", "Time between packets.", |sink| number_format::interval(sink.interval)),
        Handler::setting("interval", "Sets the time between packets.", |sink, cx, value| {
            let interval = cx.argument(value).ok().filter(|interval| *interval > Timestamp::ZERO);
            sink.interval = interval.ok_or_else(|| HandlerError::new("bad interval"))?;
            Ok(())
        }),
    ];

    fn new(args: TimedSinkArgs, _: &mut Setup) -> Result<TimedSink, SetupError> {
        Ok(TimedSink { interval: args.interval, next: Timestamp::ZERO })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.next = cx.steady() + self.interval;
        cx.set_timer(0, self.next);
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        if let Some(packet) = cx.pull_one(0) {
            cx.end(packet, Fate::Discarded);
        }
        self.next += self.interval;
        cx.set_timer(0, self.next);
    }
}
