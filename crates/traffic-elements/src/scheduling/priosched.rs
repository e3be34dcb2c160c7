//! `PrioSched`: strict priority scheduling.

use element::Signal;
use element::prelude::*;

/// Strict priority scheduler: answers each pull from the lowest-numbered input that has a packet.
///
/// It listens to the inputs' notifiers and skips inputs that are known to be empty.
/// ```click
/// InfiniteSource(LIMIT 3) -> [0] s :: PrioSched;
/// InfiniteSource(LIMIT 3, STOP true) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 6
/// ```
#[derive(Args)]
#[element(
    name = "PrioSched",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    shards = "independent",
    see = "RoundRobinSched, StrideSched, DRRSched"
)]
pub struct PrioSchedArgs {}

pub struct PrioSched {
    signals: Vec<Signal>,
}

impl Element for PrioSched {
    type Args = PrioSchedArgs;

    fn new(_: PrioSchedArgs, _: &mut Setup) -> Result<PrioSched, SetupError> {
        Ok(PrioSched { signals: Vec::new() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signals = (0..cx.inputs()).map(|port| cx.upstream_signal(port)).collect();
        Ok(())
    }

    fn woken(&mut self, _: &mut Context) {}

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let mut left = most;
        for (port, signal) in self.signals.iter().enumerate() {
            if left == 0 {
                break;
            }
            if signal.is_active() {
                left -= cx.pull(port, left, into).min(left);
            }
        }
    }
}
