//! `Switch`: sends packets to a selectable output.

use element::prelude::*;

/// Sends all packets to one selected output. The handler `switch` changes the selection.
///
/// With a negative OUTPUT, packets are dropped as `switched_off`.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> s :: Switch(1);
/// s[0] -> a :: Counter -> Discard;
/// s[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// s.switch = 1
/// a.count = 0
/// b.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Switch",
    group = "switching",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "StaticSwitch, PullSwitch, RoundRobinSwitch, StrideSwitch, HashSwitch, RandomSwitch",
    drops = "switched_off"
)]
pub struct SwitchArgs {
    /// Selected output; negative for none.
    #[arg(position, default = "0")]
    output: i32,
}

pub struct Switch {
    output: i32,
}

impl Element for Switch {
    type Args = SwitchArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("switch", "Selected output.", |switch| switch.output.to_string()),
        Handler::setting(
            "switch",
            "Selects an output; a number without an output selects none.",
            |switch, cx, value| {
                let output: i32 =
                    cx.argument(value).map_err(|_| HandlerError::new("Switch output must be integer"))?;
                switch.output = if output >= cx.outputs() as i32 { -1 } else { output };
                Ok(())
            },
        ),
        Handler::read("config", "The configuration.", |switch| switch.output.to_string()),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SwitchArgs, setup: &mut Setup) -> Result<Switch, SetupError> {
        if args.output >= setup.outputs() as i32 {
            return Err(SetupError::new(format!("output must be < {}", setup.outputs())));
        }
        Ok(Switch { output: args.output })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        match usize::try_from(self.output) {
            Ok(output) => cx.emit(output, batch),
            Err(_) => cx.drop_batch(batch, Reason::SWITCHED_OFF),
        }
    }
}
