//! `CheckPaint`: separates packets by their paint.

use element::arguments::Annotation;
use element::prelude::*;

/// Passes packets with one paint. Others go to output 1, or are dropped as `wrong_paint`.
///
/// ANNO selects another annotation byte.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> Paint(2) -> check :: CheckPaint(3);
/// check[0] -> right :: Counter -> Discard;
/// check[1] -> other :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 0
/// other.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "CheckPaint",
    group = "changing",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    see = "Paint, PaintTee, PaintSwitch",
    drops = "wrong_paint"
)]
pub struct CheckPaintArgs {
    /// Paint to pass, 0 to 255.
    #[arg(position)]
    color: u8,
    /// Annotation byte to read.
    #[arg(position, default = "PAINT")]
    anno: Annotation<1>,
}

pub struct CheckPaint {
    args: CheckPaintArgs,
}

impl Filter for CheckPaint {
    type Args = CheckPaintArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("color", "Paint to pass.", |check| check.args.color.to_string()),
        Handler::setting("color", "Sets the paint to pass.", |check, cx, value| {
            check.args.color = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: CheckPaintArgs, _: &mut Setup) -> Result<CheckPaint, SetupError> {
        Ok(CheckPaint { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.annotation_u8(self.args.anno.0) == self.args.color
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if self.pass(&mut packet) {
            return Verdict::Pass(packet);
        }
        Verdict::Divert(packet, Reason::WRONG_PAINT)
    }
}
