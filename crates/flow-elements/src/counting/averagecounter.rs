//! `AverageCounter`: counts packets and bytes, and computes average rates.

use element::number_format;
use element::prelude::*;

/// Counts packets and bytes, and computes average rates between the first and the last packet.
///
/// Packets of the first IGNORE seconds do not count.
/// ```click
/// RatedSource(LENGTH 100, RATE 100, LIMIT 50, STOP true) -> c :: AverageCounter -> Discard;
/// ```
/// ```expect
/// c.count = 50
/// c.byte_count = 5000
/// ```
#[derive(Args)]
#[element(
    name = "AverageCounter",
    aliases = "AverageCounterMP, AverageCounterIMP",
    group = "counting",
    ports = "1/1",
    processing = "a/a",
    order_insensitive,
    shards = "sum",
    sums = "count, byte_count",
    see = "Counter"
)]
pub struct AverageCounterArgs {
    /// Seconds to ignore after the first packet.
    #[arg(position, default = "0")]
    ignore: u32,
}

pub struct AverageCounter {
    /// Milliseconds to ignore.
    ignore: i64,
    count: u64,
    bytes: u64,
    /// Steady time of the first packet in milliseconds.
    first: Option<i64>,
    /// Steady time of the last packet in milliseconds.
    last: i64,
}

impl AverageCounter {
    fn add(&mut self, now: Timestamp, packets: &[Packet]) {
        if packets.is_empty() {
            return;
        }
        let now = now.millis();
        let first = *self.first.get_or_insert(now);
        if now.saturating_sub(first) >= self.ignore {
            self.count += packets.len() as u64;
            self.bytes += packets.iter().map(|packet| packet.len() as u64).sum::<u64>();
        }
        self.last = now;
    }

    /// `count` per second over the measured time, which is at least one millisecond.
    fn rate(&self, count: u64) -> String {
        let span = self.last.saturating_sub(self.first.unwrap_or(self.last)).saturating_sub(self.ignore);
        number_format::general(count as f64 * 1_000.0 / span.max(1) as f64)
    }
}

impl Element for AverageCounter {
    type Args = AverageCounterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("count", "Packets since the last reset.", |counter| counter.count.to_string()),
        Handler::read("byte_count", "Bytes since the last reset.", |counter| counter.bytes.to_string()),
        Handler::read("rate", "Packets per second.", |counter| counter.rate(counter.count)),
        Handler::read("byte_rate", "Bytes per second.", |counter| counter.rate(counter.bytes)),
        Handler::action("reset", "Resets all counts.", |counter, _, _| {
            (counter.count, counter.bytes, counter.first, counter.last) = (0, 0, None, 0);
            Ok(())
        }),
    ];

    fn new(args: AverageCounterArgs, _: &mut Setup) -> Result<AverageCounter, SetupError> {
        let ignore = i64::from(args.ignore) * 1_000;
        Ok(AverageCounter { ignore, count: 0, bytes: 0, first: None, last: 0 })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.add(cx.steady(), batch.as_slice());
        cx.emit(0, batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        cx.pull(0, most, into);
        self.add(cx.steady(), into.as_slice().get(before..).unwrap_or(&[]));
    }
}
