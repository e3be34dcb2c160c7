//! `RandomSource`: makes packets of random bytes.

use element::arguments::HandlerCall;
use element::prelude::*;
use element::{Direction, Signal};

use super::production::{Finale, MOST_AT_ONCE, Quota};

/// Packets are shorter than this.
const LONGEST: i32 = 64 * 1024;

/// Makes packets of LENGTH random bytes, BURST each time it is scheduled or one for each pull, until there were LIMIT.
///
/// Otherwise it is as `InfiniteSource`.
/// ```click
/// RandomSource(100, LIMIT 10, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.byte_count = 1000
/// ```
#[derive(Args)]
#[element(
    name = "RandomSource",
    group = "sources",
    ports = "0/1",
    processing = "a/a",
    task,
    notifies = "empty",
    see = "InfiniteSource"
)]
pub struct RandomSourceArgs {
    /// Bytes of each packet.
    #[arg(position)]
    length: i32,
    /// Packets to make; negative for no end.
    #[arg(position, default = "-1")]
    limit: i64,
    /// Packets at a turn.
    #[arg(position, default = "1")]
    burst: i32,
    /// Whether it works.
    #[arg(position, default = "true")]
    active: bool,
    /// Whether packets carry the time at which they were made.
    #[arg(default = "true")]
    timestamp: bool,
    /// Whether the driver stops after the last packet.
    #[arg(default = "false")]
    stop: bool,
    /// The write handler to call after the last packet, and its value.
    end_call: Option<HandlerCall>,
}

/// The element.
pub struct RandomSource {
    length: usize,
    quota: Quota,
    burst: usize,
    active: bool,
    stamp: bool,
    finale: Finale,
    full: Signal,
}

/// A length that is allowed.
fn check_length(length: i32) -> Result<usize, String> {
    let allowed = usize::try_from(length).ok().filter(|_| length < LONGEST);
    allowed.ok_or_else(|| format!("bad length {length}"))
}

impl RandomSource {
    fn produce(&mut self, cx: &mut Context, count: usize, batch: &mut Batch) {
        for _ in 0..count {
            let Some(mut packet) = cx.pool().allocate(self.length) else {
                cx.count_exhausted();
                continue;
            };
            for chunk in packet.data_mut().chunks_mut(4) {
                let random = cx.random().to_ne_bytes();
                for (byte, random) in chunk.iter_mut().zip(random) {
                    *byte = random;
                }
            }
            if self.stamp {
                packet.set_timestamp(cx.now());
            }
            batch.push(packet);
        }
        self.quota.count += count as u64;
    }

    fn resume(&self, cx: &Context) {
        if !self.active || self.quota.is_used_up() {
        } else if cx.is_push_output(0) {
            cx.schedule();
        } else {
            cx.set_signal(Direction::Empty, true);
        }
    }
}

impl Element for RandomSource {
    type Args = RandomSourceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("limit", "Packets to make.", |source| source.quota.limit.to_string()),
        Handler::write("limit", "Sets the packets to make.", |source, cx, value| {
            let limit = cx.argument(value);
            source.quota.limit = limit.map_err(|_| HandlerError::new("limit parameter must be integer"))?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("burst", "Packets at a turn.", |source| source.burst.to_string()),
        Handler::write("burst", "Sets the packets at a turn.", |source, cx, value| {
            let burst = cx.argument(value).ok().filter(|burst| *burst >= 1);
            source.burst =
                burst.ok_or_else(|| HandlerError::new("burstsize parameter must be integer >= 1"))?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("active", "Whether it works.", |source| source.active.to_string()),
        Handler::write("active", "Starts or stops it.", |source, cx, value| {
            let active = cx.argument(value);
            source.active = active.map_err(|_| HandlerError::new("active parameter must be boolean"))?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("count", "Packets made.", |source| source.quota.count.to_string()),
        Handler::write("reset", "Starts counting anew.", |source, cx, _| {
            source.quota.count = 0;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("length", "Bytes of each packet.", |source| source.length.to_string()),
        Handler::write("length", "Sets the bytes of each packet.", |source, cx, value| {
            let length = cx.argument(value).map_err(|_| HandlerError::new("length must be integer"))?;
            source.length = check_length(length).map_err(HandlerError::new)?;
            source.resume(cx);
            Ok(())
        }),
    ];

    fn new(args: RandomSourceArgs, _: &mut Setup) -> Result<RandomSource, SetupError> {
        let burst = usize::try_from(args.burst).ok().filter(|burst| *burst > 0);
        Ok(RandomSource {
            length: check_length(args.length).map_err(SetupError::new)?,
            burst: burst.ok_or_else(|| SetupError::new("burst size must be >= 1"))?,
            finale: Finale::new(args.stop, args.end_call)?,
            quota: Quota::new(args.limit),
            active: args.active,
            stamp: args.timestamp,
            full: Signal::BUSY,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.finale.check(cx)?;
        if cx.is_push_output(0) {
            self.full = cx.downstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.active || !self.full.is_active() {
            return false;
        }
        let mut left = self.quota.allow(self.burst.min(MOST_AT_ONCE));
        if left == 0 {
            self.finale.perform(cx);
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

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let count = if self.active { self.quota.allow(most) } else { 0 };
        self.produce(cx, count, into);
        if count < most {
            if self.active {
                self.finale.perform(cx);
            }
            cx.set_signal(Direction::Empty, false);
        }
    }
}
