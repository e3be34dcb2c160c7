//! `Pad`: gives packets a least length.

use element::prelude::*;

/// Puts zero bytes behind packets that are shorter than LENGTH.
///
/// Without LENGTH, or with 0, as many bytes are put behind as the extra length annotation says. That annotation is zero
/// afterwards. A packet that would become larger than the largest is dropped as `too_long`.
///
/// ## Differences
/// The added bytes are zero even with ZERO false.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true) -> Pad(60) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 120
/// ```
#[derive(Args)]
#[element(name = "Pad", group = "changing", order_insensitive, see = "Truncate", drops = "too_long")]
pub struct PadArgs {
    /// The least bytes of a packet.
    #[arg(position, default = "0")]
    length: u32,
    /// Whether the added bytes are zero.
    #[arg(default = "true")]
    #[allow(dead_code, reason = "bytes of other packets are never shown")]
    zero: bool,
}

/// The element.
pub struct Pad {
    length: u32,
}

impl Filter for Pad {
    type Args = PadArgs;
    const LIVE: bool = true;

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
