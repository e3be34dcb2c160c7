//! `Null`: passes packets unchanged.

use element::prelude::*;

/// Passes packets unchanged.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> Null -> d :: Discard;
/// ```
/// ```expect
/// d.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Null",
    group = "sources",
    ports = "1/1",
    processing = "a/a",
    order_insensitive,
    shards = "independent",
    see = "Idle"
)]
pub struct NullArgs;

pub struct Null;

impl Element for Null {
    type Args = NullArgs;

    fn new(_: NullArgs, _: &mut Setup) -> Result<Null, SetupError> {
        Ok(Null)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        cx.emit(0, batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        cx.pull(0, most, into);
    }
}
