//! `AggregateCounter`: counts packets or bytes by aggregate.

use element::arguments::Raw;
use element::prelude::*;
use packet::annotation;

use super::countfile::FileFormat;
use super::counts::Counts;
use super::trigger::{Action, Trigger};
use flow::Seed;

/// Counts packets or bytes per aggregate annotation.
///
/// A frozen counter, and input 1 always, count only aggregates that were seen before. On push paths, packets that are
/// not counted go to output 1 if it exists. The AGGREGATE keywords set a limit for the number of aggregates, the COUNT
/// keywords for the total. At the limit the element freezes, stops the driver, or writes a handler; give at most one
/// keyword of each kind. `write_text_file` and its variants write the counts in the order of the aggregates, in a
/// format that the IP summary dump tools read. `counts_pdf` replaces the aggregates by their counts.
///
/// ## Differences
///
/// A handler that AGGREGATE_CALL writes is written after the packet has passed. `counts_pdf` counts only aggregates;
/// Click also counts some inner nodes of its tree, as aggregates with count 0.
/// ```click
/// InfiniteSource(LIMIT 3) -> SetAnnoByte(20, 7) -> a :: AggregateCounter -> Discard;
/// InfiniteSource(LIMIT 2, STOP true) -> SetAnnoByte(20, 9) -> [1]a;
/// ```
/// ```expect
/// a.count = 3
/// a.nagg = 1
/// ```
#[derive(Args)]
#[element(
    name = "AggregateCounter",
    group = "aggregation",
    ports = "1-2/1-2",
    processing = "a/a",
    shards = "sum",
    sums = "count, nagg",
    flows = "keeps",
    see = "AggregateIPFlows, AggregatePacketCounter"
)]
pub struct AggregateCounterArgs {
    /// Count bytes instead of packets.
    #[arg(default = "false")]
    bytes: bool,
    /// Do not count bytes before the IP header.
    #[arg(default = "false")]
    ip_bytes: bool,
    /// Count the number of packets in the packet-count annotation.
    #[arg(default = "true")]
    multipacket: bool,
    /// Add the extra length annotation to the bytes.
    #[arg(default = "true")]
    extra_length: bool,
    /// Number of aggregates at which it freezes.
    aggregate_freeze: Option<u32>,
    /// Total at which it freezes.
    count_freeze: Option<u64>,
    /// Number of aggregates at which the driver stops.
    aggregate_stop: Option<u32>,
    /// Total at which the driver stops.
    count_stop: Option<u64>,
    /// Number of aggregates at which a handler is written, with the handler and its value.
    #[arg(default = "")]
    aggregate_call: Raw,
    /// Total at which a handler is written, with the handler and its value.
    #[arg(default = "")]
    count_call: Raw,
    /// Text at the start of files.
    #[arg(default = "")]
    banner: String,
}

pub struct AggregateCounter {
    counts: Counts,
    seen: u32,
    total: u64,
    frozen: bool,
    active: bool,
    aggregate_call: Option<Trigger>,
    count_call: Option<Trigger>,
    args: AggregateCounterArgs,
}

impl AggregateCounterArgs {
    /// The amount that a packet adds to the counts.
    #[inline]
    fn amount(&self, packet: &Packet) -> u32 {
        if !self.bytes {
            let index = usize::from(annotation::EXTRA_PACKETS.offset);
            let more = if self.multipacket { packet.annotation_u32(index) } else { 0 };
            return more.wrapping_add(1);
        }
        let more = if self.extra_length { packet.extra_length() } else { 0 };
        let before = match packet.network_offset() {
            Some(offset) if self.ip_bytes => offset as i32,
            _ => 0,
        };
        (packet.len() as u32).wrapping_add(more).wrapping_sub(before as u32)
    }
}

impl AggregateCounter {
    fn perform(&mut self, action: &Action, cx: &Context) {
        match action {
            Action::Freeze => self.frozen = true,
            Action::Stop => {
                self.active = false;
                cx.stop();
            }
            Action::Write(call) => call.defer(cx),
        }
    }

