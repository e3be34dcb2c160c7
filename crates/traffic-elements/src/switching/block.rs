//! `Block`: separates packets by their rate annotation.

use element::prelude::*;
use packet::annotation::FWD_RATE;

/// Sends packets whose forward rate annotation is at most THRESH to output 0, and others to output 1.
///
/// With THRESH 0, all packets go to output 0.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> b :: Block(100);
/// b[0] -> a :: Counter -> Discard;
/// b[1] -> over :: Counter -> Discard;
/// ```
/// ```expect
/// b.thresh = 100
/// a.count = 3
/// over.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "Block",
    group = "switching",
    ports = "1/2",
    processing = "a/a",
    order_insensitive,
    see = "Meter, Shaper"
)]
pub struct BlockArgs {
    /// Highest rate for output 0; 0 for no limit.
    #[arg(position)]
    thresh: i32,
}

pub struct Block {
    threshold: i32,
}

impl Filter for Block {
    type Args = BlockArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("thresh", "Highest rate for output 0.", |block| block.threshold.to_string()),
        Handler::setting("thresh", "Sets the highest rate for output 0.", |block, cx, value| {
            block.threshold = cx.argument(value).map_err(|_| HandlerError::new("not an integer"))?;
            Ok(())
        }),
    ];

    fn new(args: BlockArgs, _: &mut Setup) -> Result<Block, SetupError> {
        Ok(Block { threshold: args.thresh })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        let rate = packet.annotation_u32(FWD_RATE.offset.into()).cast_signed();
        if self.threshold == 0 || rate <= self.threshold {
            return Verdict::Pass(packet);
        }
        Verdict::To(1, packet)
    }
}
