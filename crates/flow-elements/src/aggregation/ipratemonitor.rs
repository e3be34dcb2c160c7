//! `IPRateMonitor`: measures rates per IP prefix.

use core::net::Ipv4Addr;

use element::arguments::{ArgumentError, Word};
use element::prelude::*;
use element::text;
use packet::{Ip4View, annotation};

use element::arguments::Probability;

use super::rates::{COUNTER_BYTES, EPOCHS, LEVEL_BYTES, Level, Part, Rates};

/// Measures packet or byte rates per IP prefix, with finer prefixes where rates are high.
///
/// Packets from input 0 count for their source (forward rate), packets from input 1 for their destination (reverse
/// rate). At first, rates are kept per first byte of the address. Where a rate exceeds THRESH per second, they are also
/// kept by the second byte, and so on; prefixes whose rates have dropped are merged again. Each packet gets the forward
/// and reverse rate of its finest prefix as annotations.
///
/// RATIO is the share of packets to sample. MEMORY limits the memory for rates in KB, by Click's accounting; at least
/// 100.
///
/// ## Differences
///
/// When memory has to be freed, the finest prefixes go first; Click visits them in arbitrary order.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
///     -> m :: IPRateMonitor(PACKETS, 1, 100) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// m.thresh = 100
/// m.mem = 2120
/// ```
#[derive(Args)]
#[element(
    name = "IPRateMonitor",
    group = "aggregation",
    ports = "1-2/1-2",
    processing = "a/a",
    flow = "#/#",
    see = "AggregateIP"
)]
pub struct IPRateMonitorArgs {
    /// PACKETS or BYTES.
    #[arg(position, keyword = "TYPE")]
    kind: Word,
    /// Share of packets to sample, 0 to 1.
    #[arg(position)]
    ratio: Ratio,
    /// Rate per second above which a prefix is split.
    #[arg(position)]
    thresh: i32,
    /// Maximum memory in KB; 0 for no limit.
    #[arg(position, default = "0")]
    memory: u32,
    /// Set the rate annotations.
    #[arg(position, default = "true")]
    anno: bool,
}

/// The minimum memory setting, in KB.
const MIN_MEMORY: u32 = 100;

/// A fraction from 0 to 1 in fixed point.
struct Ratio(Probability<16>);

impl FromArgument for Ratio {
    const KIND: &'static str = Probability::<16>::KIND;

    fn from_argument(text: &str, setup: &Setup) -> Result<Ratio, ArgumentError> {
        let bounds = |problem| match problem {
            ArgumentError::SemanticWithKeyword(_) => ArgumentError::semantic("ratio must be between 0 and 1"),
            other => other,
        };
        Probability::from_argument(text, setup).map(Ratio).map_err(bounds)
    }
}

pub struct IPRateMonitor {
    bytes: bool,
    annotate: bool,
    ratio: u32,
    /// Whether to draw a random number per packet even if all packets are counted, because other elements share the
    /// random sequence.
    draws: bool,
    threshold: i64,
    most: usize,
    used: usize,
    base: Level,
    began: i64,
    folded: i64,
}

fn epoch(cx: &Context) -> i64 {
    cx.steady().millis() >> 3
}

impl IPRateMonitor {
    fn has_room(&self, bytes: usize) -> bool {
        self.most == 0 || self.used + bytes <= self.most
    }

    /// Counts for an address. Returns the rates of the finest part that contains it.
    fn count(&mut self, address: u32, direction: usize, amount: Option<i64>, now: i64) -> Option<[i64; 2]> {
        let bytes = address.to_be_bytes();
        let has_room = |used: usize, bytes| self.most == 0 || used + bytes <= self.most;
        let (mut level, mut used) = (&mut self.base, self.used);
        let mut answer = None;
        for (depth, &byte) in bytes.iter().enumerate() {
            let slot = level.parts.get_mut(usize::from(byte))?;
            if slot.is_none() {
                if !has_room(used, COUNTER_BYTES) {
                    return None;
                }
                used += COUNTER_BYTES;
                *slot = Some(Part::new(Rates::starting_at(now)));
            }
            let part = slot.as_mut()?;
            if let Some(amount) = amount {
                part.rates.add(now, direction, amount);
            }
            if part.finer.is_none() {
                let rates = part.rates.rates();
                answer = Some(rates);
                let next = bytes.get(depth + 1).copied();
                if let Some(next) = next
                    && part.whole_until < now
                    && rates.iter().any(|rate| *rate >= self.threshold)
                    && has_room(used, COUNTER_BYTES + LEVEL_BYTES)
                {
                    let mut finer = Level::new();
                    if let Some(slot) = finer.parts.get_mut(usize::from(next)) {
                        *slot = Some(Part::new(part.rates));
                    }
                    used += COUNTER_BYTES + LEVEL_BYTES;
                    part.finer = Some(Box::new(finer));
                }
                break;
            }
            level = part.finer.as_deref_mut()?;
        }
        self.used = used;
        answer
    }

    fn fold(&mut self, now: i64, limit: i64) {
        // Without a memory limit, fold a tenth at a time to bound the pause.
        let most = if self.most == 0 { self.used / 10 * 9 } else { self.most };
        let excess = (self.used + 1).saturating_sub(most);
        self.base.fold(now, limit, excess);
        self.used = self.base.bytes();
    }

