//! `ToDevice`: sends packets to a network interface.

use core::any::Any;

use element::arguments::Word;
use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, Direction, IoError, Signal};

use super::names::TO_DEVICE;

/// The timer of the next attempt.
const RETRY_TIMER: usize = 0;
/// Maximum time between attempts, in microseconds.
const MAX_RETRY_DELAY: i64 = 256;

/// Sends packets to a network interface, or, in a box, to the switch port with that number.
///
/// Packets start with their Ethernet header. On a pull input, packets are pulled when there is room. On a push input,
/// packets without room are dropped as `full`, and sources such as InfiniteSource pause until there is room. Sent
/// packets leave by output 0 and packets that could not be sent by output 1, if these outputs exist.
///
/// A device has one ToDevice in a configuration. Join several paths before it, for example at the input of a Queue.
/// ```click
/// // eth0 and eth1 are joined by a cable.
/// InfiniteSource(LIMIT 3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> to :: ToDevice(eth0, BURST 32);
/// FromDevice(eth1) -> received :: Counter -> Discard;
/// to[0] -> sent :: Counter -> Discard;
/// to[1] -> failed :: Counter -> Discard;
/// ```
/// ```expect
/// sent.count = 3
/// failed.count = 0
/// received.count = 3
/// ```
/// ## Differences
/// METHOD XDP sends through an XDP socket, which it shares with a FromDevice of the same interface, for less processor
/// time; zero copy is untested. Where that is not possible, a message says why, and METHOD LINUX is used. In a box, METHOD
/// has no effect. Packets that are longer than the interface's MTU are dropped as `too_long`.
///
/// METHOD LINUX, PCAP, NETMAP and DPDK are the same: a packet socket. The last two cause a warning. Packets may also be
/// pushed. A task run pulls as many packets as the device accepts per call (64 for an interface), even if BURST is lower.
///
/// The classes ToDPDKDevice, ToNetmapDevice and ToDPDKRing are this class. Each argument of theirs that has no effect
/// causes a warning.
#[derive(Args)]
#[element(
    name = "ToDevice",
    other_names = "TO_DEVICE",
    group = "devices",
    ports = "1/0-2",
    processing = "a/h",
    task,
    notifies = "full",
    phase = "sender",
    shards = "sum",
    sums = "pulls, q",
    logs,
    see = "FromDevice, ToDump",
    drops = "not_sent, full, too_long",
    fates = "copied, delivered, waiting"
)]
pub struct ToDeviceArgs {
    /// Name of the interface.
    #[arg(position)]
    devname: String,
    /// Log pauses.
    #[arg(default = "false")]
    debug: bool,
    /// LINUX, XDP, PCAP, NETMAP or DPDK.
    method: Option<Word>,
    /// Maximum packets per task run.
    #[arg(default = "1")]
    burst: i32,
}

pub struct ToDevice {
    args: ToDeviceArgs,
    /// Whether METHOD is XDP.
    xdp: bool,
    device: Option<Box<dyn Device>>,
    /// Packets for which there was no room.
    waiting: Batch,
    /// Since when the oldest of them waits, at the earliest.
    since: Timestamp,
    signal: Signal,
    pulls: u64,
    /// Time between the last attempts, in microseconds.
    pause: i64,
    last_error: Option<IoError>,
}

/// Registers the writer of a device, of which there may be only one.
struct Writer(String);

