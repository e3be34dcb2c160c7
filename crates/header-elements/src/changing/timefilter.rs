//! `TimeFilter`: passes packets within a time span.

use element::arguments::HandlerCall;
use element::number_format;
use element::prelude::*;

/// Passes packets whose timestamps lie within a time span. The span includes its start and excludes its end.
///
/// - Start: START, a time; START_AFTER, relative to the first packet; or START_DELAY, relative to the start of the
///   router.
/// - End: END, END_AFTER or END_DELAY in the same way, or INTERVAL, relative to the start of the span.
///
/// Other packets go to output 1, or are dropped.
///
/// At the first packet after the span, STOP stops the driver, and END_CALL writes a handler, with `$t` in its value
/// replaced by the packet's timestamp. If that handler extends the span with `extend_interval`, the packet passes.
///
/// ## Differences
/// On a pull path, the packet for which END_CALL is called is dropped even if the span is extended.
/// ```click
/// InfiniteSource(LIMIT 4, STOP true) -> SetTimestamp(3) -> f :: TimeFilter(1, 4) -> in :: Counter -> Discard;
/// f[1] -> out :: Counter -> Discard;
/// ```
/// ```expect
/// f.interval = 3.000000
/// in.count = 4
/// out.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "TimeFilter",
    group = "changing",
    ports = "1/1-2",
    processing = "a/ah",
    see = "SetTimestamp, AdjustTimestamp",
    drops = "outside_time",
    fates = "waiting"
)]
pub struct TimeFilterArgs {
    /// Start as a time.
    #[arg(position)]
    start: Option<Timestamp>,
    /// End as a time.
    #[arg(position)]
    end: Option<Timestamp>,
    /// Start, relative to the start of the router.
    start_delay: Option<Timestamp>,
    /// End, relative to the start of the router.
    end_delay: Option<Timestamp>,
    /// Start, relative to the first packet.
    start_after: Option<Timestamp>,
    /// End, relative to the first packet.
    end_after: Option<Timestamp>,
    /// Length of the span.
    interval: Option<Timestamp>,
    /// Stop the driver at the end.
    #[arg(default = "false")]
    stop: bool,
    /// Handler to write at the end.
    end_call: Option<HandlerCall>,
}

/// The time to which a bound is relative.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// None: the bound is absolute.
    Epoch,
    /// The router's start.
    Router,
    /// The first packet.
    Packet,
    /// The start of the span.
    Start,
}

pub struct TimeFilter {
    first: (Timestamp, Base),
    last: (Timestamp, Base),
    started: bool,
    call: Option<HandlerCall>,
    stop: bool,
    /// Whether the end has not been reported yet.
    end_pending: bool,
    /// The packet that END_CALL decides about.
    held: Option<Packet>,
    /// Since when it is held.
    since: Timestamp,
}

impl TimeFilter {
    /// Makes all bounds absolute, now that the time of the first packet is known.
    fn start(&mut self, time: Timestamp) {
        self.started = true;
        if self.first.1 == Base::Packet {
            self.first = (self.first.0.wrapping_add(time), Base::Epoch);
        }
        self.last.0 = self.last.0.wrapping_add(match self.last.1 {
            Base::Packet => time,
            Base::Start => self.first.0,
            Base::Epoch | Base::Router => Timestamp::ZERO,
        });
        self.last.1 = Base::Epoch;
    }

    /// Calls END_CALL and holds the packet until the call has returned.
    fn call_end(&mut self, cx: &Context, call: &HandlerCall, packet: Packet) {
        let time = number_format::timestamp(packet.timestamp());
        self.end_pending = false;
        (self.held, self.since) = (Some(packet), cx.steady());
        cx.defer_write(&call.path, &call.value.replace("${t}", &time).replace("$t", &time));
        cx.defer_write(&format!("{}.decide", cx.name()), "");
    }

    fn reject(cx: &mut Context, packet: Packet) {
        if cx.outputs() > 1 {
            cx.send(1, packet);
        } else {
            cx.drop(packet, Reason::OUTSIDE_TIME);
        }
    }

    /// Passes or rejects the held packet, after END_CALL.
    fn decide(&mut self, cx: &mut Context) {
        let Some(packet) = self.held.take() else { return };
        if packet.timestamp() < self.last.0 && cx.is_push_output(0) {
            cx.send(0, packet);
        } else if self.end_pending
            && cx.is_push_output(0)
            && let Some(call) = self.call.clone()
        {
            self.call_end(cx, &call, packet);
        } else {
            TimeFilter::reject(cx, packet);
        }
    }

