//! `DelayShaper`: delays packets on a pull path.

use element::prelude::*;
use element::{Direction, Signal, number_format};

use crate::storing::postpone;

/// Delays each packet on a pull path until DELAY after its timestamp.
///
/// A packet without a timestamp gets the time at which it was pulled. Output packets get the current time. The element
/// holds one packet; the others wait in the upstream queue. It notifies downstream tasks when a packet becomes due.
/// ```click
/// RatedSource(RATE 100, LIMIT 10) -> q :: Queue -> d :: DelayShaper(250ms) -> Unqueue
///   -> c :: Counter(COUNT_CALL 10 stop) -> Discard;
/// ```
/// ```expect
/// d.delay = 250ms
/// c.count = 10
/// ```
#[derive(Args)]
#[element(
    name = "DelayShaper",
    group = "shaping",
    ports = "1/1",
    processing = "l/l",
    notifies = "empty",
    shards = "independent",
    see = "DelayUnqueue, BandwidthShaper",
    fates = "waiting"
)]
pub struct DelayShaperArgs {
    /// Delay of each packet.
    #[arg(position)]
    delay: Timestamp,
}

pub struct DelayShaper {
    delay: Timestamp,
    held: Option<Packet>,
    /// Since when.
    since: Timestamp,
    upstream: Signal,
}

impl DelayShaper {
    fn pull_one(&mut self, cx: &mut Context, now: Timestamp) -> Option<Packet> {
        let packet = self.held.take().or_else(|| {
            let mut packet = cx.pull_one(0)?;
            postpone(cx, &mut packet, self.delay);
            self.since = cx.steady();
            Some(packet)
        });
        let Some(mut packet) = packet else {
            if !self.upstream.is_active() {
                cx.set_signal(Direction::Empty, false);
            }
            return None;
        };
        if packet.timestamp() > now {
            cx.set_timer_after(0, packet.timestamp() - now);
            cx.set_signal(Direction::Empty, false);
            self.held = Some(packet);
            return None;
        }
        packet.set_timestamp(now);
        Some(packet)
    }
}

impl Element for DelayShaper {
    type Args = DelayShaperArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("delay", "Delay of each packet.", |shaper| number_format::interval(shaper.delay)),
        Handler::setting("delay", "Sets the delay.", |shaper, cx, value| {
            let delay = cx.argument(value);
            shaper.delay = delay.map_err(|_| HandlerError::new("delay must be a timestamp"))?;
            Ok(())
        }),
    ];

    fn new(args: DelayShaperArgs, _: &mut Setup) -> Result<DelayShaper, SetupError> {
        Ok(DelayShaper { delay: args.delay, held: None, since: Timestamp::ZERO, upstream: Signal::BUSY })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.upstream = cx.upstream_signal(0);
        Ok(())
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let now = cx.now();
        for _ in 0..most {
            let Some(packet) = self.pull_one(cx, now) else { return };
            into.push(packet);
        }
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.set_signal(Direction::Empty, true);
    }

    fn woken(&mut self, cx: &mut Context) {
        // While a packet is held, the timer says when.
        if self.held.is_none() {
            cx.set_signal(Direction::Empty, true);
        }
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(usize::from(self.held.is_some()), Some(self.since));
    }

    fn inherit(&mut self, old: &mut DelayShaper, _: &mut Context) {
        self.held = old.held.take();
        self.since = old.since;
    }
}
