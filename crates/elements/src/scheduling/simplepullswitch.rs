//! `SimplePullSwitch`: pulls from a settable input, without notification of its own.

use element::prelude::*;

use super::pullswitch::existing;

/// Answers pulls from one input: INPUT, which the handler `switch` changes.
///
/// With a negative INPUT, or one that does not exist, pulls yield none. A puller sleeps only while all inputs are
/// empty; with `PullSwitch` it does while the chosen one is.
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
    see = "PullSwitch, StaticPullSwitch, Switch"
)]
pub struct SimplePullSwitchArgs {
    /// The input; a negative one is none.
    #[arg(position, default = "0")]
    input: i32,
}

/// The element.
pub struct SimplePullSwitch {
    input: Option<usize>,
}

impl Element for SimplePullSwitch {
    type Args = SimplePullSwitchArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("switch", "The input, -1 for none.", SimplePullSwitch::text),
        Handler::write("switch", "Sets the input; one that does not exist is none.", |switch, cx, value| {
            let input: i32 = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            switch.input = existing(input, cx.inputs());
            Ok(())
        }),
        Handler::read("config", "The configuration.", SimplePullSwitch::text),
    ];
    const LIVE: bool = true;

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
