//! `BlockThread`: blocks the thread for a time.

use element::prelude::*;

/// Blocks the thread for a time. For tests.
///
/// It blocks in real time. A simulated clock does not advance.
/// ```click
/// b :: BlockThread;
/// Script(write b.block 1ms, stop);
/// ```
/// ```expect
/// b.class = BlockThread
/// ```
#[derive(Args)]
#[element(name = "BlockThread", group = "testing", ports = "0/0", see = "MTDieTest")]
pub struct BlockThreadArgs {}

pub struct BlockThread;

/// Maximum time, so that a configuration can't block the program for long.
const MAX_TIME: Timestamp = Timestamp::from_millis(10_000);

impl Element for BlockThread {
    type Args = BlockThreadArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::action("block", "Blocks for this time, at most 10 s.", |_: &mut Self, cx, value| {
            let time: Timestamp = cx.argument(value).map_err(|_| HandlerError::new("bad TIME"))?;
            let environment = cx.environment();
            // A script may call this repeatedly; a request to stop the program must not wait for every call.
            if !environment.is_interrupted() {
                environment.wait(&[], Some(environment.steady() + time.min(MAX_TIME)));
            }
            Ok(())
        })
        .hidden()];

    fn new(_: BlockThreadArgs, _: &mut Setup) -> Result<BlockThread, SetupError> {
        Ok(BlockThread)
    }
}
