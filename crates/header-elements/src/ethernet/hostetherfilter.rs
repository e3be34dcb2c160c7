//! `HostEtherFilter`: accepts the frames that a network card would accept.

use element::prelude::*;
use packet::{MacAddr, PacketType};

use super::header::addresses;

/// Passes the Ethernet frames that a host with address ETHER would accept, and sets their packet type annotation.
///
/// The destination address decides the type: HOST, BROADCAST, MULTICAST or OTHERHOST. With DROP_OTHER, frames for other
/// hosts go to output 1 or are dropped as `other_host`. With DROP_OWN, so do frames from ETHER, as `own_source`.
///
/// ## Differences
/// A packet too short for the addresses goes to output 1, or is dropped as `too_short`; Click reads beyond its end.
/// ```click
/// InfiniteSource(DATA \<020203040506 0a0b0c0d0e0f 0800>, LIMIT 2, STOP true)
///     -> a :: HostEtherFilter(2:2:3:4:5:6) -> b :: HostEtherFilter(2:1:1:1:1:1);
/// b[0] -> mine :: Counter -> Discard;
/// b[1] -> others :: Counter -> Discard;
/// ```
/// ```expect
/// a.ether = 02-02-03-04-05-06
/// mine.count = 0
/// others.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "HostEtherFilter",
    group = "ethernet",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    see = "DropBroadcasts, SetPacketType",
    drops = "too_short, other_host, own_source"
)]
pub struct HostEtherFilterArgs {
    /// Address of the host.
    #[arg(position)]
    ether: MacAddr,
    /// Reject frames from ETHER.
    #[arg(position, default = "false")]
    drop_own: bool,
    /// Reject frames for other hosts.
    #[arg(position, default = "true")]
    drop_other: bool,
    /// Offset of the Ethernet header.
    #[arg(default = "0")]
    offset: u32,
}

pub struct HostEtherFilter {
    args: HostEtherFilterArgs,
}

impl Filter for HostEtherFilter {
    type Args = HostEtherFilterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("ether", "Address of the host.", |filter| filter.args.ether.to_string()),
        Handler::setting("ether", "Sets the address of the host.", |filter, cx, value| {
            filter.args.ether = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: HostEtherFilterArgs, _: &mut Setup) -> Result<HostEtherFilter, SetupError> {
        Ok(HostEtherFilter { args })
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let frame = packet.data().get(self.args.offset as usize..);
        let Some((destination, source)) = frame.and_then(addresses) else {
            return Verdict::Divert(packet, Reason::TOO_SHORT);
        };
        if self.args.drop_own && source == self.args.ether {
            return Verdict::Divert(packet, Reason::OWN_SOURCE);
        }
        let kind = if destination == self.args.ether {
            PacketType::Host
        } else if destination.is_broadcast() {
            PacketType::Broadcast
        } else if destination.is_group() {
            PacketType::Multicast
        } else {
            PacketType::OtherHost
        };
        packet.set_packet_type(kind);
        if kind == PacketType::OtherHost && self.args.drop_other {
            return Verdict::Divert(packet, Reason::OTHER_HOST);
        }
        Verdict::Pass(packet)
    }
}
