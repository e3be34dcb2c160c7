//! `Idle`: neither sends nor pulls.

use element::Direction;
use element::prelude::*;

/// Connects ports that carry no traffic: never sends or pulls, and drops what is pushed to it.
///
/// Downstream tasks learn that it stays empty, and sleep.
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
    shards = "independent",
    see = "Discard, Null",
    fates = "discarded"
)]
pub struct IdleArgs;

pub struct Idle;

impl Element for Idle {
    type Args = IdleArgs;

    fn new(_: IdleArgs, _: &mut Setup) -> Result<Idle, SetupError> {
        Ok(Idle)
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.set_signal(Direction::Empty, false);
        cx.needs_initialization(false);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        cx.end_batch(batch, Fate::Discarded);
    }
}
