//! `PaintSwitch`: selects the output by paint.

use element::arguments::Annotation;
use element::prelude::*;

/// Sends each packet to the output given by its paint annotation.
///
/// Packets with paint 255 go to every output. If the output does not exist, the packet is dropped as `no_output`. ANNO
/// selects another annotation byte.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> t :: Tee -> Paint(1) -> s :: PaintSwitch;
/// t[1] -> Paint(255) -> s;
/// s[0] -> a :: Counter -> Discard;
/// s[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 3
/// b.count = 6
/// ```
#[derive(Args)]
#[element(
    name = "PaintSwitch",
    group = "switching",
    ports = "1/-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "Paint, PaintTee, CheckPaint, Switch",
    drops = "no_output",
    fates = "copied"
)]
pub struct PaintSwitchArgs {
    /// Annotation byte to read.
    #[arg(position, default = "PAINT")]
    anno: Annotation<1>,
}

/// Paint value that stands for all outputs.
const ALL: u8 = 255;

pub struct PaintSwitch {
    annotation: usize,
}

impl Filter for PaintSwitch {
    type Args = PaintSwitchArgs;

    fn new(args: PaintSwitchArgs, _: &mut Setup) -> Result<PaintSwitch, SetupError> {
        Ok(PaintSwitch { annotation: args.anno.0 })
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let (paint, outputs) = (packet.annotation_u8(self.annotation), cx.outputs());
        if paint != ALL {
            let output = usize::from(paint);
            return match output < outputs {
                true => Verdict::To(output, packet),
                false => Verdict::Drop(packet, Reason::NO_OUTPUT),
            };
        }
        let Some(last) = outputs.checked_sub(1) else { return Verdict::Drop(packet, Reason::NO_OUTPUT) };
        for output in 0..last {
            if let Some(copy) = cx.duplicate(&packet) {
                cx.send(output, copy);
            }
        }
        Verdict::To(last, packet)
    }
}
