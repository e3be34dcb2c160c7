//! `ReplayUnqueue`: loads packets, then sends copies of them again and again.

use element::Signal;
use element::prelude::*;

use crate::sources::MAX_PACKETS_PER_RUN;

/// Loads all packets of its inputs into memory, then sends copies of them STOP times, as fast as possible.
///
/// Packets are ordered by their timestamps. Those of an input leave by the output with its number. Loading ends when an input
/// has no more packets, after LIMIT packets, or when they take half of the memory for packets. With USE_SIGNAL, an input
/// has no more packets only if nothing upstream says that there may be some. After the last time, or after STOP_TIME seconds,
/// it stops the driver. With TIMING, packets leave at the distances of their timestamps, and at that percentage of their
/// speed.
/// ```click
/// InfiniteSource(LIMIT 5) -> Queue -> r :: ReplayUnqueue(STOP 3, USE_SIGNAL true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// r.loaded = true
/// r.stop = 0
/// r.active = false
/// c.count = 15
/// ```
/// ## Differences
/// - Loops are counted by the handler `stop`; VERBOSE logs them. QUICK_CLONE and FREEONTERMINATE have no effect: copies share
///   their bytes until one is changed, and packets are freed at the end.
/// - An input without packets at the start is asked again. In FastClick, loading has ended then.
/// - TIMING_FNT is not there.
/// - Packets of other inputs that were taken when an input ends are kept, but not sent.
#[derive(Args)]
#[element(
    name = "ReplayUnqueue",
    aliases = "MultiReplayUnqueue",
    group = "storing",
    ports = "1-/=",
    processing = "l/h",
    flow = "#/#",
    task,
    logs,
    see = "Unqueue, FromDump, Queue",
    drops = "reset",
    fates = "copied, waiting"
)]
pub struct ReplayUnqueueArgs {
    /// How often to send the packets; negative for no limit.
    #[arg(default = "-1")]
    stop: i32,
    /// Seconds after which no further time begins; 0 for no limit.
    #[arg(default = "0")]
    stop_time: u32,
    /// No effect.
    quick_clone: Option<bool>,
    /// No effect.
    freeonterminate: Option<bool>,
    /// Maximum packets per task run; at least 1.
    #[arg(default = "64")]
    burst: u32,
    /// Log each time.
    #[arg(default = "0")]
    verbose: Level,
    /// Maximum packets to load; negative for no limit.
    #[arg(default = "-1")]
    limit: i32,
    /// Whether it works.
    #[arg(default = "true")]
    active: bool,
    /// Wait for packets while an upstream element says that there may be some.
    #[arg(default = "false")]
    use_signal: bool,
    /// Speed in percent of that of the timestamps; 0 for as fast as possible.
    #[arg(default = "0")]
    timing: u32,
}

/// A number or a truth value.
struct Level(bool);

impl FromArgument for Level {
    const KIND: &'static str = "integer";

    fn from_argument(text: &str, setup: &Setup) -> Result<Level, element::arguments::ArgumentError> {
        match i32::from_argument(text, setup) {
            Ok(level) => Ok(Level(level != 0)),
            Err(_) => bool::from_argument(text, setup).map(Level),
        }
    }
}

pub struct ReplayUnqueue {
    args: ReplayUnqueueArgs,
    signals: Vec<Signal>,
    /// The next packet of each input, during loading.
    heads: Vec<Option<Packet>>,
    /// The packets, each with its input.
    packets: Vec<(usize, Packet)>,
    loaded: bool,
    /// Index of the next packet.
    next: usize,
    /// When the first packet of all was sent, and the first one of this time.
    begin: Option<Timestamp>,
    round: Option<Timestamp>,
    /// Since when packets wait.
    since: Timestamp,
}

impl ReplayUnqueue {
    fn set_active(&mut self, cx: &Context, active: bool) {
        self.args.active = active;
        self.round = None;
        if active {
            cx.schedule();
        } else {
            cx.unschedule();
        }
    }

    /// Loads some packets. Returns whether there were any.
    fn load(&mut self, cx: &mut Context) -> bool {
        let before = self.packets.len();
        while self.packets.len() - before < MAX_PACKETS_PER_RUN {
            let is_full = cx.pool().live() >= cx.pool().limit() / 2;
            if is_full || usize::try_from(self.args.limit).is_ok_and(|limit| self.packets.len() >= limit) {
                if is_full {
                    cx.log(&format!("{}: the memory for packets is half full: it loads no more", cx.name()));
                }
                self.loaded = true;
                break;
            }
            for (input, head) in self.heads.iter_mut().enumerate() {
                if head.is_some() {
                    continue;
                }
                *head = cx.pull_one(input);
                if head.is_none() {
                    let may_follow = self.signals.get(input).is_some_and(Signal::is_active);
                    let waits = self.packets.is_empty() || self.args.use_signal && may_follow;
                    self.loaded = !waits;
                    if self.loaded || may_follow {
                        cx.schedule();
                    }
                    return self.packets.len() > before;
                }
            }
            let heads = self.heads.iter().enumerate();
            let first = heads.filter_map(|(input, head)| Some((head.as_ref()?.timestamp(), input))).min();
            let Some((_, input)) = first else { break };
            if let Some(packet) = self.heads.get_mut(input).and_then(Option::take) {
                if self.packets.is_empty() {
                    self.since = cx.steady();
                }
                self.packets.push((input, packet));
            }
        }
        cx.schedule();
        true
    }

