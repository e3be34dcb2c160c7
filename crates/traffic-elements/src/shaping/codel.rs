//! `CoDel`: drops packets that have queued too long.

use element::arguments::Raw;
use element::number_format;
use element::prelude::*;

use super::watched::WatchedQueues;

/// CoDel active queue management (RFC 8289): drops packets when all have queued longer than TARGET for a whole
/// INTERVAL.
///
/// Place it downstream of a queue, on the pull path. It measures queueing time from the first timestamp annotation,
/// which `SetTimestamp(FIRST true)` sets upstream of the queue; packets without it pass. While the delay lasts, drops
/// become more frequent. QUEUES, or the nearest queues, only supply the lengths for `stats`. Drops are counted as
/// `late`.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> SetTimestamp(FIRST true) -> q :: Queue -> d :: CoDel(5ms, 100ms) -> Unqueue
///   -> c :: Counter(COUNT_CALL 10 stop) -> Discard;
/// ```
/// ```expect
/// d.queues = q
/// d.drops = 0
/// c.count = 10
/// ```
#[derive(Args)]
#[element(
    name = "CoDel",
    group = "shaping",
    ports = "1/1",
    processing = "l/l",
    pulls_again,
    shards = "sum",
    sums = "drops",
    see = "RED, SetTimestamp",
    drops = "late"
)]
pub struct CoDelArgs {
    /// Acceptable queueing time.
    #[arg(position, default = "5ms")]
    target: Timestamp,
    /// How long queueing times must exceed TARGET before drops begin.
    #[arg(position, default = "100ms")]
    interval: Timestamp,
    /// Names of the queues to report. By default the nearest ones.
    queues: Option<Raw>,
}

pub struct CoDel {
    args: CoDelArgs,
    watched: WatchedQueues,
    control: ControlState,
    drops: u64,
}

/// State of the control loop.
#[derive(Clone, Copy, Debug, Default)]
struct ControlState {
    /// When delays will have exceeded the target for a whole interval; `None` while they do not.
    above: Option<Timestamp>,
    /// When the next drop is due.
    next: Timestamp,
    /// Drops since dropping began.
    count: u32,
    dropping: bool,
}

impl ControlState {
    /// Whether a packet that queued for `waited` may be dropped at time `now`.
    fn is_late(&mut self, args: &CoDelArgs, waited: Timestamp, now: Timestamp) -> bool {
        if waited < args.target {
            self.above = None;
            return false;
        }
        match self.above {
            None => {
                self.above = Some(now + args.interval);
                false
            }
            Some(above) => now >= above,
        }
    }

    /// Time of the drop after one at `time`: INTERVAL divided by the square root of the number of drops later.
    fn next_drop_time(&self, args: &CoDelArgs, time: Timestamp) -> Timestamp {
        // The root of 256 times the number is 16 times its root.
        let root = (u64::from(self.count.max(1)) << 8).isqrt() as i64;
        time + Timestamp::from_nanos(args.interval.nanos().saturating_mul(16) / root.max(1))
    }

    /// Whether a late packet at time `now` starts a dropping phase.
    fn starts_dropping(&self, args: &CoDelArgs, now: Timestamp) -> bool {
        let lasted = now - self.above.unwrap_or(Timestamp::ZERO);
        now - self.next < args.interval || lasted >= args.interval
    }
}

/// What the next packet that is pulled is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It answers a pull.
    First,
    /// It takes the place of the packet that began a dropping phase, and stays.
    AfterFirstDrop,
    /// It takes the place of a packet that was dropped during such a phase.
    AfterDrop,
}