    /// Sets the end.
    fn set_end(&mut self, end: Timestamp) {
        // END_CALL is called again only if the end has moved to a later time.
        self.end_pending = end > self.last.0 || self.held.is_none();
        self.last = (end, Base::Epoch);
    }
}

/// The default end: the last second of a signed 32-bit clock, as in Click.
const END_OF_TIME: Timestamp = Timestamp::from_parts(i32::MAX as i64, 0);

fn span(cx: &Context, value: &str) -> Result<Timestamp, HandlerError> {
    cx.argument(value).map_err(|_| HandlerError::new("expected time"))
}

/// The only bound that is given and not zero; an error if there are several.
fn at_most_one(
    bounds: [(Option<Timestamp>, Base); 4],
    problem: &str,
) -> Result<Option<(Timestamp, Base)>, SetupError> {
    let mut given = bounds
        .into_iter()
        .filter_map(|(bound, base)| bound.filter(|bound| !bound.is_zero()).map(|bound| (bound, base)));
    let one = given.next();
    if given.next().is_some() { Err(SetupError::new(problem)) } else { Ok(one) }
}

impl Filter for TimeFilter {
    type Args = TimeFilterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("start", "Start of the span.", |filter| number_format::timestamp(filter.first.0)),
        Handler::setting("start", "Sets the start of the span.", |filter, cx, value| {
            let time = span(cx, value)?;
            if !filter.started {
                filter.start(time);
            }
            filter.first = (time, Base::Epoch);
            Ok(())
        }),
        Handler::read("end", "End of the span.", |filter| number_format::timestamp(filter.last.0)),
        Handler::setting("end", "Sets the end of the span.", |filter, cx, value| {
            let time = span(cx, value)?;
            filter.set_end(filter.first.0.wrapping_add(time));
            Ok(())
        }),
        Handler::read("interval", "Length of the span.", |filter| {
            number_format::timestamp(filter.last.0 - filter.first.0)
        }),
        Handler::edit("extend_interval", "Moves the end of the span by a time.", |filter, cx, value| {
            let time = span(cx, value)?;
            filter.set_end(filter.last.0.wrapping_add(time));
            Ok(())
        }),
        Handler::action("decide", "Decides about the current packet.", |filter: &mut Self, cx, _| {
            filter.decide(cx);
            Ok(())
        })
        .hidden(),
    ];

    fn new(args: TimeFilterArgs, setup: &mut Setup) -> Result<TimeFilter, SetupError> {
        let first = at_most_one(
            [
                (args.start, Base::Epoch),
                (args.start_delay, Base::Router),
                (args.start_after, Base::Packet),
                (None, Base::Epoch),
            ],
            "START, START_AFTER, and START_AFTER_INIT are mutually exclusive",
        )?;
        let last = at_most_one(
            [
                (args.end, Base::Epoch),
                (args.end_delay, Base::Router),
                (args.end_after, Base::Packet),
                (args.interval, Base::Start),
            ],
            "END, END_AFTER, END_AFTER_INIT, and INTERVAL are mutually exclusive",
        )?;
        if args.end_call.is_some() && args.stop {
            return Err(SetupError::new("END_CALL and STOP are mutually exclusive"));
        }
        setup.unbatched = args.end_call.is_some();
        Ok(TimeFilter {
            first: first.unwrap_or((Timestamp::ZERO, Base::Packet)),
            last: last.unwrap_or((END_OF_TIME, Base::Epoch)),
            started: false,
            call: args.end_call,
            stop: args.stop,
            end_pending: true,
            held: None,
            since: Timestamp::ZERO,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.call.as_ref().map_or(Ok(()), |call| call.resolve(cx, "END_CALL"))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        for bound in [&mut self.first, &mut self.last] {
            if bound.1 == Base::Router {
                *bound = (bound.0 + cx.now(), Base::Epoch);
            }
        }
        self.call.as_ref().map_or(Ok(()), |call| call.check(cx))
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(usize::from(self.held.is_some()), Some(self.since));
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let time = packet.timestamp();
        if !self.started {
            self.start(time);
        }
        if time >= self.first.0 && time < self.last.0 {
            return Verdict::Pass(packet);
        }
        if time >= self.last.0 && time >= self.first.0 && self.end_pending {
            if let Some(call) = self.call.clone() {
                self.call_end(cx, &call, packet);
                return Verdict::Taken;
            }
            if self.stop {
                cx.stop();
            }
            self.end_pending = false;
        }
        Verdict::Divert(packet, Reason::OUTSIDE_TIME)
    }
}
