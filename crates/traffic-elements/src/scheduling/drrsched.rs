//! `DRRSched`: deficit round robin scheduling.

use element::prelude::*;
use element::{Direction, Signal};

/// Deficit round robin scheduler: gives every input the same share of bytes (Shreedhar and Varghese, 1995).
///
/// Each input has a deficit counter. In each round the counter grows by QUANTUM bytes, and the input sends packets
/// while their lengths fit into it. A packet that does not fit waits in the element for the next round. The counter of
/// an empty input is reset to zero. The element listens to the inputs' notifiers.
/// ```click
/// InfiniteSource(LENGTH 100, LIMIT 8, STOP true) -> [0] s :: DRRSched(200);
/// InfiniteSource(LENGTH 200, LIMIT 4) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.byte_count = 1600
/// c.count = 12
/// ```
#[derive(Args)]
#[element(
    name = "DRRSched",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    notifies = "empty",
    shards = "independent",
    see = "PrioSched, RoundRobinSched, StrideSched",
    fates = "waiting"
)]
pub struct DRRSchedArgs {
    /// Bytes that each input may send per round, in addition to its deficit.
    #[arg(position, default = "500")]
    quantum: i32,
}

pub struct DRRSched {
    quantum: u64,
    inputs: Vec<Input>,
    next: usize,
}

struct Input {
    signal: Signal,
    /// A packet that exceeds the deficit.
    head: Option<Packet>,
    /// Since when it waits.
    since: Timestamp,
    /// Bytes that the input may send.
    deficit: u64,
}

impl Element for DRRSched {
    type Args = DRRSchedArgs;

    fn new(args: DRRSchedArgs, _: &mut Setup) -> Result<DRRSched, SetupError> {
        let quantum = u64::try_from(args.quantum).ok().filter(|quantum| *quantum > 0);
        let quantum = quantum.ok_or_else(|| SetupError::new("bad QUANTUM"))?;
        Ok(DRRSched { quantum, inputs: Vec::new(), next: 0 })
    }

    fn waiting(&self, waiting: &mut Waiting) {
        for input in &self.inputs {
            waiting.add(usize::from(input.head.is_some()), Some(input.since));
        }
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let input =
            |port| Input { signal: cx.upstream_signal(port), head: None, since: Timestamp::ZERO, deficit: 0 };
        self.inputs = (0..cx.inputs()).map(input).collect();
        cx.set_signal(Direction::Empty, true);
        Ok(())
    }

    fn woken(&mut self, cx: &mut Context) {
        cx.set_signal(Direction::Empty, true);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let mut pulled = cx.batch();
        for number in 0..most {
            let Some(packet) = self.pull_one(cx, &mut pulled) else { break };
            if number == 0 {
                cx.set_signal(Direction::Empty, true);
            }
            into.push(packet);
        }
        cx.recycle(pulled);
    }
}

impl DRRSched {
    /// Tries each input once, starting with the one served last. `pulled` is empty.
    fn pull_one(&mut self, cx: &mut Context, pulled: &mut Batch) -> Option<Packet> {
        let count = self.inputs.len();
        let mut active = false;
        for _ in 0..count {
            let input = self.inputs.get_mut(self.next)?;
            let mut packet = input.head.take();
            if packet.is_some() {
                active = true;
            } else if input.signal.is_active() {
                cx.pull(self.next, 1, pulled);
                packet = pulled.pop();
                input.since = cx.steady();
                active = true;
            }
            match packet {
                None => input.deficit = 0,
                Some(packet) if packet.len() as u64 <= input.deficit => {
                    input.deficit -= packet.len() as u64;
                    return Some(packet);
                }
                waiting => input.head = waiting,
            }
            self.next = if self.next + 1 < count { self.next + 1 } else { 0 };
            if let Some(input) = self.inputs.get_mut(self.next) {
                input.deficit = input.deficit.saturating_add(self.quantum);
            }
        }
        cx.set_signal(Direction::Empty, active);
        None
    }
}