    fn observe(&mut self, cx: &Context, packet: &mut Packet, port: usize) {
        let chance = (self.ratio >= 0x1_0000 && !self.draws) || (cx.random() >> 5 & 0xffff) <= self.ratio;
        let Some(header) = Ip4View::new(packet.network()) else { return };
        let amount = if self.bytes { header.total_length().into() } else { 1 };
        let (address, direction) = if port == 0 { (header.source(), 0) } else { (header.destination(), 1) };
        let now = epoch(cx);
        let Some(rates) = self.count(address.to_bits(), direction, chance.then_some(amount), now) else {
            return;
        };
        if self.annotate {
            packet.set_annotation_u32(annotation::FWD_RATE.offset.into(), rates[0] as u32);
            packet.set_annotation_u32(annotation::REV_RATE.offset.into(), rates[1] as u32);
        }
        if now - self.folded >= EPOCHS {
            self.fold(now, self.threshold);
            self.folded = now;
        }
    }

    /// Keeps a part of an address undivided until an epoch.
    fn keep_undivided(&mut self, address: Ipv4Addr, depth: usize, until: i64) -> Option<()> {
        let mut level = &mut self.base;
        for (at, byte) in address.octets().into_iter().enumerate() {
            let part = level.parts.get_mut(usize::from(byte))?.as_mut()?;
            if at == depth {
                part.whole_until = until;
                part.finer = None;
                self.used = self.base.bytes();
                return Some(());
            }
            level = part.finer.as_deref_mut()?;
        }
        None
    }

    fn clear(&mut self, now: i64) {
        self.base = Level::new();
        self.used = LEVEL_BYTES;
        self.began = now;
    }

    fn memory(kilobytes: u32) -> usize {
        if kilobytes == 0 { 0 } else { kilobytes.max(MIN_MEMORY) as usize * 1_024 }
    }
}

/// The handler for `ADDRESS LEVEL SECONDS`.
fn anno_level(monitor: &mut IPRateMonitor, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
    let arguments = text::split_arguments(value);
    let words = if arguments.len() == 3 { arguments } else { text::words(value) };
    let [address, depth, seconds] = words.as_slice() else {
        return Err(HandlerError::new("expecting 3 arguments"));
    };
    let address = cx.argument(address).map_err(|_| HandlerError::new("not an IP address"))?;
    let depth: usize =
        cx.argument(depth).ok().filter(|depth| *depth < 4).ok_or_else(|| {
            HandlerError::new("2nd argument specifies a level, between 0 and 3, to annotate")
        })?;
    let seconds: i64 = cx
        .argument(seconds)
        .ok()
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| HandlerError::new("3rd argument specifies when this rule expires, must be > 0"))?;
    monitor.keep_undivided(address, depth, seconds.saturating_mul(EPOCHS).saturating_add(epoch(cx)));
    Ok(())
}

impl Element for IPRateMonitor {
    type Args = IPRateMonitorArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("thresh", "Rate above which prefixes are split, times RATIO.", |monitor| {
            monitor.threshold.to_string()
        }),
        Handler::read_with(
            "look",
            "Epochs since the reset, then each prefix with its rates.",
            |monitor, cx, _| {
                let now = epoch(cx);
                let mut text = format!("{}\n", now - monitor.began);
                monitor.base.print(now, "", &mut text);
                Ok(text)
            },
        ),
        Handler::read("mem", "Memory used, in bytes.", |monitor| monitor.used.to_string()),
        Handler::read("memmax", "Maximum memory in bytes; 0 for no limit.", |monitor| {
            monitor.most.to_string()
        }),
        Handler::setting("memmax", "Sets the maximum memory, in KB.", |monitor, cx, value| {
            let kilobytes = cx.argument(value).map_err(|_| HandlerError::new("not an integer"))?;
            monitor.most = IPRateMonitor::memory(kilobytes);
            let mut limit = monitor.threshold;
            while !monitor.has_room(0) && monitor.base.parts.iter().flatten().any(|part| part.finer.is_some())
            {
                monitor.fold(epoch(cx), limit);
                limit = limit.saturating_mul(2).saturating_add(1);
            }
            Ok(())
        }),
        Handler::action("anno_level", "Keeps a prefix from being split: ADDRESS LEVEL SECONDS.", anno_level),
        Handler::action("reset", "Forgets all rates.", |monitor, cx, _| {
            monitor.clear(epoch(cx));
            Ok(())
        }),
    ];

    fn new(args: IPRateMonitorArgs, _: &mut Setup) -> Result<IPRateMonitor, SetupError> {
        let bytes = match args.kind.0.to_ascii_uppercase().as_str() {
            "PACKETS" => false,
            "BYTES" => true,
            _ => return Err(SetupError::new("monitor type should be \"PACKETS\" or \"BYTES\"")),
        };
        let Ratio(Probability(ratio)) = args.ratio;
        Ok(IPRateMonitor {
            bytes,
            annotate: args.anno,
            ratio,
            draws: false,
            threshold: (i64::from(args.thresh) * i64::from(ratio)) >> 16,
            most: IPRateMonitor::memory(args.memory),
            used: LEVEL_BYTES,
            base: Level::new(),
            began: 0,
            folded: 0,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        (self.began, self.folded) = (epoch(cx), epoch(cx));
        self.draws = cx.shares_random();
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        batch.iter_mut().for_each(|packet| self.observe(cx, packet, port));
        cx.emit(port, batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        cx.pull(port, most, into);
        for packet in into.as_mut_slice().get_mut(before..).unwrap_or(&mut []) {
            self.observe(cx, packet, port);
        }
    }
}