    /// Counts a slice of packets.
    fn add_all(&mut self, cx: &Context, mut packets: &[Packet], frozen: bool) {
        packets.iter().for_each(|packet| self.counts.prefetch(packet.aggregate()));
        while let [packet, rest @ ..] = packets
            && Counts::is_small(packet.aggregate())
        {
            let is_plain = self.active && self.count_call.is_none();
            match self.counts.small_mut(packet.aggregate()) {
                Some(count) if *count != 0 && is_plain => {
                    let amount = self.args.amount(packet);
                    *count = count.wrapping_add(amount);
                    self.total += u64::from(amount);
                }
                _ => _ = self.add_any(cx, packet, frozen),
            }
            packets = rest;
        }
        if packets.is_empty() {
            return;
        }
        self.counts.find(packets);
        for (index, packet) in packets.iter().enumerate() {
            self.add(cx, packet, frozen, index);
        }
    }

    /// Counts a packet whose count was found at `index` by `Counts::find`. Returns whether it was counted.
    #[inline(always)]
    fn add(&mut self, cx: &Context, packet: &Packet, frozen: bool, index: usize) -> bool {
        if self.active
            && self.count_call.is_none()
            && let Some(count) = self.counts.found_mut(packet.aggregate(), index).filter(|count| **count != 0)
        {
            let amount = self.args.amount(packet);
            *count = count.wrapping_add(amount);
            self.total += u64::from(amount);
            return true;
        }
        // The aggregate may be new, or became known earlier in the batch.
        self.add_any(cx, packet, frozen)
    }

    /// Like `add`, for all cases.
    #[inline(never)]
    fn add_any(&mut self, cx: &Context, packet: &Packet, frozen: bool) -> bool {
        let key = packet.aggregate();
        loop {
            if !self.active {
                return false;
            }
            let old = self.counts.get(key);
            if old == 0 && (frozen || self.frozen) {
                return false;
            }
            let amount = self.args.amount(packet);
            if amount > 0 && old == 0 {
                if let Some(call) = self.aggregate_call.take_if(|call| u64::from(self.seen) >= call.at) {
                    self.perform(&call.action, cx);
                    continue;
                }
                self.seen += 1;
            }
            self.counts.add(key, amount);
            self.total += u64::from(amount);
            if let Some(call) = self.count_call.take_if(|call| self.total >= call.at) {
                self.perform(&call.action, cx);
            }
            return true;
        }
    }

    fn clear(&mut self) {
        self.counts.clear();
        (self.seen, self.total) = (0, 0);
    }

    fn reaggregate(&mut self) {
        let old = self.counts.sorted();
        self.clear();
        for (_, count) in old {
            self.seen += u32::from(self.counts.get(count) == 0);
            self.counts.add(count, 1);
            self.total += 1;
        }
    }

    fn write(&self, cx: &Context, value: &str, format: FileFormat) -> Result<(), HandlerError> {
        cx.require_one_shard("writing counts to a file")?;
        let path: String = cx.argument(value)?;
        if path.is_empty() {
            return Err(HandlerError::new("argument should be filename"));
        }
        let mut head = String::from("!IPAggregate 1.0\n");
        head.push_str(&self.args.banner);
        if !self.args.banner.is_empty() && !self.args.banner.ends_with('\n') {
            head.push('\n');
        }
        head.push_str(&format!("!num_nonzero {}\n", self.seen));
        head.push_str(format.header_line());
        let mut bytes = head.into_bytes();
        for (key, count) in self.counts.sorted() {
            format.append(key, count, self.total, &mut bytes);
        }
        let problem = |error| HandlerError::new(format!("{path}: {error}"));
        let mut file = cx.environment().create(&path, false).map_err(problem)?;
        file.write(&bytes).and_then(|()| file.flush()).map_err(problem)
    }
}

