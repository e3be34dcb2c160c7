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
/// c.bit_count = 40000
/// c.link_count = 49600
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
    sums = "count, byte_count, bit_count, link_count",
    see = "Counter"
)]
pub struct AverageCounterArgs {
    /// Seconds to ignore after the first packet.
    #[arg(position, default = "0")]
    ignore: u32,
}

/// Bytes of a frame on a link that are not in the packet: preamble, checksum and gap.
const LINK_OVERHEAD: u64 = 24;

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

    /// The measured time in milliseconds, at least one.
    fn span(&self) -> f64 {
        let span = self.last.saturating_sub(self.first.unwrap_or(self.last)).saturating_sub(self.ignore);
        span.max(1) as f64
    }

    /// `count` per second over the measured time.
    fn rate(&self, count: u64) -> String {
        number_format::general(count as f64 * 1_000.0 / self.span())
    }

    fn bits(&self) -> u64 {
        self.bytes.wrapping_mul(8)
    }

    /// Bits that the packets occupy on an Ethernet link.
    fn link_bits(&self) -> u64 {
        self.bits().wrapping_add(self.count.wrapping_mul(8 * LINK_OVERHEAD))
    }
}

impl Element for AverageCounter {
    type Args = AverageCounterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("count", "Packets since the last reset.", |counter| counter.count.to_string()),
        Handler::read("byte_count", "Bytes since the last reset.", |counter| counter.bytes.to_string()),
        Handler::read("rate", "Packets per second.", |counter| counter.rate(counter.count)),
        Handler::read("byte_rate", "Bytes per second.", |counter| counter.rate(counter.bytes)),
        Handler::read("bit_count", "Bits since the last reset.", |counter| counter.bits().to_string()),
        Handler::read("bit_rate", "Bits per second.", |counter| counter.rate(counter.bits())),
        Handler::read(
            "link_count",
            "Bits on an Ethernet link since the last reset: 24 bytes more for each packet.",
            |counter| counter.link_bits().to_string(),
        ),
        Handler::read("link_rate", "Bits per second on an Ethernet link.", |counter| {
            counter.rate(counter.link_bits())
        }),
        Handler::read("time", "The measured time in seconds.", |counter| {
            number_format::general(counter.span() / 1_000.0)
        }),
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
