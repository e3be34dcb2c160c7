//! `Counter`: counts packets and bytes, and their rates.

use element::arguments::{ArgumentError, FromArgument, HandlerCall};
use element::prelude::*;
use element::{HandlerInfo, HandlerKind};
use packet::{MAX_BATCH, MAX_CAPACITY};

use super::rate::Rate;

/// Counts packets and bytes, and measures their rates.
///
/// COUNT_CALL and BYTE_COUNT_CALL write a handler when a count is reached, before the packet that reached it goes on.
/// Rates are exponentially weighted moving averages over a few hundredths of a second.
/// ```click
/// InfiniteSource(LENGTH 64, LIMIT 10) -> c :: Counter(COUNT_CALL 8 stop) -> Discard;
/// ```
/// ```expect
/// c.count = 8
/// c.byte_count = 512
/// ```
#[derive(Args)]
#[element(
    name = "Counter",
    group = "counting",
    ports = "1/1",
    processing = "a/a",
    order_insensitive,
    shards = "sum",
    sums = "count, byte_count, batches, rate, bit_rate, byte_rate",
    see = "AverageCounter, Print"
)]
pub struct CounterArgs {
    /// Packet count, and the write handler to call when it is reached.
    count_call: Option<Trigger>,
    /// Byte count, and the write handler to call when it is reached or exceeded.
    byte_count_call: Option<Trigger>,
}

/// A count, and the handler to call when it is reached.
#[derive(Clone, Debug)]
struct Trigger {
    at: u64,
    call: Option<HandlerCall>,
    done: bool,
}

impl FromArgument for Trigger {
    const KIND: &'static str = "count and handler call";

    fn from_argument(text: &str, setup: &Setup) -> Result<Trigger, ArgumentError> {
        let mut rest = text;
        let count = element::text::next_word(&mut rest).unwrap_or("");
        let at = match u64::from_argument(count, setup) {
            Ok(at) => at,
            Err(ArgumentError::OutOfRange(_)) => u64::MAX,
            Err(_) => return Err(ArgumentError::SemanticWithKeyword("type mismatch".into())),
        };
        let call = if rest.is_empty() { None } else { Some(HandlerCall::from_argument(rest, setup)?) };
        Ok(Trigger { at, call, done: false })
    }
}

impl Trigger {
    fn check(trigger: &Option<Trigger>, cx: &Context) -> Result<(), SetupError> {
        match trigger.as_ref().and_then(|trigger| trigger.call.as_ref()) {
            Some(call) => call.check(cx),
            None if trigger.is_some() => Err(SetupError::new("syntax error")),
            None => Ok(()),
        }
    }

    /// The count that is left until it calls its handler, if it is still to do so.
    fn left(trigger: &Option<Trigger>, count: u64) -> Option<u64> {
        let trigger = trigger.as_ref().filter(|trigger| !trigger.done)?;
        Some(trigger.at.saturating_sub(count))
    }

    fn pull(&mut self, cx: &Context) {
        self.done = true;
        if let Some(call) = &self.call {
            call.defer(cx);
        }
    }
}

pub struct Counter {
    count: u64,
    bytes: u64,
    batches: u64,
    rate: Rate<10>,
    byte_rate: Rate<4>,
    /// The last limit that it set to the length of batches.
    most: usize,
    args: CounterArgs,
}

impl Counter {
    #[inline]
    fn add(&mut self, cx: &Context, packets: &[Packet]) {
        let now = cx.steady();
        self.batches += 1;
        let bytes = packets.iter().map(|packet| packet.len() as u64).sum();
        if self.has_calls() {
            self.add_with_calls(cx, packets, bytes);
        } else {
            self.count += packets.len() as u64;
            self.bytes += bytes;
        }
        self.rate.count(now, packets.len() as u64);
        self.byte_rate.count(now, bytes);
    }

    fn has_calls(&self) -> bool {
        self.args.count_call.is_some() || self.args.byte_count_call.is_some()
    }

    #[inline(never)]
    fn add_with_calls(&mut self, cx: &Context, packets: &[Packet], bytes: u64) {
        if packets.len() < self.packets_left() {
            self.count += packets.len() as u64;
            self.bytes += bytes;
        } else {
            for packet in packets {
                self.count += 1;
                self.bytes += packet.len() as u64;
                self.trigger(cx);
            }
        }
        self.limit_batches(cx);
    }

    /// The number of packets with the last of which a call is due, if they are as long as can be.
    fn packets_left(&self) -> usize {
        let packets = match self.args.count_call {
            // A count that has passed is not reached any more.
            Some(Trigger { at, .. }) if at <= self.count => None,
            _ => Trigger::left(&self.args.count_call, self.count),
        };
        let bytes = Trigger::left(&self.args.byte_count_call, self.bytes);
        let packets_of_bytes = bytes.map(|bytes| bytes.div_ceil(MAX_CAPACITY as u64));
        let least = packets.into_iter().chain(packets_of_bytes).min();
        least.map_or(usize::MAX, |least| usize::try_from(least).unwrap_or(usize::MAX))
    }

    /// Limits batches, so that the packet with which a call is due comes alone.
    fn limit_batches(&mut self, cx: &Context) {
        let most = self.packets_left().saturating_sub(1).clamp(1, MAX_BATCH);
        if most != self.most {
            self.most = most;
            cx.limit_batches(most);
        }
    }

