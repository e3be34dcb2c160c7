//! `TimedSource`: sends a packet per interval.

use element::arguments::Bytes;
use element::number_format;
use element::prelude::*;
use packet::HEADROOM;

use super::production::{self, Quota};

/// Sends a packet every INTERVAL, up to LIMIT packets.
///
/// The first packet leaves one interval after the start. STOP true stops the driver one interval after the last packet.
/// ```click
/// source :: TimedSource(INTERVAL 10ms, DATA \<00>, LIMIT 3, STOP true) -> counter :: Counter -> Discard;
/// ```
/// ```expect
/// source.interval = 10ms
/// counter.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "TimedSource",
    group = "sources",
    ports = "0/1",
    processing = "/h",
    shards = "first",
    see = "RatedSource, InfiniteSource, TimedSink",
    fates = "made"
)]
pub struct TimedSourceArgs {
    /// Time between packets.
    #[arg(position, default = "500ms")]
    interval: Timestamp,
    /// Packet contents.
    #[arg(position, default = "Random bullshit in a packet, at least 64 bytes long. Well, now it is.")]
    data: Bytes,
    /// Packets to send in total; negative for no limit.
    #[arg(default = "-1")]
    limit: i32,
    /// Whether it sends packets.
    #[arg(default = "true")]
    active: bool,
    /// Stop the driver after the last packet.
    #[arg(default = "false")]
    stop: bool,
    /// Headroom in bytes; at least 64.
    #[arg(default = "28")]
    headroom: u32,
}

pub struct TimedSource {
    interval: Timestamp,
    data: Vec<u8>,
    headroom: u32,
    quota: Quota,
    active: bool,
    stop: bool,
    template: Option<Packet>,
    /// When the timer is due, or was last due.
    next: Timestamp,
}

impl TimedSource {
    fn make_template(&mut self, cx: &Context) -> Result<(), &'static str> {
        let template = production::template(cx, &self.data, None, (self.headroom as usize).max(HEADROOM));
        self.template = Some(template.ok_or("out of memory")?);
        Ok(())
    }

    /// Restarts the timer if the source had stopped.
    fn resume(&mut self, cx: &Context) {
        if self.active && cx.timer(0).is_none() {
            self.next = cx.steady();
            cx.set_timer_after(0, Timestamp::ZERO);
        }
    }
}

impl Element for TimedSource {
    type Args = TimedSourceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("data", "Packet contents.", |source| {
            String::from_utf8_lossy(&source.data).into_owned()
        }),
        Handler::setting("data", "Sets the packet contents.", |source, cx, value| {
            source.data = value.as_bytes().to_vec();
            source.make_template(cx).map_err(HandlerError::new)
        }),
        Handler::read("limit", "Packets to send in total.", |source| source.quota.limit.to_string()),
        Handler::setting("limit", "Sets the number of packets to send in total.", |source, cx, value| {
            let limit: i32 = cx.data(value)?;
            source.quota.limit = limit.into();
            Ok(())
        }),
        Handler::read("interval", "Time between packets.", |source| number_format::interval(source.interval)),
        Handler::setting("interval", "Sets the time between packets.", |source, cx, value| {
            let interval = cx.argument(value).ok().filter(|interval| *interval > Timestamp::ZERO);
            source.interval = interval.ok_or_else(|| HandlerError::new("bad interval"))?;
            Ok(())
        }),
        Handler::read("active", "Whether it sends packets.", |source| source.active.to_string()),
        Handler::setting("active", "Starts or stops it.", |source, cx, value| {
            source.active = cx.argument(value).map_err(|_| HandlerError::new("bad active"))?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("count", "Packets sent.", |source| source.quota.count.to_string()),
        Handler::action("reset", "Resets the count.", |source, cx, _| {
            source.quota.count = 0;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("headroom", "Headroom in bytes.", |source| source.headroom.to_string()),
        Handler::setting("headroom", "Sets the headroom.", |source, cx, value| {
            source.headroom = cx.argument(value).map_err(|_| HandlerError::new("bad headroom"))?;
            source.make_template(cx).map_err(HandlerError::new)
        }),
    ];

    fn new(args: TimedSourceArgs, _: &mut Setup) -> Result<TimedSource, SetupError> {
        Ok(TimedSource {
            interval: args.interval,
            data: args.data.0,
            headroom: args.headroom,
            quota: Quota::new(args.limit.into()),
            active: args.active,
            stop: args.stop,
            template: None,
            next: Timestamp::ZERO,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.make_template(cx).map_err(SetupError::new)?;
        if self.active {
            self.next = cx.steady() + self.interval;
            cx.set_timer_after(0, self.interval);
        }
        Ok(())
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add_templates(usize::from(self.template.is_some()));
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        if !self.active {
        } else if !self.quota.is_used_up() {
            if let Some(mut packet) =
                self.template.as_ref().and_then(|template| cx.begin(Fate::Made, template.duplicate()))
            {
                packet.set_timestamp(cx.now());
                cx.send(0, packet);
            }
            self.quota.count += 1;
            self.next += self.interval;
            cx.set_timer(0, self.next);
        } else if self.stop {
            cx.stop();
        }
    }
}
