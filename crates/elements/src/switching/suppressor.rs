//! `Suppressor`: closes and opens single ports.

use element::prelude::*;
use element::{HandlerInfo, HandlerKind};

/// Passes packets from each input to the output of the same number, unless that port is suppressed.
///
/// The handlers `active0`, `active1` ... read and set whether a port is open. Packets pushed to a closed one are
/// dropped as `suppressed`; pulls yield none. All ports are open at first.
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
    commutes,
    see = "Switch, Bypass"
)]
pub struct SuppressorArgs {}

/// The element.
pub struct Suppressor {
    /// For each port whether it is closed.
    closed: Vec<bool>,
}

impl Element for Suppressor {
    type Args = SuppressorArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::write("reset", "Opens all ports.", |suppressor, _, _| {
            suppressor.closed.fill(false);
            Ok(())
        })];

    fn new(_: SuppressorArgs, setup: &mut Setup) -> Result<Suppressor, SetupError> {
        Ok(Suppressor { closed: vec![false; setup.outputs()] })
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        if self.closed.get(port).is_some_and(|closed| *closed) {
            return cx.drop_batch(batch, "suppressed");
        }
        cx.emit(port, batch);
    }

    fn pull(&mut self, cx: &mut Context, port: usize, most: usize, into: &mut Batch) {
        if !self.closed.get(port).is_some_and(|closed| *closed) {
            cx.pull(port, most, into);
        }
    }

    fn more_handlers(&self) -> Vec<HandlerInfo> {
        let summary = "Whether the port is open.";
        (0..self.closed.len()).flat_map(|port| HandlerInfo::numbered("active", port, true, summary)).collect()
    }

    fn other_handler(
        &mut self,
        cx: &mut Context,
        name: &str,
        call: HandlerKind,
        value: &str,
    ) -> Option<Result<String, HandlerError>> {
        let port: usize = name.strip_prefix("active")?.parse().ok()?;
        let closed = self.closed.get_mut(port)?;
        if call != HandlerKind::Write {
            return Some(Ok((!*closed).to_string()));
        }
        Some(match cx.argument::<bool>(value) {
            Ok(active) => {
                *closed = !active;
                Ok(String::new())
            }
            Err(_) => Err(HandlerError::new("type mismatch")),
        })
    }
}
