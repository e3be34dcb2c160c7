//! `Truncate`: limits the length of packets.

use element::prelude::*;

/// Truncates packets to LENGTH bytes.
///
/// The number of removed bytes is added to the extra length annotation, unless EXTRA_LENGTH is false.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> t :: Truncate(20) -> short :: Counter
///     -> Pad -> long :: Counter -> Discard;
/// ```
/// ```expect
/// t.nbytes = 20
/// short.byte_count = 40
/// long.byte_count = 120
/// long.count = 2
/// short.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "Truncate",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "Strip, Pad, CheckLength",
    fates = "changed"
)]
pub struct TruncateArgs {
    /// Maximum packet length.
    #[arg(position)]
    length: u32,
    /// Add the removed bytes to the extra length annotation.
    #[arg(default = "true")]
    extra_length: bool,
}

pub struct Truncate {
    args: TruncateArgs,
}

impl Filter for Truncate {
    type Args = TruncateArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("nbytes", "Maximum packet length.", |truncate| truncate.args.length.to_string()),
        Handler::setting("nbytes", "Sets the maximum packet length.", |truncate, cx, value| {
            truncate.args.length = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: TruncateArgs, _: &mut Setup) -> Result<Truncate, SetupError> {
        Ok(Truncate { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let removed = packet.len().saturating_sub(self.args.length as usize);
        if removed > 0 {
            packet.truncate_by(removed);
            if self.args.extra_length {
                packet.set_extra_length(packet.extra_length().wrapping_add(removed as u32));
            }
        }
        true
    }
}