impl Element for AggregateCounter {
    type Args = AggregateCounterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::action(
            "write_text_file",
            "Writes aggregates and counts to a file as text.",
            |counter, cx, value| counter.write(cx, value, FileFormat::Text),
        ),
        Handler::action("write_ascii_file", "Older name of `write_text_file`.", |counter, cx, value| {
            counter.write(cx, value, FileFormat::Text)
        }),
        Handler::action(
            "write_file",
            "Writes aggregates and counts to a file in binary, 4 bytes each.",
            |counter, cx, value| counter.write(cx, value, FileFormat::Binary),
        ),
        Handler::action(
            "write_ip_file",
            "Writes aggregates as IP addresses, with their counts.",
            |counter, cx, value| counter.write(cx, value, FileFormat::Ip),
        ),
        Handler::action(
            "write_pdf_file",
            "Writes aggregates with their share of the total.",
            |counter, cx, value| counter.write(cx, value, FileFormat::Share),
        ),
        Handler::read("freeze", "Whether it is frozen.", |counter| counter.frozen.to_string()),
        Handler::setting("freeze", "Freezes or unfreezes it.", |counter, cx, value| {
            counter.frozen = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            Ok(())
        }),
        Handler::read("active", "Whether it counts.", |counter| counter.active.to_string()),
        Handler::setting("active", "Starts or stops counting.", |counter, cx, value| {
            counter.active = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            Ok(())
        }),
        Handler::action("stop", "Stops counting and stops the driver.", |counter, cx, _| {
            counter.perform(&Action::Stop, cx);
            Ok(())
        }),
        Handler::action("reaggregate_counts", "Replaces the aggregates by their counts.", |counter, _, _| {
            counter.reaggregate();
            Ok(())
        }),
        Handler::action("counts_pdf", "Older name of `reaggregate_counts`.", |counter, _, _| {
            counter.reaggregate();
            Ok(())
        }),
        Handler::read("banner", "Text at the start of files.", |counter| counter.args.banner.clone()),
        Handler::setting("banner", "Sets the text at the start of files.", |counter, _, value| {
            counter.args.banner = match value {
                "\n" => String::new(),
                text if text.is_empty() || text.ends_with('\n') => text.into(),
                text => format!("{text}\n"),
            };
            Ok(())
        }),
        Handler::action("clear", "Resets all counts.", |counter, _, _| {
            counter.clear();
            Ok(())
        }),
        Handler::read_with("aggregate_call", "The value of AGGREGATE_CALL.", |counter, cx, _| {
            Ok(Trigger::describe(&counter.aggregate_call, cx))
        }),
        Handler::setting("aggregate_call", "Sets AGGREGATE_CALL.", |counter, cx, value| {
            counter.aggregate_call = Trigger::parse_written(cx, value, "aggregate_call")?;
            Ok(())
        }),
        Handler::read_with("count_call", "The value of COUNT_CALL.", |counter, cx, _| {
            Ok(Trigger::describe(&counter.count_call, cx))
        }),
        Handler::setting("count_call", "Sets COUNT_CALL.", |counter, cx, value| {
            counter.count_call = Trigger::parse_written(cx, value, "count_call")?;
            Ok(())
        }),
        Handler::read("count", "The total.", |counter| counter.total.to_string()),
        Handler::read("nagg", "Number of aggregates with a count.", |counter| counter.seen.to_string()),
    ];

    fn new(args: AggregateCounterArgs, setup: &mut Setup) -> Result<AggregateCounter, SetupError> {
        let (freeze, stop) = (args.aggregate_freeze.map(u64::from), args.aggregate_stop.map(u64::from));
        let aggregates = ("number of aggregates", u32::MAX.into());
        let aggregate_call =
            Trigger::from_arguments("AGGREGATE", (freeze, stop, &args.aggregate_call), aggregates, setup)?;
        let total = (args.count_freeze, args.count_stop, &args.count_call);
        let count_call = Trigger::from_arguments("COUNT", total, ("count", u64::MAX), setup)?;
        setup.unbatched |= aggregate_call.is_some() || count_call.is_some();
        Ok(AggregateCounter {
            counts: Counts::new(Seed::new(0, 0)),
            seen: 0,
            total: 0,
            frozen: false,
            active: true,
            aggregate_call,
            count_call,
            args,
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let word = || cx.hash_seed();
        self.counts = Counts::new(Seed::new(word(), word()));
        [&self.aggregate_call, &self.count_call].into_iter().flatten().try_for_each(|call| call.check(cx))?;
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        if cx.outputs() < 2 {
            self.add_all(cx, batch.as_slice(), port == 1);
            return cx.emit(0, batch);
        }
        self.counts.find(batch.as_slice());
        for (index, packet) in batch.drain().enumerate() {
            let output = usize::from(!self.add(cx, &packet, port == 1, index));
            cx.send(output, packet);
        }
        cx.recycle(batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        let input = if cx.inputs() == 1 { 0 } else { port };
        cx.pull(input, most, into);
        self.add_all(cx, into.as_slice().get(before..).unwrap_or(&[]), port == 1);
    }

    fn inherit(&mut self, old: &mut AggregateCounter, _: &mut Context) {
        core::mem::swap(&mut self.counts, &mut old.counts);
        (self.seen, self.total) = (old.seen, old.total);
    }
}