impl CoDel {
    /// Whether to drop a packet that was pulled at time `now`. Updates what the next one is for.
    fn should_drop(&mut self, turn: &mut Turn, packet: &Packet, now: Timestamp) -> bool {
        let CoDel { args, control, .. } = self;
        let first = packet.first_timestamp();
        let is_stamped = first.seconds() != 0;
        let is_late = is_stamped && control.is_late(args, now - first, now);
        match core::mem::replace(turn, Turn::First) {
            Turn::First if !is_stamped => control.dropping = false,
            Turn::First if control.dropping => control.dropping = is_late,
            Turn::First if is_late && control.starts_dropping(args, now) => {
                let recently = now - control.next < args.interval && control.count > 2;
                control.count = if recently { control.count - 2 } else { 1 };
                control.dropping = true;
                control.next = control.next_drop_time(args, now);
                *turn = Turn::AfterFirstDrop;
                return true;
            }
            Turn::First | Turn::AfterFirstDrop => return false,
            Turn::AfterDrop => {
                control.dropping = is_late;
                if is_late {
                    control.next = control.next_drop_time(args, control.next);
                }
            }
        }
        if control.dropping && now >= control.next {
            control.count += 1;
            *turn = Turn::AfterDrop;
            return true;
        }
        false
    }
}

impl Element for CoDel {
    type Args = CoDelArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets dropped.", |codel| codel.drops.to_string()),
        Handler::read("codel_target", "Acceptable queueing time.", |codel| {
            number_format::interval(codel.args.target)
        }),
        Handler::argument(
            "codel_target",
            (Some(0), "TARGET"),
            "Sets the acceptable queueing time.",
            |codel, cx, value| {
                codel.args.target = cx.keyword("TARGET", value)?;
                Ok(())
            },
        ),
        Handler::read(
            "codel_interval",
            "How long queueing times must exceed the target before drops begin.",
            |codel| number_format::interval(codel.args.interval),
        ),
        Handler::argument(
            "codel_interval",
            (Some(1), "INTERVAL"),
            "Sets how long queueing times must exceed the target before drops begin.",
            |codel, cx, value| {
                codel.args.interval = cx.keyword("INTERVAL", value)?;
                Ok(())
            },
        ),
        Handler::read("stats", "Queue lengths and drops.", |codel| {
            format!("{} current queue\n{} drops\n", codel.watched.length(), codel.drops)
        }),
        Handler::read("queues", "The queues that it reports.", |codel| codel.watched.names("\n")),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: CoDelArgs, _: &mut Setup) -> Result<CoDel, SetupError> {
        Ok(CoDel { args, watched: WatchedQueues::default(), control: ControlState::default(), drops: 0 })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        WatchedQueues::resolve(cx, self.args.queues.as_ref().map(|Raw(names)| names.as_str()))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let names = self.args.queues.as_ref().map(|Raw(names)| names.as_str());
        self.watched = WatchedQueues::find(cx, names, false)?;
        Ok(())
    }

    fn reconfigure(&mut self, args: CoDelArgs, _: &mut Setup) -> Result<(), SetupError> {
        self.args = args;
        Ok(())
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let now = cx.now();
        let mut turn = Turn::First;
        let mut left = most;
        let mut pulled = cx.batch();
        while left > 0 {
            let wanted = left;
            let count = cx.pull_burst(0, wanted, &mut pulled);
            for packet in pulled.drain() {
                if self.should_drop(&mut turn, &packet, now) {
                    self.drops += 1;
                    cx.drop(packet, Reason::LATE);
                } else {
                    into.push(packet);
                    left -= 1;
                }
            }
            if count < wanted {
                (self.control.above, self.control.dropping) = (None, false);
                break;
            }
        }
        cx.recycle(pulled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> CoDelArgs {
        CoDelArgs { target: Timestamp::from_millis(5), interval: Timestamp::from_millis(100), queues: None }
    }

    #[test]
    fn a_packet_is_late_when_all_have_waited_for_an_interval() {
        let (args, mut control) = (args(), ControlState::default());
        let mut late =
            |waited, now| control.is_late(&args, Timestamp::from_millis(waited), Timestamp::from_millis(now));
        assert!(!late(6, 1_000) && !late(6, 1_099));
        assert!(late(6, 1_100));
        assert!(!late(4, 1_101) && !late(6, 1_102));
    }

    #[test]
    fn drops_become_more_frequent() {
        let args = args();
        let after = |count| {
            let control = ControlState { count, ..ControlState::default() };
            control.next_drop_time(&args, Timestamp::ZERO).millis()
        };
        assert_eq!([after(0), after(1), after(4), after(16)], [100, 100, 50, 25]);
    }
}
