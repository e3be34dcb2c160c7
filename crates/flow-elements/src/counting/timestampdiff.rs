//! `TimestampDiff`: measures the delay of numbered packets.

use element::arguments::ElementName;
use element::number_format::general;
use element::prelude::*;

use super::numberpacket::number;
use super::recordtimestamp::Record;

/// Maximum number of delays that are kept. Traffic could otherwise take all memory.
const MAX_DELAYS: usize = 1 << 24;

/// Measures the delay of packets since they passed a RecordTimestamp, in microseconds.
///
/// A packet is known by the number at OFFSET. Packets whose time was not recorded go to output 1, or are dropped as `no_field`.
/// Delays above MAXDELAY are not kept; VERBOSE logs them. When N delays are kept, later ones are not; 0 stands for 16,777,216.
///
/// The parameter of `average`, `min` and the like is the number of the first delay to use. `perc 99.9` is a percentile, and
/// `perc 99.9 100` one from the hundredth delay on.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> NumberPacket(40) -> r :: RecordTimestamp(OFFSET 40)
///     -> d :: TimestampDiff(r, OFFSET 40, SAMPLE 2) -> known :: Counter -> Discard;
/// d[1] -> unknown :: Counter -> Discard;
/// ```
/// ```expect
/// known.count = 5
/// unknown.count = 0
/// d.index = 2
/// d.dump = 0: 0\n1: 0\n2: 0
/// d.perc99 = 0
/// ```
/// ## Differences
/// The class is one of FastClick. There, `stddev` is the root of the mean square, delays beyond N damage memory, and
/// percentiles change the order of the delays.
#[derive(Args)]
#[element(
    name = "TimestampDiff",
    group = "counting",
    ports = "1/1-2",
    processing = "h/h",
    reads = "RecordTimestamp",
    logs,
    see = "RecordTimestamp, NumberPacket",
    drops = "no_field"
)]
pub(crate) struct TimestampDiffArgs {
    /// The RecordTimestamp.
    #[arg(position)]
    recorder: ElementName,
    /// Offset of the number from the start of the packet, in bytes.
    #[arg(default = "40")]
    offset: u32,
    /// Number of delays to keep; 0 for the maximum.
    #[arg(default = "0")]
    n: u32,
    /// Largest delay to keep, in milliseconds.
    #[arg(default = "1000")]
    maxdelay: u32,
    /// Measure in nanoseconds.
    #[arg(default = "false")]
    nano: bool,
    /// Keep the delays of packets whose number is a multiple of this.
    #[arg(default = "1")]
    sample: u32,
    /// Log delays above MAXDELAY.
    #[arg(default = "false")]
    verbose: bool,
    /// Offset of a byte that says the packet's traffic class; negative for none.
    #[arg(default = "-1")]
    tc_offset: i32,
    /// Bits of that byte to use.
    #[arg(default = "255")]
    tc_mask: u8,
}

pub(crate) struct TimestampDiff {
    args: TimestampDiffArgs,
    record: Option<Rc<Record>>,
    /// Delays with the traffic class of the packet.
    delays: Vec<(u32, u8)>,
}

/// A figure about some delays.
#[derive(Clone, Copy)]
enum Figure {
    Average,
    Deviation,
    Percentile(f64),
}

/// A handler for a figure about the delays from the one on that the parameter says.
macro_rules! figure {
    ($name:literal, $summary:literal, $figure:expr) => {
        Handler::read_with($name, $summary, |element, _, parameter| {
            element.figure(None, parameter, $figure).map(general)
        })
    };
}

