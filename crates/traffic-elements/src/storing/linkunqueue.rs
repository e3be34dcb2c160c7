//! `LinkUnqueue`: emulates a link with latency and bandwidth.

use alloc::collections::VecDeque;
use core::any::Any;

use element::arguments::Bandwidth;
use element::number_format;
use element::prelude::*;
use element::{QueueAge, Signal};
use packet::MAX_BATCH;

use super::length::Length;
use crate::sources::MAX_PACKETS_PER_RUN;

/// Lowest bandwidth in bytes per second.
const MIN_BANDWIDTH: u32 = 100;

/// Emulates a serial link: pulls packets and pushes each when a link of LATENCY and BANDWIDTH would have delivered it.
///
/// The extra length annotation counts towards a packet's length. A packet's timestamp becomes the time of its delivery.
/// The element pulls only as many packets as the link has room for.
/// ```click
/// InfiniteSource(LENGTH 1000, LIMIT 10) -> q :: Queue -> l :: LinkUnqueue(100ms, 80kbps)
///   -> c :: Counter(COUNT_CALL 3 stop) -> Discard;
/// ```
/// ```expect
/// l.latency = 100ms
/// l.bandwidth = 10000
/// c.count = 3
/// q.length = 5
/// ```
#[derive(Args)]
#[element(
    name = "LinkUnqueue",
    group = "storing",
    ports = "1/1",
    processing = "l/h",
    task,
    drops = "reset",
    see = "DelayUnqueue, BandwidthRatedUnqueue",
    fates = "waiting"
)]
pub struct LinkUnqueueArgs {
    /// Propagation delay.
    #[arg(position)]
    latency: Timestamp,
    /// Bandwidth of the link.
    #[arg(position)]
    bandwidth: Bandwidth,
}

pub struct LinkUnqueue {
    latency: Timestamp,
    bandwidth: u32,
    /// Packets on the link, each with its departure time.
    link: VecDeque<Packet>,
    age: QueueAge,
    back_to_back: bool,
    signal: Signal,
    length: Length,
}

/// The bandwidth, in the unit in which it is stored.
fn check_bandwidth(bandwidth: Bandwidth) -> Result<u32, &'static str> {
    let bandwidth = bandwidth.0 as u32;
    if bandwidth < MIN_BANDWIDTH {
        return Err("bandwidth too small, minimum 100Bps");
    }
    Ok(bandwidth / MIN_BANDWIDTH * MIN_BANDWIDTH)
}

/// How long a link of this bandwidth takes to send a packet.
fn transmission_time(packet: &Packet, bandwidth: u32) -> Timestamp {
    let bytes = packet.len() as u64 + u64::from(packet.extra_length());
    Timestamp::from_micros((bytes * 1_000_000 / u64::from(bandwidth.max(1))) as i64)
}

/// Whether a link, whose last packet leaves at `last`, takes another one for a delivery at `delayed`.
fn has_room(last: Option<Timestamp>, delayed: Timestamp) -> bool {
    last.is_none_or(|last| last <= delayed)
}

impl LinkUnqueue {
    fn last(&self) -> Option<Timestamp> {
        self.link.back().map(Packet::timestamp)
    }

    /// Pulls packets while the link has room; returns whether any arrived.
    fn fill(&mut self, cx: &mut Context, delayed: Timestamp) -> bool {
        let mut worked = false;
        let mut pulled = cx.batch();
        let (bandwidth, mut last) = (self.bandwidth, self.last());
        while has_room(last, delayed) {
            // A packet that takes no time leaves room for ever.
            let most = MAX_PACKETS_PER_RUN.saturating_sub(self.link.len()).clamp(1, MAX_BATCH);
            let mut back_to_back = self.back_to_back;
            let count = cx.pull_while(0, &mut pulled, &mut |pulled| {
                if let Some(packet) = pulled.as_mut_slice().last_mut() {
                    let start = last.filter(|_| back_to_back).unwrap_or(delayed);
                    packet.set_timestamp(start + transmission_time(packet, bandwidth));
                    last = Some(packet.timestamp());
                    back_to_back = true;
                }
                pulled.len() < most && has_room(last, delayed)
            });
            self.back_to_back = back_to_back;
            self.age.arrive(count, || cx.steady());
            self.link.extend(pulled.drain());
            worked |= count > 0;
            if count < most && has_room(last, delayed) {
                // No further packet came.
                self.back_to_back = false;
                break;
            }
            if self.link.len() >= MAX_PACKETS_PER_RUN {
                break;
            }
        }
        cx.recycle(pulled);
        worked
    }

