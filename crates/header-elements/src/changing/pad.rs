//! `Pad`: pads packets to a minimum length.

use element::prelude::*;

/// Pads packets to a minimum length with zero bytes.
///
/// Without LENGTH, or with 0, it appends as many bytes as the extra length annotation says. It clears that annotation.
/// A packet that would exceed the maximum size is dropped as `too_long`.
///
/// ## Differences
/// Added bytes are zero even with ZERO false.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true) -> Pad(60) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 120
/// ```
#[derive(Args)]
#[element(
    name = "Pad",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "Truncate",
    drops = "too_long",
    fates = "changed"
)]
pub struct PadArgs {
    /// Minimum packet length.
    #[arg(position, default = "0")]
    length: u32,
    /// Fill with zeros.
    #[arg(default = "true")]
    #[allow(dead_code, reason = "bytes of other packets are never shown")]
    zero: bool,
}

pub struct Pad {
    length: u32,
}

impl Filter for Pad {
    type Args = PadArgs;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: PadArgs, _: &mut Setup) -> Result<Pad, SetupError> {
        Ok(Pad { length: args.length })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let added = match self.length {
            0 => packet.extra_length() as usize,
            length => (length as usize).saturating_sub(packet.len()),
        };
        if added > 0 && packet.append(added).is_none() {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        packet.set_extra_length(0);
        Verdict::Pass(packet)
    }
}
