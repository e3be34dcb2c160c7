//! `RoundRobinSwitch`: distributes packets over its outputs in turn.

use element::prelude::*;

/// Distributes packets over its outputs in turn: output 0, output 1 and so on, then output 0 again.
///
/// ## Differences
///
/// MAX and SPLITBATCH are arguments of FastClick. There, packets go to one output together with SPLITBATCH false, as many as arrive
/// together; here, each goes to the next output, so that the result does not depend on that.
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
pub struct RoundRobinSwitchArgs {
    /// Use only as many outputs, from output 0; by default all.
    #[arg(position)]
    max: Option<u32>,
    /// Accepted for compatibility with FastClick; packets are always distributed one by one.
    splitbatch: Option<bool>,
}

pub struct RoundRobinSwitch {
    /// The number of outputs in use.
    outputs: usize,
    next: usize,
}

impl Element for RoundRobinSwitch {
    type Args = RoundRobinSwitchArgs;

    fn new(args: RoundRobinSwitchArgs, setup: &mut Setup) -> Result<RoundRobinSwitch, SetupError> {
        if args.splitbatch == Some(false) {
            setup.warn("SPLITBATCH has no effect here: each packet goes to the next output");
        }
        let all = setup.outputs();
        let outputs = args.max.map_or(all, |max| max as usize);
        if args.max.is_some() && !(1..=all).contains(&outputs) {
            return Err(SetupError::argument(
                "MAX",
                format!("must be from 1 to {all}, the number of outputs"),
            ));
        }
        Ok(RoundRobinSwitch { outputs, next: 0 })
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            let output = self.next;
            self.next = if output + 1 < self.outputs { output + 1 } else { 0 };
            cx.send(output, packet);
        }
        cx.recycle(batch);
    }
}