    fn reset(&mut self, cx: &Context) {
        cx.count_drops(Reason::RESET, self.link.len() as u64);
        self.age.leave(self.link.len());
        self.link.clear();
        self.length.set(0);
        cx.clear_timer(0);
        cx.schedule();
    }
}

impl Element for LinkUnqueue {
    type Args = LinkUnqueueArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("latency", "Propagation delay.", |link| number_format::interval(link.latency)),
        Handler::setting(
            "latency",
            "Sets the propagation delay, and drops all packets on the link.",
            |link, cx, value| {
                let latency = cx.argument(value);
                link.latency = latency.map_err(|_| HandlerError::new("latency must be a timestamp"))?;
                link.reset(cx);
                Ok(())
            },
        ),
        Handler::read("bandwidth", "Bandwidth in bytes per second.", |link| link.bandwidth.to_string()),
        Handler::setting(
            "bandwidth",
            "Sets the bandwidth, and drops all packets on the link.",
            |link, cx, value| {
                let bandwidth = cx.argument(value).map_err(|_| HandlerError::new("invalid bandwidth"))?;
                link.bandwidth = check_bandwidth(bandwidth).map_err(HandlerError::new)?;
                link.reset(cx);
                Ok(())
            },
        ),
        Handler::read("size", "Packets on the link.", |link| link.link.len().to_string()),
        Handler::action("reset", "Drops all packets on the link.", |link, cx, _| {
            link.reset(cx);
            Ok(())
        }),
    ];

    fn new(args: LinkUnqueueArgs, _: &mut Setup) -> Result<LinkUnqueue, SetupError> {
        Ok(LinkUnqueue {
            latency: args.latency,
            bandwidth: check_bandwidth(args.bandwidth).map_err(SetupError::new)?,
            link: VecDeque::new(),
            age: QueueAge::default(),
            back_to_back: false,
            signal: Signal::BUSY,
            length: Length::default(),
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signal = cx.upstream_signal(0);
        cx.schedule();
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let now = cx.now();
        let mut worked = self.fill(cx, now + self.latency);
        let mut batch = cx.batch();
        // They are in the order of their times.
        let due = self.link.iter().position(|packet| packet.timestamp() > now).unwrap_or(self.link.len());
        for packet in self.link.drain(..due) {
            batch.push(packet);
            if batch.len() >= cx.batch_limit() {
                let full = core::mem::replace(&mut batch, cx.batch());
                cx.emit(0, full);
            }
        }
        self.age.leave(due);
        worked |= due > 0;
        cx.emit(0, batch);
        self.length.set(self.link.len());
        if let (Some(first), Some(last)) = (self.link.front().map(Packet::timestamp), self.last()) {
            let room = last - self.latency;
            let next = if self.signal.is_active() { first.min(room) } else { first };
            if next <= now {
                cx.schedule();
            } else {
                cx.set_timer_after(0, next - now);
            }
        } else if self.signal.is_active() {
            cx.schedule();
        }
        worked
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }

    fn inherit(&mut self, old: &mut LinkUnqueue, _: &mut Context) {
        core::mem::swap(&mut self.link, &mut old.link);
        core::mem::swap(&mut self.age, &mut old.age);
        self.length.set(self.link.len());
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(self.link.len(), self.age.oldest());
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(Rc::new(self.length.clone()))
    }
}
