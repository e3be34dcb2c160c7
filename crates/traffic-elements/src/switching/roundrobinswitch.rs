//! `RoundRobinSwitch`: distributes packets over its outputs in turn.

use element::prelude::*;

/// Distributes packets over its outputs in turn: output 0, output 1 and so on, then output 0 again.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> s :: RoundRobinSwitch;
/// s[0] -> a :: Counter -> Discard;
/// s[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 3
/// b.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "RoundRobinSwitch",
    group = "switching",
    ports = "1/1-",
    processing = "h/h",
    see = "Switch, StrideSwitch, HashSwitch, RandomSwitch, RoundRobinSched"
)]
pub struct RoundRobinSwitchArgs {}

pub struct RoundRobinSwitch {
    next: usize,
}

impl Element for RoundRobinSwitch {
    type Args = RoundRobinSwitchArgs;

    fn new(_: RoundRobinSwitchArgs, _: &mut Setup) -> Result<RoundRobinSwitch, SetupError> {
        Ok(RoundRobinSwitch { next: 0 })
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        let outputs = cx.outputs();
        for packet in batch.drain() {
            let output = self.next;
            self.next = if output + 1 < outputs { output + 1 } else { 0 };
            cx.send(output, packet);
        }
        cx.recycle(batch);
    }
}
