//! `AggregatePacketCounter`: counts packets by aggregate and packet number.

use alloc::collections::BTreeMap;

use element::arguments::{Annotation, Raw};
use element::prelude::*;
use element::{HandlerInfo, HandlerKind, WriteEffect};
use packet::annotation;

/// Counts packets by input, aggregate annotation and packet number annotation, to find losses between two points.
///
/// Packets from input N go to output N. Packets with aggregate 0 are not counted. `received` and `undelivered` take an
/// aggregate, 0 by default.
/// ```click
/// InfiniteSource(LIMIT 2) -> SetAnnoByte(20, 7) -> [0]c :: AggregatePacketCounter(ANNO NONE);
/// InfiniteSource(LIMIT 3, STOP true) -> SetAnnoByte(20, 7) -> [1]c;
/// c[0] -> Discard;
/// c[1] -> Discard;
/// ```
/// ```expect
/// c.count = 5
/// ```
#[derive(Args)]
#[element(
    name = "AggregatePacketCounter",
    group = "aggregation",
    ports = "1-/1-",
    processing = "a/a",
    flow = "#/#",
    order_insensitive,
    logs,
    see = "AggregateCounter, AggregateIPFlows"
)]
pub struct AggregatePacketCounterArgs {
    /// Annotation that holds the packet number, or NONE.
    #[arg(default = "PACKET_NUMBER")]
    anno: Raw,
}

/// Maximum (aggregate, packet number) pairs. Bounds the memory that packet numbers can claim.
const MAX_NUMBERS: usize = 1 << 22;

pub struct AggregatePacketCounter {
    annotation: Option<usize>,
    /// By aggregate and packet number, the packet count of each input.
    counts: BTreeMap<(u32, u32), Vec<u32>>,
    inputs: usize,
    seen: PacketsSeen,
}

/// What kinds of packet were seen.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum PacketsSeen {
    #[default]
    None,
    /// Only packets without an aggregate.
    WithoutAggregate,
    WithAggregate,
}

impl AggregatePacketCounter {
    fn add(&mut self, packets: &[Packet], port: usize) {
        for packet in packets {
            let aggregate = packet.aggregate();
            if aggregate == 0 {
                self.seen = self.seen.max(PacketsSeen::WithoutAggregate);
                continue;
            }
            self.seen = PacketsSeen::WithAggregate;
            let number = self.annotation.map_or(0, |annotation| packet.annotation_u32(annotation));
            if self.counts.len() >= MAX_NUMBERS && !self.counts.contains_key(&(aggregate, number)) {
                continue;
            }
            let inputs = self.inputs;
            let counts = self.counts.entry((aggregate, number)).or_insert_with(|| vec![0; inputs]);
            if let Some(count) = counts.get_mut(port) {
                *count = count.wrapping_add(1);
            }
        }
    }

    /// The packet numbers of an aggregate whose counts meet a condition, one per line.
    fn matching_numbers(
        &self,
        cx: &Context,
        value: &str,
        matches: fn(&[u32]) -> bool,
    ) -> Result<String, HandlerError> {
        let aggregate = match value.trim() {
            "" => 0,
            text => {
                cx.argument(text).map_err(|_| HandlerError::new("argument should be aggregate number"))?
            }
        };
        let counts = self.counts.range((aggregate, 0)..=(aggregate, u32::MAX));
        Ok(counts
            .filter(|(_, counts)| matches(counts))
            .map(|((_, number), _)| format!("{number}\n"))
            .collect())
    }
}

impl Element for AggregatePacketCounter {
    type Args = AggregatePacketCounterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::action("clear", "Resets all counts.", |counter, _, _| {
            counter.counts.clear();
            Ok(())
        }),
        Handler::read("count", "Packets counted.", |counter| {
            let counts = counter.counts.values().flatten();
            counts.map(|count| u64::from(*count)).sum::<u64>().to_string()
        }),
        Handler::read_with(
            "received",
            "Numbers of the packets of an aggregate that arrived.",
            |counter, cx, value| {
                counter.matching_numbers(cx, value, |counts| counts.iter().any(|count| *count > 0))
            },
        ),
    ];

    fn new(
        args: AggregatePacketCounterArgs,
        setup: &mut Setup,
    ) -> Result<AggregatePacketCounter, SetupError> {
        let annotation = match args.anno.0.as_str() {
            "NONE" => None,
            "PACKET_NUMBER" => Some(usize::from(annotation::PACKET_NUMBER.offset)),
            text => match Annotation::<4>::from_argument(text, setup) {
                Ok(Annotation(annotation)) => Some(annotation),
                Err(_) => return Err(SetupError::new("bad ANNO")),
            },
        };
        Ok(AggregatePacketCounter {
            annotation,
            counts: BTreeMap::new(),
            inputs: setup.inputs(),
            seen: PacketsSeen::None,
        })
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        self.add(batch.as_slice(), port);
        cx.emit(port, batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        cx.pull(port, most, into);
        self.add(into.as_slice().get(before..).unwrap_or(&[]), port);
    }

    fn cleanup(&mut self, cx: &mut Context) {
        if self.seen == PacketsSeen::WithoutAggregate {
            let name = cx.name();
            cx.log(&format!(
                "{name} :: AggregatePacketCounter: warning: saw no packets with aggregate annotations"
            ));
        }
    }

    fn inherit(&mut self, old: &mut AggregatePacketCounter, _: &mut Context) {
        if self.inputs == old.inputs {
            self.counts = core::mem::take(&mut old.counts);
            self.seen = core::mem::take(&mut old.seen);
        }
    }

    /// Adds `undelivered` if there are at least two inputs.
    fn more_handlers(&self) -> Vec<HandlerInfo> {
        let (name, kind) = ("undelivered".into(), HandlerKind::ReadWithParameter);
        let summary = "Packets that came in at input 0, and not at input 1.";
        let effect = WriteEffect::Action;
        let info = HandlerInfo { name, kind, effect, calm: false, hidden: false, summary };
        Some(info).filter(|_| self.inputs > 1).into_iter().collect()
    }

    fn other_handler(
        &mut self,
        cx: &mut Context,
        name: &str,
        call: HandlerKind,
        value: &str,
    ) -> Option<Result<String, HandlerError>> {
        let is_there = name == "undelivered" && call != HandlerKind::Write && self.inputs > 1;
        is_there.then(|| {
            self.matching_numbers(
                cx,
                value,
                |counts| matches!(counts, [sent, received, ..] if sent > received),
            )
        })
    }
}
