//! `InfiniteSource`: makes packets whenever it may.

use element::arguments::{Bytes, HandlerCall};
use element::prelude::*;
use element::{Direction, Signal};
use packet::HEADROOM;

use super::production::{self, Finale, MOST_AT_ONCE, Quota};

/// Makes packets of DATA, BURST each time it is scheduled or one for each pull, until there were LIMIT.
///
/// With LENGTH the data are cut or repeated to that many bytes. TIMESTAMP false leaves the time unset. After the last
/// packet STOP true stops the driver, or END_CALL writes a handler. On a push output it waits while what is downstream
/// is full. When no other task waits, it takes several turns at once, so that BURST 1 still makes full batches.
///
/// ## Differences
///
/// A BURST above 4096 is spread over several turns. Packets that the pool has no room for count as sent and as drops.
/// ```click
/// source :: InfiniteSource(DATA \<00 01 02>, LENGTH 60, LIMIT 1000, STOP true) -> counter :: Counter -> Discard;
/// ```
/// ```expect
/// source.count = 1000
/// counter.byte_count = 60000
/// ```
#[derive(Args)]
#[element(
    name = "InfiniteSource",
    group = "sources",
    ports = "0/1",
    processing = "a/a",
    task,
    notifies = "empty",
    see = "RatedSource, TimedSource, RandomSource"
)]
pub struct InfiniteSourceArgs {
    /// The bytes of each packet.
    #[arg(position, default = "Random bullshit in a packet, at least 64 bytes long. Well, now it is.")]
    data: Bytes,
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
    /// Bytes of each packet; negative for those of DATA.
    #[arg(default = "-1")]
    length: i32,
    /// An older name of LENGTH.
    datasize: Option<i32>,
    /// Whether the driver stops after the last packet.
    #[arg(default = "false")]
    stop: bool,
    /// The write handler to call after the last packet, and its value.
    end_call: Option<HandlerCall>,
}

/// The element.
pub struct InfiniteSource {
    data: Vec<u8>,
    length: i32,
    quota: Quota,
    burst: usize,
    active: bool,
    stamp: bool,
    finale: Finale,
    template: Option<Packet>,
    full: Signal,
}

impl InfiniteSource {
    fn make_template(&mut self, cx: &Context) -> Result<(), &'static str> {
        let length = usize::try_from(self.length).ok();
        self.template =
            Some(production::template(cx, &self.data, length, HEADROOM).ok_or("packet too large")?);
        Ok(())
    }

    /// Adds `count` packets to `batch`.
    fn produce(&mut self, cx: &mut Context, count: usize, batch: &mut Batch) {
        let Some(template) = &mut self.template else { return };
        if self.stamp {
            template.set_timestamp(cx.now());
        }
        production::replicate(cx, template, count, batch);
        self.quota.count += count as u64;
    }

    /// Goes on after a change by a handler, if there is anything to do.
    fn resume(&self, cx: &Context) {
        if !self.active || self.quota.is_used_up() {
        } else if cx.is_push_output(0) {
            cx.schedule();
        } else {
            cx.set_signal(Direction::Empty, true);
        }
    }
}

/// A write handler: changes the source by a value, then lets it go on.
macro_rules! change {
    ($name:literal, $summary:literal, $problem:literal, |$source:ident, $value:ident: $type:ty| $change:expr) => {
        Handler::write($name, $summary, |$source, cx, text| {
            let $value: $type = cx.argument(text).map_err(|_| HandlerError::new($problem))?;
            $change;
            $source.resume(cx);
            Ok(())
        })
    };
}

/// Changes the burst.
fn set_burst(source: &mut InfiniteSource, cx: &mut Context, text: &str) -> Result<(), HandlerError> {
    let burst = cx.argument(text).ok().filter(|burst| *burst >= 1);
    source.burst = burst.ok_or_else(|| HandlerError::new("burstsize parameter must be integer >= 1"))?;
    source.resume(cx);
    Ok(())
}

/// Changes the length.
fn set_length(source: &mut InfiniteSource, cx: &mut Context, text: &str) -> Result<(), HandlerError> {
    source.length = cx.argument(text).map_err(|_| HandlerError::new("length must be integer"))?;
    source.make_template(cx).map_err(HandlerError::new)?;
    source.resume(cx);
    Ok(())
}

impl Element for InfiniteSource {
    type Args = InfiniteSourceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("data", "Bytes of each packet.", |source| {
            String::from_utf8_lossy(&source.data).into_owned()
        }),
        Handler::write("data", "Sets the bytes of each packet.", |source, cx, value| {
            source.data = value.as_bytes().to_vec();
            source.make_template(cx).map_err(HandlerError::new)?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("limit", "Packets to make.", |source| source.quota.limit.to_string()),
        change!(
            "limit",
            "Sets the packets to make.",
            "limit parameter must be integer",
            |source, limit: i64| { source.quota.limit = limit }
        ),
        Handler::read("burst", "Packets at a turn.", |source| source.burst.to_string()),
        Handler::write("burst", "Sets the packets at a turn.", set_burst),
        Handler::read("active", "Whether it works.", |source| source.active.to_string()),
        change!(
            "active",
            "Starts or stops it.",
            "active parameter must be boolean",
            |source, active: bool| { source.active = active }
        ),
        Handler::read("count", "Packets made.", |source| source.quota.count.to_string()),
        Handler::write("reset", "Starts counting anew.", |source, cx, _| {
            source.quota.count = 0;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("length", "Bytes of each packet, or -1.", |source| source.length.to_string()),
        Handler::write("length", "Sets the bytes of each packet.", set_length),
        Handler::read("burstsize", "An older name of `burst`.", |source| source.burst.to_string()),
        Handler::write("burstsize", "An older name of `burst`.", set_burst),
        Handler::read("datasize", "An older name of `length`.", |source| source.length.to_string()),
        Handler::write("datasize", "An older name of `length`.", set_length),
    ];

    fn new(args: InfiniteSourceArgs, _: &mut Setup) -> Result<InfiniteSource, SetupError> {
        let burst = usize::try_from(args.burst).ok().filter(|burst| *burst > 0);
        Ok(InfiniteSource {
            burst: burst.ok_or_else(|| SetupError::new("burst size must be >= 1"))?,
            finale: Finale::new(args.stop, args.end_call)?,
            data: args.data.0,
            length: args.datasize.unwrap_or(args.length),
            quota: Quota::new(args.limit),
            active: args.active,
            stamp: args.timestamp,
            template: None,
            full: Signal::BUSY,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.make_template(cx).map_err(|problem| SetupError::argument("LENGTH", problem))?;
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
        let mut wish = self.burst;
        if wish < cx.batch_limit() && self.full.is_busy() {
            // As many of the turns that it has alone as fill a batch.
            wish *= cx.turns().min(cx.batch_limit() / wish);
        }
        let mut left = self.quota.allow(wish.min(MOST_AT_ONCE));
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
