//! `MarkIP6Header`: sets the network header to an IPv6 header.

use element::prelude::*;
use packet::view::ip6::LENGTH;

/// Marks the IPv6 header at OFFSET without validating it.
/// ```click
/// InfiniteSource(DATA \<6000000000003b0220010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 2, STOP true)
///     -> MarkIP6Header -> d :: DecIP6HLIM -> e :: DecIP6HLIM -> Discard;
/// ```
/// ```expect
/// d.drops = 0
/// e.drops = 2
/// e.losses = ttl_expired 2
/// ```
#[derive(Args)]
#[element(
    name = "MarkIP6Header",
    group = "ip",
    order_insensitive,
    see = "CheckIP6Header",
    shards = "independent"
)]
pub struct MarkIP6HeaderArgs {
    /// Offset of the header in bytes; negative if it was stripped.
    #[arg(position, default = "0")]
    offset: i32,
}

pub struct MarkIP6Header {
    offset: isize,
}

impl Filter for MarkIP6Header {
    type Args = MarkIP6HeaderArgs;

    fn new(args: MarkIP6HeaderArgs, _: &mut Setup) -> Result<MarkIP6Header, SetupError> {
        Ok(MarkIP6Header { offset: args.offset as isize })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        packet.set_network(self.offset, LENGTH);
        Verdict::Pass(packet)
    }
}
