//! `Paint`: sets the paint annotation.

use element::arguments::Annotation;
use element::prelude::*;

/// Sets the paint annotation of each packet to COLOR.
///
/// ANNO selects another annotation byte.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> p :: Paint(2) -> check :: CheckPaint(2) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// p.color = 2
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Paint",
    group = "changing",
    order_insensitive,
    see = "CheckPaint, PaintTee, PaintSwitch",
    shards = "independent"
)]
pub struct PaintArgs {
    /// Paint to set, 0 to 255.
    #[arg(position)]
    color: u8,
    /// Annotation byte to set.
    #[arg(position, default = "PAINT")]
    anno: Annotation<1>,
}

pub struct Paint {
    args: PaintArgs,
}

impl Filter for Paint {
    type Args = PaintArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("color", "Paint to set.", |paint| paint.args.color.to_string()),
        Handler::setting("color", "Sets the paint.", |paint, cx, value| {
            paint.args.color = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: PaintArgs, _: &mut Setup) -> Result<Paint, SetupError> {
        Ok(Paint { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.set_annotation_u8(self.args.anno.0, self.args.color);
        true
    }
}
