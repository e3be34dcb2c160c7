//! `TimeSortedSched`: merges its inputs by timestamp.

use element::prelude::*;
use element::{Direction, Signal};

/// Merges its inputs by time: answers each pull with the packet that has the earliest timestamp.
///
/// Each input should be in order. The element holds up to BUFFER packets of each input, which corrects small disorder;
/// the handler `well_ordered` tells whether the output has been in order. With STOP true, it stops the driver when no
/// input has packets and no notifier announces any. It listens to the inputs' notifiers.
/// ```click
/// InfiniteSource(LIMIT 2) -> SetTimestamp(5) -> [0] s :: TimeSortedSched(STOP true);
/// InfiniteSource(LIMIT 2) -> SetTimestamp(3) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 4
/// s.well_ordered = true
/// ```
#[derive(Args)]
#[element(
    name = "TimeSortedSched",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    notifies = "empty",
    see = "FromDump, SetTimestamp",
    fates = "waiting"
)]
pub struct TimeSortedSchedArgs {
    /// Stop the driver when all inputs have ended.
    #[arg(default = "false")]
    stop: bool,
    /// Packets to hold per input; at least 1.
    #[arg(default = "1")]
    buffer: i32,
}

pub struct TimeSortedSched {
    stop: bool,
    buffer: usize,
    inputs: Vec<Input>,
    /// Inputs with free space.
    ready: Vec<usize>,
    heap: Heap,
    last: Timestamp,
    well_ordered: bool,
}

struct Input {
    signal: Signal,
    /// Packets that it may still accept.
    space: usize,
}

impl Element for TimeSortedSched {
    type Args = TimeSortedSchedArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("well_ordered", "Whether the output has been in order so far.", |sched| {
            sched.well_ordered.to_string()
        })];

    fn new(args: TimeSortedSchedArgs, _: &mut Setup) -> Result<TimeSortedSched, SetupError> {
        let buffer = usize::try_from(args.buffer).ok().filter(|buffer| *buffer > 0);
        Ok(TimeSortedSched {
            stop: args.stop,
            buffer: buffer.ok_or_else(|| SetupError::new("BUFFER must be at least 1"))?,
            inputs: Vec::new(),
            ready: Vec::new(),
            heap: Heap::default(),
            last: Timestamp::ZERO,
            well_ordered: true,
        })
    }

    fn waiting(&self, waiting: &mut Waiting) {
        for entry in &self.heap.entries {
            waiting.add(1, Some(entry.since));
        }
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let input = |port| Input { signal: cx.upstream_signal(port), space: self.buffer };
        self.inputs = (0..cx.inputs()).map(input).collect();
        self.ready = (0..self.inputs.len()).collect();
        cx.set_signal(Direction::Empty, true);
        Ok(())
    }

    fn woken(&mut self, cx: &mut Context) {
        cx.set_signal(Direction::Empty, true);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        for _ in 0..most {
            let active = self.fill(cx);
            cx.set_signal(Direction::Empty, active || !self.heap.entries.is_empty());
            match self.take() {
                Some(packet) => into.push(packet),
                None => {
                    if self.stop && !active {
                        cx.stop();
                    }
                    break;
                }
            }
        }
    }
}

impl TimeSortedSched {
    /// Pulls packets into the free space; returns whether any input announces more.
    fn fill(&mut self, cx: &mut Context) -> bool {
        let mut active = false;
        let mut batch = cx.batch();
        for index in (0..self.ready.len()).rev() {
            let Some(&port) = self.ready.get(index) else { continue };
            let Some(input) = self.inputs.get_mut(port).filter(|input| input.signal.is_active()) else {
                continue;
            };
            active = true;
            cx.pull(port, input.space, &mut batch);
            input.space = input.space.saturating_sub(batch.len());
            let since = cx.steady();
            for packet in batch.drain() {
                self.heap.push(Entry { time: packet.timestamp(), port, since, packet });
            }
            if input.space == 0 {
                self.ready.swap_remove(index);
            }
        }
        cx.recycle(batch);
        active
    }

    /// Removes the earliest packet.
    fn take(&mut self) -> Option<Packet> {
        let Entry { time, port, packet, .. } = self.heap.pop()?;
        if !time.is_zero() {
            if !self.last.is_zero() && time < self.last {
                self.well_ordered = false;
            }
            self.last = time;
        }
        if let Some(input) = self.inputs.get_mut(port) {
            input.space += 1;
            if input.space == 1 {
                self.ready.push(port);
            }
        }
        Some(packet)
    }
}

struct Entry {
    time: Timestamp,
    port: usize,
    /// Since when the packet waits.
    since: Timestamp,
    packet: Packet,
}

/// Binary heap with the earliest packet first. The order of packets with equal times must be Click's, so the standard
/// library's heap does not fit.
#[derive(Default)]
struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        let mut index = self.entries.len() - 1;
        while index > 0 && self.is_before(index, (index - 1) / 2) {
            self.entries.swap(index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        if self.entries.is_empty() {
            return None;
        }
        let first = self.entries.swap_remove(0);
        let mut index = 0;
        loop {
            let mut earliest = index;
            for child in [2 * index + 1, 2 * index + 2] {
                if self.is_before(child, earliest) {
                    earliest = child;
                }
            }
            if earliest == index {
                return Some(first);
            }
            self.entries.swap(index, earliest);
            index = earliest;
        }
    }

    /// Whether the entry at `one` exists and is earlier than the one at `other`.
    fn is_before(&self, one: usize, other: usize) -> bool {
        match (self.entries.get(one), self.entries.get(other)) {
            (Some(one), Some(other)) => one.time < other.time,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Pool;

    #[test]
    fn the_heap_sorts() {
        let pool = Pool::new(100);
        let mut heap = Heap::default();
        for (port, time) in [5, 1, 4, 1, 3, 9, 2, 6].into_iter().enumerate() {
            let packet = pool.packet(b"x").expect("a fresh pool has packets");
            heap.push(Entry { time: Timestamp::from_nanos(time), port, since: Timestamp::ZERO, packet });
        }
        let times: Vec<i64> = core::iter::from_fn(|| heap.pop()).map(|entry| entry.time.nanos()).collect();
        assert_eq!(times, [1, 1, 2, 3, 4, 5, 6, 9]);
    }
}
