//! The element behind `InfiniteSource` and `RandomSource`.

use element::arguments::HandlerCall;
use element::prelude::*;
use element::{Direction, Signal};

use super::production::{EndAction, MAX_PACKETS_PER_RUN, Quota};

/// Arguments that both sources share.
#[derive(ArgumentGroup)]
pub struct BurstArguments {
    /// Packets to send in total; negative for no limit.
    #[arg(position, default = "-1")]
    limit: i64,
    /// Maximum packets per task run.
    #[arg(position, default = "1")]
    burst: i32,
    /// Whether it sends packets.
    #[arg(position, default = "true")]
    active: bool,
    /// Set the timestamp of each packet.
    #[arg(default = "true")]
    timestamp: bool,
    /// Stop the driver after the last packet.
    #[arg(default = "false")]
    stop: bool,
    /// Write handler to call after the last packet, with its value.
    end_call: Option<HandlerCall>,
}

/// Creates the packets of a source.
pub trait PacketGenerator: Sized + 'static {
    /// Arguments of the source.
    type Args: Args;
    const HANDLERS: &'static [Handler<BurstSource<Self>>];

    /// Reports the packets that it holds.
    fn waiting(&self, _waiting: &mut Waiting) {}

    /// Creates it, and returns the arguments that both sources share.
    fn new(args: Self::Args) -> Result<(Self, BurstArguments), SetupError>;

    /// Prepares to run.
    fn initialize(&mut self, _cx: &Context) -> Result<(), SetupError> {
        Ok(())
    }

    /// Adds `count` packets to `batch`, with a timestamp if `stamp` is set.
    fn produce(&mut self, cx: &mut Context, stamp: bool, count: usize, batch: &mut Batch);
}

/// A source that sends bursts of packets as fast as possible.
pub struct BurstSource<M> {
    pub(super) maker: M,
    pub(super) quota: Quota,
    pub(super) burst: usize,
    pub(super) active: bool,
    stamp: bool,
    end_action: EndAction,
    full: Signal,
}

impl<M: PacketGenerator> BurstSource<M> {
    fn produce(&mut self, cx: &mut Context, count: usize, batch: &mut Batch) {
        self.maker.produce(cx, self.stamp, count, batch);
        self.quota.count += count as u64;
    }

    /// Schedules the task after a handler changed something, if there is work.
    pub(super) fn resume(&self, cx: &Context) {
        if !self.active || self.quota.is_used_up() {
        } else if cx.is_push_output(0) {
            cx.schedule();
        } else {
            cx.set_signal(Direction::Empty, true);
        }
    }

    /// Changes the burst.
    pub(super) fn set_burst(&mut self, cx: &mut Context, text: &str) -> Result<(), HandlerError> {
        let burst = cx.argument(text).ok().filter(|burst| *burst >= 1);
        self.burst = burst.ok_or_else(|| HandlerError::new("burstsize parameter must be integer >= 1"))?;
        self.resume(cx);
        Ok(())
    }
}

/// Handlers of a source: its own, and those that both share.
macro_rules! handlers {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            Handler::read("limit", "Packets to send in total.", |source| source.quota.limit.to_string()),
            Handler::setting("limit", "Sets the number of packets to send in total.", |source, cx, value| {
                let limit = cx.argument(value);
                source.quota.limit = limit.map_err(|_| HandlerError::new("limit parameter must be integer"))?;
                source.resume(cx);
                Ok(())
            }),
            Handler::read("burst", "Maximum packets per task run.", |source| source.burst.to_string()),
            Handler::setting("burst", "Sets the maximum packets per task run.", BurstSource::set_burst),
            Handler::read("active", "Whether it sends packets.", |source| source.active.to_string()),
            Handler::setting("active", "Starts or stops it.", |source, cx, value| {
                let active = cx.argument(value);
                source.active = active.map_err(|_| HandlerError::new("active parameter must be boolean"))?;
                source.resume(cx);
                Ok(())
            }),
            Handler::read("count", "Packets sent.", |source| source.quota.count.to_string()),
            Handler::action("reset", "Resets the count.", |source, cx, _| {
                source.quota.count = 0;
                source.resume(cx);
                Ok(())
            }),
        ]
    };
}
pub(super) use handlers;

impl<M: PacketGenerator> Element for BurstSource<M> {
    type Args = M::Args;
    const HANDLERS: &'static [Handler<Self>] = M::HANDLERS;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: M::Args, _: &mut Setup) -> Result<Self, SetupError> {
        let (maker, args) = M::new(args)?;
        let burst = usize::try_from(args.burst).ok().filter(|burst| *burst > 0);
        Ok(BurstSource {
            maker,
            burst: burst.ok_or_else(|| SetupError::new("burst size must be >= 1"))?,
            end_action: EndAction::new(args.stop, args.end_call)?,
            quota: Quota::new(args.limit),
            active: args.active,
            stamp: args.timestamp,
            full: Signal::BUSY,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.end_action.resolve(cx)
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.maker.initialize(cx)?;
        self.end_action.check(cx)?;
        if cx.is_push_output(0) {
            self.full = cx.downstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    /// The reconfigured source continues only if the old one was still running, or when a handler starts it.
    fn reconfigure(&mut self, args: M::Args, setup: &mut Setup) -> Result<(), SetupError> {
        let full = core::mem::replace(self, Self::new(args, setup)?).full;
        self.full = full;
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.active || !self.full.is_active() {
            return false;
        }
        let mut wish = self.burst;
        if wish < cx.batch_limit() && self.full.is_busy() {
            // As many of the turns that it has alone as fill a batch.
            wish *= cx.take_turns().min(cx.batch_limit() / wish);
        }
        let mut left = self.quota.allow(wish.min(MAX_PACKETS_PER_RUN));
        if left == 0 {
            self.end_action.perform(cx);
            return false;
        }
        while left > 0 {
            let count = left.min(cx.batch_limit());
            let mut batch = cx.batch();
            self.produce(cx, count, &mut batch);
            cx.emit(0, batch);
            left -= count;
            if left > 0 {
                cx.deliver_singly();
            }
        }
        cx.schedule();
        true
    }

    fn waiting(&self, waiting: &mut Waiting) {
        self.maker.waiting(waiting);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let count = if self.active { self.quota.allow(most) } else { 0 };
        self.produce(cx, count, into);
        if count < most {
            if self.active {
                self.end_action.perform(cx);
            }
            cx.set_signal(Direction::Empty, false);
        }
    }
}
