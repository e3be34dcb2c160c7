//! `RatedSource`: sends packets at a rate.

use element::arguments::{Bandwidth, Bytes};
use element::prelude::*;
use packet::HEADROOM;

use super::production::{self, Quota};
use crate::shaping::TokenBucket;

/// Sends copies of a packet at RATE packets a second, up to LIMIT packets.
///
/// Packets contain DATA, cut or repeated to LENGTH bytes if LENGTH is given. BANDWIDTH sets the rate in bits a second
/// instead. STOP true stops the driver after the last packet. On a push output the source sends one packet per task run
/// and sleeps until the next one is due.
/// ```click
/// source :: RatedSource(DATA \<00>, RATE 100, LIMIT 20, STOP true) -> counter :: Counter -> Discard;
/// ```
/// ```expect
/// source.rate = 100
/// counter.count = 20
/// ```
#[derive(Args)]
#[element(
    name = "RatedSource",
    group = "sources",
    ports = "0/1",
    processing = "a/a",
    task,
    shards = "first",
    see = "InfiniteSource, TimedSource",
    fates = "made"
)]
pub struct RatedSourceArgs {
    /// Packet contents.
    #[arg(position, default = "Random bullshit in a packet, at least 64 bytes long. Well, now it is.")]
    data: Bytes,
    /// Packets per second.
    #[arg(position, default = "10")]
    rate: u32,
    /// Packets to send in total; negative for no limit.
    #[arg(position, default = "-1")]
    limit: i32,
    /// Whether it sends packets.
    #[arg(position, default = "true")]
    active: bool,
    /// Packet length in bytes; negative for the length of DATA.
    #[arg(default = "-1")]
    length: i32,
    /// Older name of LENGTH.
    datasize: Option<i32>,
    /// Stop the driver after the last packet.
    #[arg(default = "false")]
    stop: bool,
    /// Bandwidth, instead of a packet rate.
    bandwidth: Option<Bandwidth>,
}

pub struct RatedSource {
    data: Vec<u8>,
    length: i32,
    quota: Quota,
    active: bool,
    stop: bool,
    bucket: TokenBucket,
    template: Option<Packet>,
}

/// Burst size after a pause.
fn burst(rate: u32) -> u32 {
    if rate < 200 { 2 } else { rate / 100 }
}

fn limit_text(limit: i64) -> String {
    if limit < 0 { "-1".into() } else { limit.to_string() }
}

impl RatedSource {
    fn make_template(&mut self, cx: &Context, length: Option<usize>) -> Result<(), &'static str> {
        self.template =
            Some(production::template(cx, &self.data, length, HEADROOM).ok_or("packet too large")?);
        Ok(())
    }

    /// Creates up to `most` packets that are due.
    fn produce(&mut self, cx: &mut Context, most: usize, batch: &mut Batch) -> usize {
        self.bucket.refill(cx.steady());
        let count = self.quota.allow(most).min(self.bucket.tokens() as usize);
        let Some(template) = &mut self.template else { return 0 };
        template.set_timestamp(cx.now());
        production::replicate(cx, template, count, batch);
        self.bucket.remove(count as u32);
        self.quota.count += count as u64;
        count
    }

    fn resume(&self, cx: &Context) {
        if self.active && cx.is_push_output(0) {
            cx.schedule();
        }
    }
}

/// Changes the length.
fn set_length(source: &mut RatedSource, cx: &mut Context, text: &str) -> Result<(), HandlerError> {
    source.length = cx.argument(text).map_err(|_| HandlerError::new("syntax error"))?;
    source.make_template(cx, usize::try_from(source.length).ok()).map_err(HandlerError::new)
}

impl Element for RatedSource {
    type Args = RatedSourceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("data", "Packet contents.", |source| {
            String::from_utf8_lossy(&source.data).into_owned()
        }),
        Handler::setting("data", "Sets the packet contents.", |source, cx, value| {
            source.data = value.as_bytes().to_vec();
            source.make_template(cx, None).map_err(HandlerError::new)
        }),
        Handler::read("rate", "Packets per second.", |source| source.bucket.rate().to_string()),
        Handler::setting("rate", "Sets the packets per second.", |source, cx, value| {
            let rate = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            source.bucket.assign_adjust(rate, burst(rate));
            Ok(())
        }),
        Handler::read("limit", "Packets to send in total.", |source| limit_text(source.quota.limit)),
        Handler::setting("limit", "Sets the number of packets to send in total.", |source, cx, value| {
            let limit: i32 = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            source.quota.limit = limit.into();
            Ok(())
        }),
        Handler::read("active", "Whether it sends packets.", |source| source.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |source, cx, value| {
            source.active = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            if source.active && cx.is_push_output(0) && !cx.is_scheduled() {
                source.bucket.set(1);
                cx.schedule();
            }
            Ok(())
        }),
        Handler::read("count", "Packets sent.", |source| source.quota.count.to_string()),
        Handler::action("reset", "Resets the count.", |source, cx, _| {
            source.quota.count = 0;
            source.bucket.set(1);
            source.resume(cx);
            Ok(())
        }),
        Handler::read("length", "Packet length in bytes, or -1.", |source| source.length.to_string()),
        Handler::setting("length", "Sets the packet length.", set_length),
        Handler::read("datasize", "Older name of `length`.", |source| source.length.to_string()),
        Handler::setting("datasize", "Older name of `length`.", set_length),
    ];

    fn new(args: RatedSourceArgs, _: &mut Setup) -> Result<RatedSource, SetupError> {
        let length = args.datasize.unwrap_or(args.length);
        let bytes = usize::try_from(length).unwrap_or(args.data.0.len()).max(1) as u32;
        let bandwidth = args.bandwidth.map_or(0, |bandwidth| bandwidth.0 as u32);
        let rate = if bandwidth > 0 { bandwidth / bytes } else { args.rate };
        let mut most = burst(rate);
        if bandwidth > 0 {
            most = most.max(2 * u32::try_from(length).unwrap_or(0));
        }
        let mut bucket = TokenBucket::new(rate, most);
        bucket.set(1);
        Ok(RatedSource {
            data: args.data.0,
            length,
            quota: Quota::new(args.limit.into()),
            active: args.active,
            stop: args.stop,
            bucket,
            template: None,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let length = usize::try_from(self.length).ok();
        self.make_template(cx, length).map_err(|problem| SetupError::argument("LENGTH", problem))?;
        if cx.is_push_output(0) {
            cx.schedule();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        if !self.active {
            return false;
        }
        if self.quota.is_used_up() {
            if self.stop {
                cx.stop();
            }
            return false;
        }
        let most = cx.take_turns().min(cx.batch_limit());
        let mut batch = cx.batch();
        let count = self.produce(cx, most, &mut batch);
        cx.emit(0, batch);
        if count > 0 {
            cx.schedule();
        } else {
            cx.set_timer_after(0, self.bucket.time_until(1));
        }
        count > 0
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add_templates(usize::from(self.template.is_some()));
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let count = if self.active { self.produce(cx, most, into) } else { 0 };
        if self.active && self.stop && count < most && self.quota.is_used_up() {
            cx.stop();
        }
    }
}
