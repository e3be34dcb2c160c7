//! `RoundRobinSched`: round robin scheduling.

use element::Signal;
use element::prelude::*;

/// Round robin scheduler: answers each pull from the next input that has a packet.
///
/// It listens to the inputs' notifiers and skips inputs that are known to be empty.
/// ```click
/// InfiniteSource(LIMIT 3) -> [0] s :: RoundRobinSched;
/// InfiniteSource(LIMIT 3, STOP true) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 6
/// ```
#[derive(Args)]
#[element(
    name = "RoundRobinSched",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    shards = "independent",
    see = "PrioSched, StrideSched, DRRSched, RoundRobinSwitch"
)]
pub struct RoundRobinSchedArgs {}

pub struct RoundRobinSched {
    inputs: Vec<Input>,
    next: usize,
}

struct Input {
    signal: Signal,
    /// Packets of the current round in reverse order.
    pulled: Batch,
    /// Whether the inputs turned out to be empty during this call.
    dry: bool,
}

impl Input {
    fn is_open(&self) -> bool {
        !self.dry && self.signal.is_active()
    }
}

impl Element for RoundRobinSched {
    type Args = RoundRobinSchedArgs;

    fn new(_: RoundRobinSchedArgs, _: &mut Setup) -> Result<RoundRobinSched, SetupError> {
        Ok(RoundRobinSched { inputs: Vec::new(), next: 0 })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let input = |port| Input { signal: cx.upstream_signal(port), pulled: Batch::new(), dry: false };
        self.inputs = (0..cx.inputs()).map(input).collect();
        Ok(())
    }

    fn woken(&mut self, _: &mut Context) {}

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let mut left = most;
        for input in &mut self.inputs {
            input.dry = false;
        }
        // A round gives every input its share of what is wanted. If all have that much, the round is exactly what
        // single pulls would have brought; what some lack is asked of the others in the next round.
        while left > 0 {
            let got = self.pull_round(cx, left);
            self.distribute(got, into);
            if got == 0 && !self.inputs.iter().any(Input::is_open) {
                break;
            }
            left -= got;
        }
    }
}

impl RoundRobinSched {
    /// Pulls at most `wanted` packets, divided among the open inputs from the next one on; returns how many arrived.
    fn pull_round(&mut self, cx: &mut Context, wanted: usize) -> usize {
        let count = self.inputs.len();
        let open = self.inputs.iter().filter(|input| input.is_open()).count();
        let (Some(share), Some(mut extra)) = (wanted.checked_div(open), wanted.checked_rem(open)) else {
            return 0;
        };
        let mut got = 0;
        for port in (self.next..count).chain(0..self.next) {
            let Some(input) = self.inputs.get_mut(port).filter(|input| input.is_open()) else { continue };
            let quota = share + usize::from(extra > 0);
            extra = extra.saturating_sub(1);
            if quota > 0 {
                let came = cx.pull(port, quota, &mut input.pulled);
                input.pulled.as_mut_slice().reverse();
                input.dry = came < quota;
                got += came;
            } else {
                // With fewer wanted than there are inputs, those that are not asked may have packets yet.
                break;
            }
        }
        got
    }

    /// Moves `count` pulled packets to `into`, in round-robin order.
    fn distribute(&mut self, count: usize, into: &mut Batch) {
        let mut dealt = 0;
        while dealt < count {
            if let Some(packet) = self.inputs.get_mut(self.next).and_then(|input| input.pulled.pop()) {
                into.push(packet);
                dealt += 1;
            }
            self.next = if self.next + 1 < self.inputs.len() { self.next + 1 } else { 0 };
        }
    }
}
