//! `StrideSched`: stride scheduling of its inputs.

use element::Signal;
use element::arguments::Raw;
use element::prelude::*;

use super::stride::{Stride, tickets};

/// Stride scheduler: answers pulls from its inputs in proportion to their TICKETS.
///
/// An input without a packet loses its turn to the next one.
/// ```click
/// InfiniteSource(LIMIT 4) -> [0] s :: StrideSched(2, 1);
/// InfiniteSource(LIMIT 4, STOP true) -> [1] s;
/// s -> c :: Counter -> Discard;
/// ```
/// ```expect
/// s.tickets0 = 2
/// s.config = 2, 1
/// c.count = 8
/// ```
#[derive(Args)]
#[element(
    name = "StrideSched",
    group = "scheduling",
    ports = "1-/1",
    processing = "l/l",
    shards = "independent",
    see = "PrioSched, RoundRobinSched, DRRSched, StrideSwitch"
)]
pub struct StrideSchedArgs {
    /// Tickets of each input.
    #[arg(rest)]
    tickets: Vec<Raw>,
}

pub struct StrideSched {
    stride: Stride,
    signals: Vec<Signal>,
}

impl Element for StrideSched {
    type Args = StrideSchedArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("config", "The configuration.", |sched| sched.stride.config())];
    const NUMBERED: Option<NumberedHandlers<Self>> = Some(NumberedHandlers {
        prefix: "tickets",
        summary: "The tickets of port N, at most 32768.",
        count: |sched| sched.stride.len(),
        read: |sched, port| sched.stride.tickets(port).to_string(),
        write: |sched, cx, port, value| sched.stride.write(cx, port, value),
    });
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: StrideSchedArgs, setup: &mut Setup) -> Result<StrideSched, SetupError> {
        let tickets = tickets(&args.tickets, setup.inputs(), "input", setup)?;
        Ok(StrideSched { stride: Stride::new(&tickets), signals: Vec::new() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.signals = (0..cx.inputs()).map(|port| cx.upstream_signal(port)).collect();
        Ok(())
    }

    fn woken(&mut self, _: &mut Context) {}

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let StrideSched { stride, signals } = self;
        let is_active = |port: usize| signals.get(port).is_some_and(Signal::is_active);
        if let Some(only) = stride.only() {
            // Whose turn it is is no question, so one call may bring them all.
            if is_active(only) {
                cx.pull(only, most, into);
            }
            return;
        }
        for _ in 0..most {
            let mut found = false;
            stride.turn(|port| {
                found = is_active(port) && cx.pull(port, 1, into) > 0;
                found
            });
            if !found {
                break;
            }
        }
    }

    fn reconfigure(&mut self, args: StrideSchedArgs, setup: &mut Setup) -> Result<(), SetupError> {
        self.stride.set_all(&tickets(&args.tickets, setup.inputs(), "input", setup)?);
        Ok(())
    }
}
