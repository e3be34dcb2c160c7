//! `StaticPullSwitch`: pulls from a fixed input.

use element::prelude::*;

use super::pullswitch::existing;

/// Answers pulls from one fixed input.
///
/// A negative INPUT, or one that does not exist, selects no input: pulls then return nothing. Use `PullSwitch` to
/// change the input at run time.
/// ```click
/// InfiniteSource(LIMIT 3) -> [0] s :: StaticPullSwitch(1);
/// InfiniteSource(LIMIT 4, STOP true) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "StaticPullSwitch",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    shards = "independent",
    see = "PullSwitch, StaticSwitch"
)]
pub struct StaticPullSwitchArgs {
    /// Selected input; negative for none.
    #[arg(position)]
    input: i32,
}

pub struct StaticPullSwitch {
    input: Option<usize>,
}

impl Element for StaticPullSwitch {
    type Args = StaticPullSwitchArgs;

    fn new(args: StaticPullSwitchArgs, setup: &mut Setup) -> Result<StaticPullSwitch, SetupError> {
        Ok(StaticPullSwitch { input: existing(args.input, setup.inputs()) })
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        if let Some(input) = self.input {
            cx.pull(input, most, into);
        }
    }
}
