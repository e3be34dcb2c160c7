//! `Discard`: discards packets.

use element::Signal;
use element::prelude::*;

use super::production::MAX_PACKETS_PER_RUN;

/// Discards every packet. Discarded packets do not count as drops.
///
/// On a pull input, it empties the upstream path, up to BURST packets per task run, and sleeps while that path is
/// empty.
///
/// ## Differences
///
/// A BURST above 4096 is spread over several task runs.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> d :: Discard;
/// ```
/// ```expect
/// d.count = 5
/// ```
#[derive(Args)]
#[element(
    name = "Discard",
    group = "sources",
    ports = "1/0",
    processing = "a/",
    order_insensitive,
    task,
    shards = "sum",
    sums = "count",
    see = "Idle, TimedSink",
    fates = "discarded"
)]
pub struct DiscardArgs {
    /// Whether it pulls packets.
    #[arg(default = "true")]
    active: bool,
    /// Maximum packets per task run; 0 for no limit.
    #[arg(default = "1")]
    burst: u32,
}

pub struct Discard {
    args: DiscardArgs,
    /// Whether packets are pulled.
    pulls: bool,
    count: u64,
    signal: Signal,
}

impl Element for Discard {
    type Args = DiscardArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("count", "Packets discarded.", |discard| discard.count.to_string()),
        Handler::action("reset_counts", "Resets `count`.", |discard, _, _| {
            discard.count = 0;
            Ok(())
        }),
        Handler::read("active", "Whether it pulls packets.", |discard| discard.args.active.to_string()),
        Handler::setting("active", "Starts or stops pulling.", |discard, cx, value| {
            discard.args.active = cx.argument(value)?;
            if discard.args.active && discard.pulls {
                cx.schedule();
            }
            Ok(())
        }),
    ];

    fn new(args: DiscardArgs, _: &mut Setup) -> Result<Discard, SetupError> {
        Ok(Discard { args, pulls: false, count: 0, signal: Signal::BUSY })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.pulls = cx.inputs() == 1 && !cx.is_push_input(0);
        if !self.args.active && cx.inputs() == 1 && !self.pulls {
            return Err(SetupError::new("ACTIVE is meaningless in push context"));
        }
        cx.needs_initialization(self.pulls);
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signal = cx.upstream_signal(0);
        if self.args.active {
            cx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.count += batch.len() as u64;
        cx.end_batch(batch, Fate::Discarded);
    }

    fn keeps_pace(&self) -> bool {
        self.args.active
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.args.active {
            return false;
        }
        let most = match self.args.burst {
            0 => MAX_PACKETS_PER_RUN,
            burst => (burst as usize).min(MAX_PACKETS_PER_RUN),
        };
        let mut turns = 1;
        if most < cx.batch_limit() {
            // As many of the turns that it has alone as fill a batch.
            turns = cx.take_turns().min(cx.batch_limit() / most);
        }
        let most = most * turns;
        let mut count = 0;
        while count < most {
            let mut batch = cx.batch();
            let wish = (most - count).min(cx.batch_limit());
            // A pull in vain ends the burst, but another turn follows at once where there are several.
            let came =
                if turns > 1 { cx.pull(0, wish, &mut batch) } else { cx.pull_burst(0, wish, &mut batch) };
            let full = batch.len() >= cx.batch_limit();
            cx.end_batch(batch, Fate::Discarded);
            count += came;
            if !full {
                break;
            }
        }
        self.count += count as u64;
        if count > 0 || self.signal.is_active() {
            cx.schedule();
        }
        count > 0
    }
}
