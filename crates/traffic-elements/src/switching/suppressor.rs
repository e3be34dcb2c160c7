//! `Suppressor`: closes and opens single ports.

use element::prelude::*;

/// Passes packets from each input to the output with the same number. Single ports can be closed.
///
/// A packet pushed to a closed port is dropped as `suppressed`; a pull from it returns nothing. All ports start open.
/// The `activeN` handlers close and open them.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> s :: Suppressor -> a :: Counter -> Discard;
/// Idle -> [1] s [1] -> Discard;
/// ```
/// ```expect
/// s.active0 = true
/// a.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Suppressor",
    group = "switching",
    ports = "-/=",
    flow = "#/#",
    order_insensitive,
    shards = "independent",
    see = "Switch, Bypass",
    drops = "suppressed"
)]
pub struct SuppressorArgs {}

pub struct Suppressor {
    /// Whether each port is closed.
    closed: Vec<bool>,
}

impl Element for Suppressor {
    type Args = SuppressorArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::action("reset", "Opens all ports.", |suppressor, _, _| {
            suppressor.closed.fill(false);
            Ok(())
        })];
    const NUMBERED: Option<NumberedHandlers<Self>> = Some(NumberedHandlers {
        prefix: "active",
        summary: "Whether port N is open.",
        count: |suppressor| suppressor.closed.len(),
        read: |suppressor, port| (!suppressor.closed[port]).to_string(),
        write: |suppressor, cx, port, value| {
            let active: bool = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            suppressor.closed[port] = !active;
            Ok(())
        },
    });

    fn new(_: SuppressorArgs, setup: &mut Setup) -> Result<Suppressor, SetupError> {
        Ok(Suppressor { closed: vec![false; setup.outputs()] })
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        if self.closed.get(port).is_some_and(|closed| *closed) {
            return cx.drop_batch(batch, Reason::SUPPRESSED);
        }
        cx.emit(port, batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        if !self.closed.get(port).is_some_and(|closed| *closed) {
            cx.pull(port, most, into);
        }
    }
}
