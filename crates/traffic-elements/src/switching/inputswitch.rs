//! `InputSwitch`: passes packets from a selectable input.

use element::prelude::*;

/// Passes packets from one selected input and drops the others. The handler `switch` changes the selection.
///
/// Packets from other inputs are dropped as `switched_off`; with a negative INPUT, all are. Use `PullSwitch` on pull
/// paths.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> t :: Tee -> s :: InputSwitch(1) -> c :: Counter -> Discard;
/// t[1] -> Truncate(10) -> [1]s;
/// ```
/// ```expect
/// s.switch = 1
/// c.byte_count = 30
/// s.losses = switched_off 3
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "InputSwitch",
    group = "switching",
    ports = "-/1",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "Switch, PullSwitch",
    drops = "switched_off"
)]
pub struct InputSwitchArgs {
    /// Selected input; negative for none. The keyword is Click's.
    #[arg(position, keyword = "OUTPUT", default = "0")]
    input: i32,
}

pub struct InputSwitch {
    input: i32,
}

impl Element for InputSwitch {
    type Args = InputSwitchArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("switch", "Selected input.", |switch| switch.input.to_string()),
        Handler::setting(
            "switch",
            "Selects an input; a number without an input selects none.",
            |switch, cx, value| {
                let input: i32 =
                    cx.argument(value).map_err(|_| HandlerError::new("InputSwitch input must be integer"))?;
                switch.input = if input >= cx.inputs() as i32 { -1 } else { input };
                Ok(())
            },
        ),
        Handler::read("config", "The configuration.", |switch| switch.input.to_string()),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: InputSwitchArgs, setup: &mut Setup) -> Result<InputSwitch, SetupError> {
        if args.input >= setup.inputs() as i32 {
            return Err(SetupError::new(format!("input must be < {}", setup.inputs())));
        }
        Ok(InputSwitch { input: args.input })
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        match usize::try_from(self.input) {
            Ok(input) if input == port => cx.emit(0, batch),
            _ => cx.drop_batch(batch, Reason::SWITCHED_OFF),
        }
    }
}
