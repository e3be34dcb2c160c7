//! `MarkIPHeader`: sets the network header to an IPv4 header.

use element::prelude::*;

/// Marks the IPv4 header at OFFSET without validating it. Only its length is read.
///
/// It neither checks nor trims packets, nor sets annotations; `CheckIPHeader` does.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> MarkIPHeader
///     -> StripIPHeader
///     -> CheckLength(16)
///     -> c :: Counter
///     -> Discard;
/// ```
/// ```expect
/// c.byte_count = 32
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "MarkIPHeader",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "CheckIPHeader, CheckIPHeader2, StripIPHeader"
)]
pub struct MarkIPHeaderArgs {
    /// Offset of the header in bytes; negative if it was stripped.
    #[arg(position, default = "0")]
    offset: i32,
}

pub struct MarkIPHeader {
    offset: isize,
}

impl Filter for MarkIPHeader {
    type Args = MarkIPHeaderArgs;

    fn new(args: MarkIPHeaderArgs, _: &mut Setup) -> Result<MarkIPHeader, SetupError> {
        Ok(MarkIPHeader { offset: args.offset as isize })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let first = match usize::try_from(self.offset) {
            Ok(offset) => packet.data().get(offset),
            Err(_) => {
                packet.set_network(self.offset, 0);
                packet.network().first()
            }
        };
        let first = first.copied().unwrap_or(0);
        packet.set_network(self.offset, usize::from(first & 0xf) * 4);
        true
    }
}
