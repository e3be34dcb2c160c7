//! `PaintTee`: copies packets of one paint.

use element::arguments::Annotation;
use element::prelude::*;

/// Copies packets of one paint to output 1. All packets go to output 0.
///
/// If the paint annotation equals COLOR, the copy leaves by output 1 before the packet leaves by output 0. ANNO selects
/// another annotation byte.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> Paint(4) -> t :: PaintTee(4);
/// t[0] -> a :: Counter -> Paint(5) -> u :: PaintTee(4);
/// t[1] -> b :: Counter -> Discard;
/// u[0] -> c :: Counter -> Discard;
/// u[1] -> d :: Counter -> Discard;
/// ```
/// ```expect
/// t.color = 4
/// a.count = 3
/// b.count = 3
/// c.count = 3
/// d.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "PaintTee",
    group = "switching",
    ports = "1/2",
    processing = "a/ah",
    order_insensitive,
    keeps_place,
    shards = "independent",
    see = "Paint, CheckPaint, PaintSwitch, Tee",
    fates = "copied"
)]
pub struct PaintTeeArgs {
    /// Paint to copy, 0 to 255.
    #[arg(position)]
    color: u8,
    /// Annotation byte to read.
    #[arg(position, default = "PAINT")]
    anno: Annotation<1>,
}

pub struct PaintTee {
    args: PaintTeeArgs,
}

impl Filter for PaintTee {
    type Args = PaintTeeArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("color", "Paint to copy.", |tee| tee.args.color.to_string()),
        Handler::setting("color", "Sets the paint to copy.", |tee, cx, value| {
            tee.args.color = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: PaintTeeArgs, _: &mut Setup) -> Result<PaintTee, SetupError> {
        Ok(PaintTee { args })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        if packet.annotation_u8(self.args.anno.0) == self.args.color
            && let Some(copy) = cx.duplicate(&packet)
        {
            packet.step_behind_copy();
            cx.send(1, copy);
        }
        Verdict::Pass(packet)
    }
}
