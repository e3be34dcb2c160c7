//! `DelayUnqueue`: moves packets from pull to push after a delay.

use element::Signal;
use element::arguments::SignedTime;
use element::number_format;
use element::prelude::*;

use crate::sources::MAX_PACKETS_PER_RUN;

/// Moves packets from pull to push, each DELAY after its timestamp.
///
/// A packet without a timestamp gets the time at which it was pulled. Output packets carry the time at which they were
/// due. The element holds one packet; the others wait in the upstream queue.
/// ```click
/// RatedSource(RATE 100, LIMIT 10) -> q :: Queue -> d :: DelayUnqueue(250ms) -> c :: Counter(COUNT_CALL 10 stop) -> Discard;
/// ```
/// ```expect
/// d.delay = 250ms
/// c.count = 10
/// ```
#[derive(Args)]
#[element(
    name = "DelayUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    shards = "independent",
    see = "DelayShaper, LinkUnqueue, Unqueue",
    fates = "waiting"
)]
pub struct DelayUnqueueArgs {
    /// Delay of each packet.
    #[arg(position)]
    delay: Timestamp,
}

pub struct DelayUnqueue {
    delay: Timestamp,
    held: Option<Packet>,
    /// Since when.
    since: Timestamp,
    signal: Signal,
}

/// Sets a packet's timestamp to the time at which it is due.
pub(crate) fn postpone(cx: &Context, packet: &mut Packet, delay: Timestamp) {
    let time = packet.timestamp();
    let time = if time.seconds() == 0 { cx.now() } else { time };
    packet.set_timestamp(time + delay);
}

impl Element for DelayUnqueue {
    type Args = DelayUnqueueArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("delay", "Delay of each packet.", |unqueue| number_format::interval(unqueue.delay)),
        Handler::setting("delay", "Sets the delay.", |unqueue, cx, value| {
            let SignedTime(delay) = cx.data(value)?;
            unqueue.delay = delay;
            Ok(())
        }),
    ];

    fn new(args: DelayUnqueueArgs, _: &mut Setup) -> Result<DelayUnqueue, SetupError> {
        Ok(DelayUnqueue { delay: args.delay, held: None, since: Timestamp::ZERO, signal: Signal::BUSY })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signal = cx.upstream_signal(0);
        cx.schedule();
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let now = cx.now();
        let mut moved = 0;
        while moved < MAX_PACKETS_PER_RUN {
            if moved > 0 {
                cx.deliver_singly();
            }
            let packet = self.held.take().or_else(|| {
                let mut packet = cx.pull_one(0)?;
                postpone(cx, &mut packet, self.delay);
                self.since = cx.steady();
                Some(packet)
            });
            match packet {
                Some(packet) if packet.timestamp() <= now => {
                    cx.send(0, packet);
                    moved += 1;
                }
                Some(packet) => {
                    cx.set_timer_after(0, packet.timestamp() - now);
                    self.held = Some(packet);
                    return moved > 0;
                }
                None => break,
            }
        }
        if moved == MAX_PACKETS_PER_RUN || self.signal.is_active() {
            cx.schedule();
        }
        moved > 0
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(usize::from(self.held.is_some()), Some(self.since));
    }

    fn inherit(&mut self, old: &mut DelayUnqueue, _: &mut Context) {
        self.held = old.held.take();
        self.since = old.since;
    }
}
