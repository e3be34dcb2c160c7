//! `DropBroadcasts`: drops link-level broadcasts and multicasts.

use element::prelude::*;
use packet::PacketType;

/// Sends link-level broadcast and multicast packets to output 1, or drops them as `broadcast`.
///
/// It reads the packet type annotation, which `FromDevice` and `HostEtherFilter` set. A router must not forward such
/// packets (RFC 1812, section 5.3.4).
/// ```click
/// InfiniteSource(LIMIT 2, STOP true) -> t :: Tee -> SetPacketType(MULTICAST) -> d :: DropBroadcasts
///     -> c :: Counter -> Discard;
/// t[1] -> SetPacketType(HOST) -> d;
/// ```
/// ```expect
/// c.count = 2
/// d.drops = 2
/// d.losses = broadcast 2
/// ```
#[derive(Args)]
#[element(
    name = "DropBroadcasts",
    group = "changing",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    logs,
    see = "SetPacketType, HostEtherFilter",
    drops = "broadcast"
)]
pub struct DropBroadcastsArgs {}

pub struct DropBroadcasts {
    drops: u64,
}

impl Filter for DropBroadcasts {
    type Args = DropBroadcastsArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Broadcast and multicast packets.", |drop| drop.drops.to_string())];

    fn new(_: DropBroadcastsArgs, _: &mut Setup) -> Result<DropBroadcasts, SetupError> {
        Ok(DropBroadcasts { drops: 0 })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        !matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast)
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        if self.pass(&mut packet) {
            return Verdict::Pass(packet);
        }
        if self.drops == 0 {
            cx.log("DropBroadcasts: dropped a packet");
        }
        self.drops += 1;
        Verdict::Divert(packet, Reason::BROADCAST)
    }
}