impl Filter for TimestampDiff {
    type Args = TimestampDiffArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        figure!("average", "The mean delay.", Figure::Average),
        figure!("avg", "The mean delay.", Figure::Average),
        figure!("min", "The smallest delay.", Figure::Percentile(0.0)),
        figure!("max", "The greatest delay.", Figure::Percentile(100.0)),
        figure!("stddev", "The standard deviation of the delays.", Figure::Deviation),
        figure!("perc00", "The smallest delay.", Figure::Percentile(0.0)),
        figure!("perc01", "The first percentile of the delays.", Figure::Percentile(1.0)),
        figure!("perc05", "The 5th percentile of the delays.", Figure::Percentile(5.0)),
        figure!("perc10", "The 10th percentile of the delays.", Figure::Percentile(10.0)),
        figure!("perc25", "The 25th percentile of the delays.", Figure::Percentile(25.0)),
        figure!("median", "The median of the delays.", Figure::Percentile(50.0)),
        figure!("perc75", "The 75th percentile of the delays.", Figure::Percentile(75.0)),
        figure!("perc90", "The 90th percentile of the delays.", Figure::Percentile(90.0)),
        figure!("perc95", "The 95th percentile of the delays.", Figure::Percentile(95.0)),
        figure!("perc99", "The 99th percentile of the delays.", Figure::Percentile(99.0)),
        figure!("perc100", "The greatest delay.", Figure::Percentile(100.0)),
        Handler::read_with("perc", "The percentile that the parameter says.", |element, cx, parameter| {
            let (percent, start) = parameter.split_once(' ').unwrap_or((parameter, ""));
            let percent = cx.argument(percent).map_err(|_| HandlerError::new("expected a percentile"))?;
            element.figure(None, start, Figure::Percentile(percent)).map(general)
        }),
        Handler::read_with(
            "avg_tc",
            "The mean delay of the traffic class that the parameter says.",
            |element, cx, parameter| {
                let (class, start) = parameter.split_once(' ').unwrap_or((parameter, ""));
                let class = cx.argument(class).map_err(|_| HandlerError::new("expected a traffic class"))?;
                element.figure(Some(class), start, Figure::Average).map(general)
            },
        ),
        Handler::read("index", "The number of the last delay; -1 if there is none.", |element| {
            (element.delays.len() as i64 - 1).to_string()
        }),
        Handler::read("last", "The last delay.", |element| {
            element.delays.last().map_or(0, |(delay, _)| *delay).to_string()
        }),
        Handler::read("dump", "All delays, with their numbers.", |element| element.list(true)),
        Handler::read("dump_list", "All delays.", |element| element.list(false)),
    ];

    fn new(args: TimestampDiffArgs, _: &mut Setup) -> Result<TimestampDiff, SetupError> {
        Ok(TimestampDiff { args, record: None, delays: Vec::new() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let found = cx.runtime().find(cx.element(), &self.args.recorder.0);
        let record = found.and_then(|index| cx.runtime().export(index)?.downcast::<Record>().ok());
        let missing = || SetupError::argument("RECORDER", "must be a valid RecordTimestamp element");
        self.record = Some(record.ok_or_else(missing)?);
        Ok(())
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let Some(record) = &self.record else { return Verdict::Divert(packet, Reason::NO_FIELD) };
        let Some(number) = number(&packet, self.args.offset as usize, record.net_order.get()) else {
            return Verdict::Divert(packet, Reason::NO_FIELD);
        };
        if !number.is_multiple_of(self.args.sample.max(1).into()) {
            return Verdict::Pass(packet);
        }
        let Some(time) = record.time(number) else { return Verdict::Divert(packet, Reason::NO_FIELD) };
        let unit = if self.args.nano { 1 } else { 1_000 };
        let delay = (cx.steady().nanos() - time) / unit;
        let limit = i64::from(self.args.maxdelay) * 1_000_000 / unit;
        let most = if self.args.n == 0 { MAX_DELAYS } else { MAX_DELAYS.min(self.args.n as usize) };
        if delay > limit {
            if self.args.verbose {
                let (delay, most) = (delay * unit / 1_000_000, self.args.maxdelay);
                cx.log(&format!("Packet {number} experienced delay {delay} ms > {most} ms"));
            }
        } else if self.delays.len() < most {
            let class = usize::try_from(self.args.tc_offset).ok().and_then(|at| packet.data().get(at));
            let class = class.map_or(0, |class| class & self.args.tc_mask);
            self.delays.push((u32::try_from(delay).unwrap_or(u32::MAX), class));
        }
        Verdict::Pass(packet)
    }

    fn inherit(&mut self, old: &mut TimestampDiff, _: &mut Context) {
        self.delays = core::mem::take(&mut old.delays);
    }
}

impl TimestampDiff {
    /// A figure about the delays of a traffic class, or of all, from the one on whose number is given; 0 if there are none.
    fn figure(&self, class: Option<u8>, start: &str, figure: Figure) -> Result<f64, HandlerError> {
        let start = match start.trim() {
            "" => 0,
            number => number.parse().map_err(|_| HandlerError::new("expected the number of a delay"))?,
        };
        let delays = || {
            let used = self.delays.get(start..).unwrap_or_default().iter();
            used.filter(|(_, of)| class.is_none_or(|class| class == *of)).map(|(delay, _)| *delay)
        };
        let count = delays().count();
        if count == 0 {
            return Ok(0.0);
        }
        let sum = |of: &dyn Fn(f64) -> f64| delays().map(|delay| of(f64::from(delay))).sum::<f64>();
        let mean = sum(&|delay| delay) / count as f64;
        Ok(match figure {
            Figure::Average => mean,
            Figure::Deviation => root(sum(&|delay| (delay - mean) * (delay - mean)) / count as f64),
            Figure::Percentile(percent) => {
                let place = ((percent * count as f64 / 100.0) as usize).min(count - 1);
                // The least delay that more than `place` delays do not exceed, bit by bit.
                let mut least = 0;
                for bit in (0..32).rev() {
                    let below = least | ((1u32 << bit) - 1);
                    if delays().filter(|delay| *delay <= below).count() <= place {
                        least |= 1 << bit;
                    }
                }
                f64::from(least)
            }
        })
    }

    fn list(&self, numbered: bool) -> String {
        let mut text = String::new();
        for (number, (delay, _)) in self.delays.iter().enumerate() {
            match numbered {
                true => text.push_str(&format!("{number}: {delay}\n")),
                false => text.push_str(&format!("{delay}\n")),
            }
        }
        text
    }
}

/// The square root of a number that is not negative, by Newton's method.
fn root(square: f64) -> f64 {
    let mut root = square.max(1.0);
    for _ in 0..64 {
        root = (root + square / root) / 2.0;
    }
    root
}
