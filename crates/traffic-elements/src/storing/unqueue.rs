//! `Unqueue`: moves packets from pull to push.

use element::Signal;
use element::prelude::*;

use crate::sources::MAX_PACKETS_PER_RUN;

/// Moves packets from pull to push as fast as possible.
///
/// Each run of its task moves up to BURST packets (all available packets if BURST is negative). After LIMIT packets it
/// stops. The task sleeps while the upstream queue is empty.
///
/// ## Differences
///
/// A BURST above 4096 is spread over several task runs.
/// ```click
/// InfiniteSource -> u :: Unqueue(LIMIT 5) -> c :: Counter(COUNT_CALL 5 stop) -> Discard;
/// ```
/// ```expect
/// u.count = 5
/// c.count = 5
/// ```
#[derive(Args)]
#[element(
    name = "Unqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    shards = "sum",
    sums = "count",
    see = "Queue, RatedUnqueue, TimedUnqueue"
)]
pub struct UnqueueArgs {
    /// Maximum packets per task run; negative for no limit.
    #[arg(position, default = "1")]
    burst: i32,
    /// Whether it moves packets.
    #[arg(default = "true")]
    active: bool,
    /// Packets to move in total; negative for no limit.
    #[arg(default = "-1")]
    limit: i32,
}

pub struct Unqueue {
    args: UnqueueArgs,
    count: u64,
    signal: Signal,
}

/// The effective burst: the maximum if `given` is negative.
fn burst(given: i32) -> i32 {
    if given < 0 { i32::MAX } else { given }
}

impl Unqueue {
    /// Packets that it may still move, at most `wish`.
    fn allow(&self, wish: usize) -> usize {
        match u64::try_from(self.args.limit) {
            Ok(limit) => wish.min(limit.saturating_sub(self.count) as usize),
            Err(_) => wish,
        }
    }

    fn resume(&self, cx: &Context) {
        if self.args.active && self.allow(1) > 0 {
            cx.schedule();
        }
    }
}

impl Element for Unqueue {
    type Args = UnqueueArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether it moves packets.", |unqueue| unqueue.args.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |unqueue, cx, value| {
            unqueue.args.active = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            unqueue.resume(cx);
            Ok(())
        }),
        Handler::read("count", "Packets moved.", |unqueue| unqueue.count.to_string()),
        Handler::read("burst", "Maximum packets per task run.", |unqueue| unqueue.args.burst.to_string()),
        Handler::setting("burst", "Sets the maximum packets per task run.", |unqueue, cx, value| {
            unqueue.args.burst = burst(cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?);
            unqueue.resume(cx);
            Ok(())
        }),
        Handler::read("limit", "Packets to move in total.", |unqueue| unqueue.args.limit.to_string()),
        Handler::setting("limit", "Sets the number of packets to move in total.", |unqueue, cx, value| {
            cx.require_one_shard("LIMIT")?;
            unqueue.args.limit = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            unqueue.resume(cx);
            Ok(())
        }),
        Handler::action("reset", "Resets the count.", |unqueue, cx, _| {
            unqueue.count = 0;
            unqueue.resume(cx);
            Ok(())
        }),
        Handler::action("reset_counts", "Resets the count.", |unqueue, cx, _| {
            unqueue.count = 0;
            unqueue.resume(cx);
            Ok(())
        }),
    ];

    fn new(mut args: UnqueueArgs, setup: &mut Setup) -> Result<Unqueue, SetupError> {
        if args.burst == 0 {
            setup.warn("BURST size 0, no packets will be pulled");
        }
        if args.limit >= 0 {
            setup.require_one_shard("LIMIT")?;
        }
        args.burst = burst(args.burst);
        Ok(Unqueue { args, count: 0, signal: Signal::BUSY })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signal = cx.upstream_signal(0);
        if self.args.active {
            cx.schedule();
        }
        Ok(())
    }

    fn keeps_pace(&self) -> bool {
        self.args.active && self.args.burst > 0 && self.args.limit < 0
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.args.active {
            return false;
        }
        let mut wish = self.args.burst as usize;
        let mut turns = 1;
        if wish > 0 && wish < cx.batch_limit() {
            // As many of the turns that it has alone as fill a batch.
            turns = cx.take_turns().min(cx.batch_limit() / wish);
            wish *= turns;
        }
        let wish = self.allow(wish.min(MAX_PACKETS_PER_RUN));
        if wish == 0 && self.allow(1) == 0 {
            return false;
        }
        let mut moved = 0;
        while moved < wish {
            // Not the last one: what it leads to may be written to this element.
            if moved > 0 {
                cx.deliver_singly();
            }
            let most = (wish - moved).min(cx.batch_limit());
            let mut batch = cx.batch();
            // A pull in vain ends the burst, but another turn follows at once where there are several.
            let count =
                if turns > 1 { cx.pull(0, most, &mut batch) } else { cx.pull_burst(0, most, &mut batch) };
            cx.emit(0, batch);
            moved += count;
            if count < most {
                break;
            }
        }
        self.count += moved as u64;
        if moved == wish || self.signal.is_active() {
            cx.schedule();
        }
        moved > 0
    }
}