    /// Has batches limited after a handler has changed a call.
    fn change_calls(&mut self, cx: &Context) {
        if cx.gets_each_packet_once() {
            self.limit_batches(cx);
        }
    }

    fn trigger(&mut self, cx: &Context) {
        let (count, bytes) = (self.count, self.bytes);
        if let Some(trigger) = self.args.count_call.as_mut().filter(|call| !call.done && call.at == count) {
            trigger.pull(cx);
        }
        if let Some(trigger) =
            self.args.byte_count_call.as_mut().filter(|call| !call.done && bytes >= call.at)
        {
            trigger.pull(cx);
        }
    }

    fn reset(&mut self, cx: &Context) {
        (self.count, self.bytes, self.batches) = (0, 0, 0);
        for trigger in [&mut self.args.count_call, &mut self.args.byte_count_call].into_iter().flatten() {
            trigger.done = false;
        }
        if self.has_calls() {
            self.limit_batches(cx);
        }
    }
}

/// Parses a trigger from a handler's value.
fn trigger(cx: &Context, value: &str, handler: &str, old: &Option<Trigger>) -> Result<Trigger, HandlerError> {
    cx.require_one_shard(handler)?;
    let problem = format!("'{handler}' first word should be unsigned (count)");
    let mut trigger: Trigger = cx.argument(value).map_err(|_| HandlerError::new(problem))?;
    if trigger.call.is_none() {
        trigger.call = old.as_ref().and_then(|old| old.call.clone());
    }
    let Some(call) = &trigger.call else {
        return Err(HandlerError::with_code(HandlerError::UNSPECIFIED, "syntax error"));
    };
    let target = cx.runtime().resolve(cx.element(), &call.path).map_err(HandlerError::new)?;
    let can = |info: &HandlerInfo| info.name == target.handler && info.kind == HandlerKind::Write;
    // Elements may have handlers that they do not list.
    if target.element.is_none() && !cx.runtime().handlers(None).iter().any(can) {
        return Err(HandlerError::new(format_args!("no ‘{}’ write handler", target.handler)));
    }
    Ok(trigger)
}

impl Element for Counter {
    type Args = CounterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("count", "Packets since the last reset.", |counter| counter.count.to_string()),
        Handler::read("byte_count", "Bytes since the last reset.", |counter| counter.bytes.to_string()),
        Handler::read(
            "batches",
            "Batches since the last reset: `count` over this is the mean batch length.",
            |counter| counter.batches.to_string(),
        ),
        Handler::read_with("rate", "Recent packets per second.", |counter, cx, _| {
            Ok(counter.rate.text(cx.steady()))
        }),
        Handler::read_with("bit_rate", "Recent bits per second.", |counter, cx, _| {
            Ok(counter.byte_rate.text_times(cx.steady(), 8))
        }),
        Handler::read_with("byte_rate", "Recent bytes per second.", |counter, cx, _| {
            Ok(counter.byte_rate.text(cx.steady()))
        }),
        Handler::action("reset", "Resets the counts to zero.", |counter, cx, _| {
            counter.reset(cx);
            Ok(())
        }),
        Handler::action("reset_counts", "Resets the counts to zero.", |counter, cx, _| {
            counter.reset(cx);
            Ok(())
        }),
        Handler::read("count_call", "The count that triggers COUNT_CALL.", |counter| {
            counter.args.count_call.as_ref().map_or_else(String::new, |trigger| trigger.at.to_string())
        }),
        Handler::setting(
            "count_call",
            "Sets COUNT_CALL; without a handler in the value, the previous one stays.",
            |counter, cx, value| {
                counter.args.count_call = Some(trigger(cx, value, "count_call", &counter.args.count_call)?);
                counter.change_calls(cx);
                Ok(())
            },
        ),
        Handler::setting(
            "byte_count_call",
            "Sets BYTE_COUNT_CALL; without a handler in the value, the previous one stays.",
            |counter, cx, value| {
                let new = trigger(cx, value, "byte_count_call", &counter.args.byte_count_call)?;
                counter.args.byte_count_call = Some(new);
                counter.change_calls(cx);
                Ok(())
            },
        ),
    ];

    fn new(args: CounterArgs, setup: &mut Setup) -> Result<Counter, SetupError> {
        let (rate, byte_rate) = (Rate::new(), Rate::new());
        let counter = Counter { count: 0, bytes: 0, batches: 0, rate, byte_rate, most: MAX_BATCH, args };
        if counter.has_calls() {
            setup.require_one_shard("acting on other elements while packets pass")?;
        }
        Ok(counter)
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if self.has_calls() && !cx.gets_each_packet_once() {
            cx.needs_single_packets();
        } else if self.has_calls() {
            self.limit_batches(cx);
        }
        cx.needs_initialization(self.has_calls());
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        Trigger::check(&self.args.count_call, cx)?;
        Trigger::check(&self.args.byte_count_call, cx)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        self.add(cx, batch.as_slice());
        cx.emit(0, batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let before = into.len();
        cx.pull(0, most, into);
        self.add(cx, into.as_slice().get(before..).unwrap_or(&[]));
    }

    fn inherit(&mut self, old: &mut Counter, cx: &mut Context) {
        (self.count, self.bytes, self.batches) = (old.count, old.bytes, old.batches);
        (self.rate, self.byte_rate) = (old.rate, old.byte_rate);
        if self.has_calls() {
            self.limit_batches(cx);
        }
    }
}
