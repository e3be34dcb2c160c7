//! `PullNull`: passes packets unchanged on a pull path.

use element::prelude::*;

/// Passes packets unchanged on a pull path. It makes agnostic neighbours pull.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> PullNull -> d :: Discard;
/// ```
/// ```expect
/// d.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "PullNull",
    group = "sources",
    ports = "1/1",
    processing = "l/l",
    order_insensitive,
    shards = "independent",
    see = "Null, PushNull"
)]
pub struct PullNullArgs;

pub struct PullNull;

impl Element for PullNull {
    type Args = PullNullArgs;

    fn new(_: PullNullArgs, _: &mut Setup) -> Result<PullNull, SetupError> {
        Ok(PullNull)
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        cx.pull(0, most, into);
    }
}
