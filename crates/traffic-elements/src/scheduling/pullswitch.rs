//! `PullSwitch`: pulls from a selectable input.

use element::prelude::*;
use element::{Direction, Signal};

/// Answers pulls from one selected input. The handler `switch` changes the selection.
///
/// A negative INPUT, or one that does not exist, selects no input: pulls then return nothing. Downstream tasks sleep
/// while the selected input is empty, even if others have packets.
/// ```click
/// InfiniteSource(LIMIT 3) -> [0] s :: PullSwitch(1);
/// InfiniteSource(LIMIT 4, STOP true) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// s.switch = 1
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "PullSwitch",
    group = "scheduling",
    ports = "-/1",
    processing = "l/l",
    notifies = "empty",
    shards = "independent",
    see = "StaticPullSwitch, PrioSched, RoundRobinSched, StrideSched, Switch"
)]
pub struct PullSwitchArgs {
    /// Selected input; negative for none.
    #[arg(position, default = "0")]
    input: i32,
}

pub struct PullSwitch {
    input: Option<usize>,
    signals: Vec<Signal>,
}

impl Element for PullSwitch {
    type Args = PullSwitchArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("switch", "Selected input; -1 for none.", PullSwitch::text),
        Handler::setting(
            "switch",
            "Selects an input; a number without an input selects none.",
            |switch, cx, value| {
                let input = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
                switch.choose(cx, input);
                Ok(())
            },
        ),
        Handler::read("config", "The configuration.", PullSwitch::text),
        Handler::setting("config", "Selects an input.", |switch, cx, value| {
            let args: PullSwitchArgs = cx.arguments(value)?;
            switch.choose(cx, args.input);
            Ok(())
        }),
    ];

    fn new(args: PullSwitchArgs, setup: &mut Setup) -> Result<PullSwitch, SetupError> {
        Ok(PullSwitch { input: existing(args.input, setup.inputs()), signals: Vec::new() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signals = (0..cx.inputs()).map(|port| cx.upstream_signal(port)).collect();
        cx.set_signal(Direction::Empty, self.input.is_some());
        Ok(())
    }

    fn woken(&mut self, cx: &mut Context) {
        if self.is_active() {
            cx.set_signal(Direction::Empty, true);
        }
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let came = self.input.map_or(0, |input| cx.pull(input, most, into));
        if came > 0 {
            cx.set_signal(Direction::Empty, true);
        }
        if came < most && !self.is_active() {
            cx.set_signal(Direction::Empty, false);
        }
    }
}

impl PullSwitch {
    fn text(&self) -> String {
        self.input.map_or_else(|| "-1".to_string(), |input| input.to_string())
    }

    fn choose(&mut self, cx: &Context, input: i32) {
        self.input = existing(input, cx.inputs());
        if self.input.is_none() {
            cx.set_signal(Direction::Empty, false);
        } else if self.is_active() {
            cx.set_signal(Direction::Empty, true);
        }
    }

    /// Whether the selected input may have packets.
    fn is_active(&self) -> bool {
        self.input.and_then(|input| self.signals.get(input)).is_some_and(Signal::is_active)
    }
}

/// The input number as an index, if that input exists.
pub(super) fn existing(input: i32, inputs: usize) -> Option<usize> {
    usize::try_from(input).ok().filter(|input| *input < inputs)
}