    /// Ends a time. Returns whether another one follows.
    fn end_round(&mut self, cx: &Context) -> bool {
        (self.next, self.round) = (0, None);
        self.args.stop -= i32::from(self.args.stop > 0);
        let elapsed = self.begin.map_or(Timestamp::ZERO, |begin| cx.steady() - begin);
        if self.args.stop_time > 0 && elapsed.seconds() >= i64::from(self.args.stop_time) {
            self.args.stop = 0;
        }
        if self.args.verbose.0 {
            cx.log(&format!("{}: sent all packets, {} times left", cx.name(), self.args.stop));
        }
        self.args.stop != 0
    }

    /// How long to wait before the packet with this timestamp.
    fn delay(&mut self, cx: &Context, time: Timestamp) -> Option<Timestamp> {
        let now = cx.steady();
        self.begin.get_or_insert(now);
        let round = *self.round.get_or_insert(now);
        let percent = i64::from(self.args.timing);
        let first = self.packets.first().filter(|_| percent > 0)?.1.timestamp();
        let distance = (time - first).nanos().saturating_mul(100) / percent;
        let delay = distance - (now - round).nanos();
        (delay > 0).then_some(Timestamp::from_nanos(delay))
    }
}

impl Element for ReplayUnqueue {
    type Args = ReplayUnqueueArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether it works.", |replay| replay.args.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |replay, cx, value| {
            let active = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            replay.set_active(cx, active);
            Ok(())
        }),
        Handler::read("loaded", "Whether all packets are loaded.", |replay| replay.loaded.to_string()),
        Handler::read("stop", "How often the packets will still be sent.", |replay| {
            replay.args.stop.to_string()
        }),
        Handler::setting("stop", "Sets how often the packets will still be sent.", |replay, cx, value| {
            replay.args.stop = cx.argument(value)?;
            Ok(())
        }),
        Handler::read("timing", "Speed in percent of that of the timestamps.", |replay| {
            replay.args.timing.to_string()
        }),
        Handler::setting("timing", "Sets the speed.", |replay, cx, value| {
            replay.args.timing = cx.argument(value)?;
            Ok(())
        }),
        Handler::action("reset", "Drops the packets and loads others.", |replay, cx, _| {
            let heads = replay.heads.iter_mut().filter_map(Option::take);
            for packet in replay.packets.drain(..).map(|(_, packet)| packet).chain(heads) {
                cx.drop(packet, Reason::RESET);
            }
            (replay.loaded, replay.next) = (false, 0);
            replay.set_active(cx, replay.args.active);
            Ok(())
        }),
    ];

    fn new(args: ReplayUnqueueArgs, setup: &mut Setup) -> Result<ReplayUnqueue, SetupError> {
        if args.burst == 0 {
            return Err(SetupError::argument("BURST", "must be at least 1"));
        }
        for (keyword, given) in [("QUICK_CLONE", args.quick_clone), ("FREEONTERMINATE", args.freeonterminate)]
        {
            if given.is_some() {
                setup.warn(format!(
                    "{keyword} has no effect here: copies share their bytes until one is changed"
                ));
            }
        }
        let heads = (0..setup.inputs()).map(|_| None).collect();
        Ok(ReplayUnqueue {
            args,
            signals: Vec::new(),
            heads,
            packets: Vec::new(),
            loaded: false,
            next: 0,
            begin: None,
            round: None,
            since: Timestamp::ZERO,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signals = (0..cx.inputs()).map(|input| cx.upstream_signal(input)).collect();
        self.set_active(cx, self.args.active);
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.args.active {
            return false;
        }
        if !self.loaded {
            return self.load(cx);
        }
        if self.args.stop == 0 {
            self.args.active = false;
            cx.stop();
            return false;
        }
        // A batch for one output: the packets of a later one follow in the next run.
        let most = (self.args.burst as usize).min(cx.batch_limit());
        let mut batch = cx.batch();
        let mut port = 0;
        let mut delay = None;
        while batch.len() < most
            && let Some((input, packet)) = self.packets.get(self.next)
            && (batch.is_empty() || *input == port)
        {
            let (input, time) = (*input, packet.timestamp());
            delay = self.delay(cx, time);
            if delay.is_some() {
                break;
            }
            let copy = self.packets.get(self.next).and_then(|(_, packet)| packet.duplicate());
            // Without memory, the next run tries again.
            let Some(copy) = copy else { break };
            batch.push(copy);
            port = input;
            self.next += 1;
        }
        let count = batch.len();
        cx.count_begun(Fate::Copied, count, count);
        cx.emit(port, batch);
        if self.next == self.packets.len() && !self.end_round(cx) {
            self.args.active = false;
            cx.stop();
            return true;
        }
        match delay {
            Some(delay) => cx.set_timer_after(0, delay),
            None => cx.schedule(),
        }
        count > 0
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }

    fn waiting(&self, waiting: &mut Waiting) {
        let heads = self.heads.iter().flatten().count();
        waiting.add(self.packets.len() + heads, Some(self.since));
    }

    fn inherit(&mut self, old: &mut ReplayUnqueue, _: &mut Context) {
        if self.heads.len() != old.heads.len() {
            return;
        }
        self.heads = core::mem::take(&mut old.heads);
        self.packets = core::mem::take(&mut old.packets);
        (self.loaded, self.next, self.since) = (old.loaded, old.next, old.since);
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.packets.clear();
        self.heads.clear();
    }
}
