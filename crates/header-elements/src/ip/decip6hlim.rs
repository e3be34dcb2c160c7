//! `DecIP6HLIM`: decrements the hop limit of IPv6 packets.

use element::prelude::*;

/// Decrements the hop limit of IPv6 packets.
///
/// A packet whose hop limit is 1 or 0 goes unchanged to output 1, or is dropped as `ttl_expired`. A packet without a
/// marked header is dropped as `no_ip_header`.
/// ```click
/// InfiniteSource(DATA \<6000000000003b0220010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 2, STOP true)
///     -> CheckIP6Header -> d :: DecIP6HLIM -> e :: DecIP6HLIM -> Discard;
/// ```
/// ```expect
/// d.drops = 0
/// e.drops = 2
/// e.losses = ttl_expired 2
/// ```
#[derive(Args)]
#[element(
    name = "DecIP6HLIM",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    see = "CheckIP6Header, DecIPTTL",
    drops = "no_ip_header, ttl_expired",
    fates = "changed"
)]
pub struct DecIP6HLIMArgs;

/// Offset of the hop limit in the header (RFC 8200, section 3).
const HOP_LIMIT: usize = 7;

pub struct DecIP6HLIM {
    drops: u64,
}

impl Filter for DecIP6HLIM {
    type Args = DecIP6HLIMArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Packets whose hop limit expired.", |element| element.drops.to_string())];

    fn new(_: DecIP6HLIMArgs, _: &mut Setup) -> Result<DecIP6HLIM, SetupError> {
        Ok(DecIP6HLIM { drops: 0 })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        // The IP version is not checked here.
        let Some(&limit) = packet.network().get(HOP_LIMIT) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if limit <= 1 {
            self.drops += 1;
            return Verdict::Divert(packet, Reason::TTL_EXPIRED);
        }
        if let Some(byte) = packet.network_mut().get_mut(HOP_LIMIT) {
            *byte = limit - 1;
        }
        Verdict::Pass(packet)
    }
}