impl Element for ToDevice {
    type Args = ToDeviceArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("debug", "Whether pauses are logged.", |to| to.args.debug.to_string()),
        Handler::setting("debug", "Turns logging of pauses on or off.", |to, cx, value| {
            to.args.debug =
                cx.argument(value).map_err(|_| HandlerError::new("debug parameter must be boolean"))?;
            Ok(())
        }),
        Handler::read("pulls", "Number of pulls.", |to| to.pulls.to_string()),
        Handler::read("signal", "Whether packets may be available upstream.", |to| {
            to.signal.is_active().to_string()
        }),
        Handler::read("q", "Whether a packet is waiting for room.", |to| {
            (!to.waiting.is_empty()).to_string()
        }),
    ];

    fn new(args: ToDeviceArgs, setup: &mut Setup) -> Result<ToDevice, SetupError> {
        if args.devname.is_empty() {
            return Err(SetupError::new("interface not set"));
        }
        if args.burst <= 0 {
            return Err(SetupError::new("bad BURST"));
        }
        let xdp = super::check_method(args.method.as_ref(), setup)?;
        let (waiting, signal) = (Batch::default(), Signal::BUSY);
        Ok(ToDevice {
            args,
            xdp,
            device: None,
            waiting,
            since: Timestamp::ZERO,
            signal,
            pulls: 0,
            pause: 0,
            last_error: None,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let name = &self.args.devname;
        let writes = |element| {
            let writer = cx.runtime().export(element).and_then(|export| export.downcast::<Writer>().ok());
            writer.is_some_and(|writer| writer.0 == *name)
        };
        if (0..cx.element()).any(writes) {
            return Err(SetupError::new(format_args!(
                "duplicate writer for device ‘{name}’: join the paths before one ToDevice, for example at a Queue"
            )));
        }
        let request = DeviceRequest::Interface {
            name: name.clone(),
            promiscuous: false,
            outbound: false,
            snap: 0,
            receive: false,
            exclusive: false,
            xdp: self.xdp,
        };
        self.device = Some(super::open(cx, name, &request)?);
        if !cx.is_push_input(0) {
            self.signal = cx.upstream_signal(0);
            cx.schedule();
        }
        Ok(())
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(Rc::new(Writer(self.args.devname.clone())))
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        core::mem::swap(&mut self.waiting, &mut batch);
        cx.recycle(batch);
        self.send(cx);
        if !self.waiting.is_empty() {
            let mut descriptor = None;
            if let Some(device) = &mut self.device {
                device.count_full(self.waiting.len() as u64);
                descriptor = device.descriptor();
            }
            cx.drop_batch(core::mem::take(&mut self.waiting), Reason::FULL);
            // Unlimited sources stop until there is room.
            if let Some(descriptor) = descriptor {
                cx.set_signal(Direction::Full, false);
                cx.watch(descriptor, false, true);
            }
        }
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        let Some(device) = &self.device else { return false };
        let burst = usize::try_from(self.args.burst).unwrap_or(1).max(device.burst());
        let wanted = burst.saturating_sub(self.waiting.len());
        let was_empty = self.waiting.is_empty();
        if wanted > 0 {
            self.pulls += 1;
            cx.pull(0, wanted.min(cx.batch_limit()), &mut self.waiting);
        }
        let sent = self.send(cx);
        if !self.waiting.is_empty() {
            if was_empty {
                self.since = cx.steady();
            }
            self.wait(cx);
        } else {
            self.pause = 0;
            if sent > 0 || self.signal.is_active() {
                cx.schedule();
            }
        }
        sent > 0
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        cx.watch(descriptor, false, false);
        if cx.is_push_input(0) {
            cx.set_signal(Direction::Full, true);
        } else {
            cx.schedule();
        }
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add(self.waiting.len(), Some(self.since));
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.schedule();
    }

    fn inherit(&mut self, old: &mut ToDevice, cx: &mut Context) {
        if self.args.devname == old.args.devname && !cx.is_push_input(0) {
            self.waiting.append(&mut old.waiting);
            self.since = old.since;
            self.pulls = old.pulls;
        }
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.device = None;
        self.waiting.clear();
    }
}

impl ToDevice {
    /// Sends waiting packets as far as there is room. Returns how many were sent.
    fn send(&mut self, cx: &mut Context) -> usize {
        let Some(device) = &mut self.device else { return 0 };
        let mut sent = 0;
        while !self.waiting.is_empty() {
            // Sending consumes the packets, so those for the output are duplicated first.
            let mut copies = cx.batch();
            if cx.outputs() > 0 {
                let all = self.waiting.iter().map_while(Packet::duplicate);
                all.for_each(|copy| copies.push(copy));
            }
            let before = self.waiting.len();
            let result = device.send(&mut self.waiting);
            let count = before - self.waiting.len();
            sent += count;
            let refused = device.take_refused().min(count);
            cx.count(Fate::Delivered, count - refused);
            cx.count_drops(Reason::TOO_LONG, refused as u64);
            copies.truncate(count);
            if cx.outputs() > 0 {
                cx.count_begun(Fate::Copied, count, copies.len());
            }
            if copies.is_empty() {
                cx.recycle(copies);
            } else {
                cx.emit(0, copies);
            }
            if result.is_err() {
                super::report(cx, &self.args.devname, result, &mut self.last_error);
                let failed: Vec<Packet> = self.waiting.drain_front(1).collect();
                for packet in failed {
                    if cx.outputs() > 1 {
                        cx.send(1, packet);
                    } else {
                        cx.drop(packet, Reason::NOT_SENT);
                    }
                }
            } else if count == 0 {
                break;
            }
        }
        sent
    }

    /// Waits for room: first for the system's notification, then by timer.
    fn wait(&mut self, cx: &Context) {
        let descriptor = self.device.as_ref().and_then(|device| device.descriptor());
        match descriptor.filter(|_| self.pause == 0) {
            Some(descriptor) => cx.watch(descriptor, false, true),
            None => {
                cx.set_timer_after(RETRY_TIMER, Timestamp::from_nanos(self.pause.max(1) * 1_000));
                if self.args.debug {
                    cx.log(&format!("{} backing off for {} at {}", cx.name(), self.pause, cx.now()));
                }
            }
        }
        self.pause = (self.pause * 2).clamp(1, MAX_RETRY_DELAY);
    }
}
