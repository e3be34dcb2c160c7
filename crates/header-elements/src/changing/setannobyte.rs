//! `SetAnnoByte`: sets an annotation byte.

use element::arguments::Annotation;
use element::prelude::*;

/// Sets an annotation byte of each packet to a constant.
///
/// Use `Paint(VALUE, ANNO)` instead; this element prints a warning.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> s :: SetAnnoByte(16, 7) -> CheckPaint(7) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// s.anno = 16
/// s.value = 7
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "SetAnnoByte",
    group = "changing",
    order_insensitive,
    shards = "independent",
    obsolete = "SetAnnoByte(ANNO, VALUE) is obsolete, use Paint(VALUE, ANNO) instead",
    see = "Paint"
)]
pub struct SetAnnoByteArgs {
    /// Annotation byte to set.
    #[arg(position)]
    anno: Annotation<1>,
    /// Value, 0 to 255.
    #[arg(position)]
    value: u8,
}

pub struct SetAnnoByte {
    args: SetAnnoByteArgs,
}

impl Filter for SetAnnoByte {
    type Args = SetAnnoByteArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("anno", "Offset of the annotation.", |set| set.args.anno.0.to_string()),
        Handler::read("value", "Value.", |set| set.args.value.to_string()),
        Handler::setting("value", "Sets the value.", |set, cx, value| {
            set.args.value = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SetAnnoByteArgs, _: &mut Setup) -> Result<SetAnnoByte, SetupError> {
        Ok(SetAnnoByte { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.set_annotation_u8(self.args.anno.0, self.args.value);
        true
    }
}
