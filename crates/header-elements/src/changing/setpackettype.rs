//! `SetPacketType`: sets the packet type annotation.

use element::arguments::Word;
use element::prelude::*;
use packet::PacketType;

/// Sets the packet type annotation, which tells how the packet was addressed at the link layer.
///
/// TYPE is HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING or LOOPBACK. Case does not matter.
/// ```click
/// InfiniteSource(LIMIT 2, STOP true) -> SetPacketType(BROADCAST) -> d :: DropBroadcasts;
/// d[0] -> passed :: Counter -> Discard;
/// d[1] -> broadcast :: Counter -> Discard;
/// ```
/// ```expect
/// passed.count = 0
/// broadcast.count = 2
/// d.drops = 2
/// ```
#[derive(Args)]
#[element(
    name = "SetPacketType",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "DropBroadcasts, HostEtherFilter"
)]
pub struct SetPacketTypeArgs {
    /// HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING or LOOPBACK.
    #[arg(position, keyword = "TYPE")]
    kind: Word,
}

pub struct SetPacketType {
    kind: PacketType,
}

impl Filter for SetPacketType {
    type Args = SetPacketTypeArgs;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SetPacketTypeArgs, _: &mut Setup) -> Result<SetPacketType, SetupError> {
        let name = args.kind.0.to_ascii_uppercase();
        let kind = match name.as_str() {
            "HOST" => PacketType::Host,
            "BROADCAST" => PacketType::Broadcast,
            "MULTICAST" => PacketType::Multicast,
            "OTHERHOST" => PacketType::OtherHost,
            "OUTGOING" => PacketType::Outgoing,
            "LOOPBACK" => PacketType::Loopback,
            _ => return Err(SetupError::new(format!("unrecognized packet type ‘{}’", args.kind.0))),
        };
        Ok(SetPacketType { kind })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.set_packet_type(self.kind);
        true
    }
}
