//! `DecIPTTL`: decrements the TTL of IPv4 packets.

use element::prelude::*;
use packet::Ip4ViewMut;

/// Decrements the time to live of IPv4 packets and updates the checksum.
///
/// A packet whose time to live is 1 or 0 goes unchanged to output 1, usually an `ICMPError`, or is dropped as
/// `ttl_expired`. A packet without a marked header is dropped as `no_ip_header`.
/// ```click
/// InfiniteSource(DATA \<4500001400000000021100000a0000010a000002>, LIMIT 3, STOP true)
///     -> MarkIPHeader -> first :: DecIPTTL -> second :: DecIPTTL -> Discard;
/// ```
/// ```expect
/// first.drops = 0
/// second.drops = 3
/// second.losses = ttl_expired 3
/// ```
#[derive(Args)]
#[element(
    name = "DecIPTTL",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    see = "ICMPError, CheckIPHeader",
    drops = "no_ip_header, ttl_expired",
    fates = "changed"
)]
pub struct DecIPTTLArgs {
    /// Whether it processes packets; if not, all pass unchanged.
    #[arg(default = "true")]
    active: bool,
    /// Process packets to multicast addresses too.
    #[arg(default = "true")]
    multicast: bool,
}

pub struct DecIPTTL {
    args: DecIPTTLArgs,
    drops: u64,
}

impl Filter for DecIPTTL {
    type Args = DecIPTTLArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets whose time to live expired.", |element| element.drops.to_string()),
        Handler::read("active", "Whether it processes packets.", |element| element.args.active.to_string()),
        Handler::setting("active", "Turns processing on or off.", |element, cx, value| {
            element.args.active = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: DecIPTTLArgs, _: &mut Setup) -> Result<DecIPTTL, SetupError> {
        Ok(DecIPTTL { args, drops: 0 })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        if !self.args.active || !self.args.multicast {
            return false;
        }
        let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) else { return false };
        let passes = header.view().ttl() > 1;
        if passes {
            header.decrement_ttl();
        }
        passes
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if !self.args.active {
            return Verdict::Pass(packet);
        }
        let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if !self.args.multicast && header.view().destination().is_multicast() {
            return Verdict::Pass(packet);
        }
        if header.view().ttl() <= 1 {
            self.drops += 1;
            return Verdict::Divert(packet, Reason::TTL_EXPIRED);
        }
        header.decrement_ttl();
        Verdict::Pass(packet)
    }
}
