//! `Idle`: makes nothing, takes anything.

use element::Direction;
use element::prelude::*;

/// Never makes or pulls a packet; drops those that are pushed to it.
///
/// Elements that pull from it learn that it is empty for ever, and sleep.
/// ```click
/// Idle -> c :: Counter -> Discard;
/// InfiniteSource(LIMIT 3, STOP true) -> Idle;
/// ```
/// ```expect
/// c.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "Idle",
    group = "sources",
    ports = "-/-",
    processing = "a/a",
    flow = "x/y",
    order_insensitive,
    notifies = "empty",
    see = "Discard, Null"
)]
pub struct IdleArgs;

/// The element.
pub struct Idle;

impl Element for Idle {
    type Args = IdleArgs;

    fn new(_: IdleArgs, _: &mut Setup) -> Result<Idle, SetupError> {
        Ok(Idle)
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.set_signal(Direction::Empty, false);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        cx.recycle(batch);
    }
}
