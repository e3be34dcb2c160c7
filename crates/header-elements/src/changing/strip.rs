//! `Strip`: removes bytes from the front.

use element::prelude::*;

/// Removes the first LENGTH bytes of each packet. A shorter packet becomes empty and is logged.
///
/// The bytes stay in the headroom, so `Unstrip` can restore them.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 3, STOP true) -> Strip(14) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// c.byte_count = 138
/// ```
#[derive(Args)]
#[element(
    name = "Strip",
    group = "changing",
    order_insensitive,
    shards = "independent",
    logs,
    see = "Unstrip, Truncate, EtherEncap, IPEncap",
    fates = "changed"
)]
pub struct StripArgs {
    /// Bytes to remove.
    #[arg(position)]
    length: u32,
}

pub struct Strip {
    length: usize,
}

impl Filter for Strip {
    type Args = StripArgs;

    fn new(args: StripArgs, _: &mut Setup) -> Result<Strip, SetupError> {
        Ok(Strip { length: args.length as usize })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.strip_exactly(self.length)
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        strip(cx, &mut packet, self.length);
        Verdict::Pass(packet)
    }
}

/// Removes `count` bytes from the front. If there are fewer, removes all and logs an error.
#[inline]
pub(crate) fn strip(cx: &Context, packet: &mut Packet, count: usize) {
    let length = packet.len();
    if packet.strip(count) < count {
        log_too_short(cx, count, length);
    }
}

#[cold]
fn log_too_short(cx: &Context, count: usize, length: usize) {
    cx.log(&format!("Packet::pull {count} > length {length}"));
}
