//! `PushNull`: passes packets unchanged on a push path.

use element::prelude::*;

/// Passes packets unchanged on a push path. It makes agnostic neighbours push.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> PushNull -> d :: Discard;
/// ```
/// ```expect
/// d.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "PushNull",
    group = "sources",
    ports = "1/1",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "Null, PullNull"
)]
pub struct PushNullArgs;

pub struct PushNull;

impl Element for PushNull {
    type Args = PushNullArgs;

    fn new(_: PushNullArgs, _: &mut Setup) -> Result<PushNull, SetupError> {
        Ok(PushNull)
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        cx.emit(0, batch);
    }
}
