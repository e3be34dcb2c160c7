//! `StrideSwitch`: distributes packets over its outputs in proportion to tickets.

use element::arguments::Raw;
use element::prelude::*;

use crate::scheduling::stride::{Stride, tickets};

/// Distributes packets over its outputs in proportion to their TICKETS, by stride scheduling.
///
/// If no output has tickets, packets are dropped as `no_tickets`.
/// ```click
/// InfiniteSource(LIMIT 6, STOP true) -> s :: StrideSwitch(2, 1);
/// s[0] -> a :: Counter -> Discard;
/// s[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// s.tickets1 = 1
/// a.count = 4
/// b.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "StrideSwitch",
    group = "switching",
    ports = "1/1-",
    processing = "h/h",
    see = "RoundRobinSwitch, Switch, HashSwitch, RandomSwitch, StrideSched",
    drops = "no_tickets"
)]
pub struct StrideSwitchArgs {
    /// Tickets of each output.
    #[arg(rest)]
    tickets: Vec<Raw>,
}

pub struct StrideSwitch {
    stride: Stride,
}

impl Element for StrideSwitch {
    type Args = StrideSwitchArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("config", "The configuration.", |switch| switch.stride.config())];
    const NUMBERED: Option<NumberedHandlers<Self>> = Some(NumberedHandlers {
        prefix: "tickets",
        summary: "The tickets of port N, at most 32768.",
        count: |switch| switch.stride.len(),
        read: |switch, port| switch.stride.tickets(port).to_string(),
        write: |switch, cx, port, value| switch.stride.write(cx, port, value),
    });
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: StrideSwitchArgs, setup: &mut Setup) -> Result<StrideSwitch, SetupError> {
        let tickets = tickets(&args.tickets, setup.outputs(), "output", setup)?;
        Ok(StrideSwitch { stride: Stride::new(&tickets) })
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            let mut output = None;
            self.stride.turn(|client| {
                output = Some(client);
                true
            });
            match output {
                Some(output) => cx.send(output, packet),
                None => cx.drop(packet, Reason::NO_TICKETS),
            }
        }
        cx.recycle(batch);
    }

    fn reconfigure(&mut self, args: StrideSwitchArgs, setup: &mut Setup) -> Result<(), SetupError> {
        self.stride.set_all(&tickets(&args.tickets, setup.outputs(), "output", setup)?);
        Ok(())
    }
}
