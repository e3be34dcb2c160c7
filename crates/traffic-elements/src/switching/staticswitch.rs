//! `StaticSwitch`: sends packets to a fixed output.

use element::prelude::*;

/// Sends all packets to one fixed output.
///
/// If OUTPUT is negative or does not exist, packets are dropped as `switched_off`. Use `Switch` to change the output at
/// run time.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> s :: StaticSwitch(1);
/// s[0] -> a :: Counter -> Discard;
/// s[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 0
/// b.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "StaticSwitch",
    group = "switching",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "Switch, StaticPullSwitch",
    drops = "switched_off"
)]
pub struct StaticSwitchArgs {
    /// Selected output; negative for none.
    #[arg(position)]
    output: i32,
}

pub struct StaticSwitch {
    output: Option<usize>,
}

impl Element for StaticSwitch {
    type Args = StaticSwitchArgs;

    fn new(args: StaticSwitchArgs, setup: &mut Setup) -> Result<StaticSwitch, SetupError> {
        let output = usize::try_from(args.output).ok().filter(|output| *output < setup.outputs());
        Ok(StaticSwitch { output })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        match self.output {
            Some(output) => cx.emit(output, batch),
            None => cx.drop_batch(batch, Reason::SWITCHED_OFF),
        }
    }
}
