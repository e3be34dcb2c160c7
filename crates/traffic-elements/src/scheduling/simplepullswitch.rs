//! `SimplePullSwitch`: pulls from a selectable input, without a notifier of its own.

use element::prelude::*;

use super::pullswitch::existing;

/// Answers pulls from one selected input. The handler `switch` changes the selection.
///
/// A negative INPUT, or one that does not exist, selects no input: pulls then return nothing. Downstream tasks sleep
/// only while all inputs are empty; with `PullSwitch` they sleep while the selected one is.
/// ```click
/// InfiniteSource(LIMIT 3) -> [0] s :: SimplePullSwitch(1);
/// InfiniteSource(LIMIT 4, STOP true) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// s.switch = 1
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "SimplePullSwitch",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    shards = "independent",
    see = "PullSwitch, StaticPullSwitch, Switch"
)]
pub struct SimplePullSwitchArgs {
    /// Selected input; negative for none.
    #[arg(position, default = "0")]
    input: i32,
}

pub struct SimplePullSwitch {
    input: Option<usize>,
}

impl Element for SimplePullSwitch {
    type Args = SimplePullSwitchArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("switch", "Selected input; -1 for none.", SimplePullSwitch::text),
        Handler::setting(
            "switch",
            "Selects an input; a number without an input selects none.",
            |switch, cx, value| {
                let input: i32 = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
                switch.input = existing(input, cx.inputs());
                Ok(())
            },
        ),
        Handler::read("config", "The configuration.", SimplePullSwitch::text),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SimplePullSwitchArgs, setup: &mut Setup) -> Result<SimplePullSwitch, SetupError> {
        Ok(SimplePullSwitch { input: existing(args.input, setup.inputs()) })
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        if let Some(input) = self.input {
            cx.pull(input, most, into);
        }
    }
}

impl SimplePullSwitch {
    fn text(&self) -> String {
        self.input.map_or_else(|| "-1".to_string(), |input| input.to_string())
    }
}
