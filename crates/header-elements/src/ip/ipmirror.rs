//! `IPMirror`: swaps the source and destination of IPv4 packets.

use element::prelude::*;
use packet::{Ip4View, Ip4ViewMut, UdpViewMut, protocol};

/// Swaps source and destination address of IPv4 packets, and their TCP or UDP ports.
///
/// For TCP it also swaps the sequence and acknowledgement numbers. No checksum changes. The destination annotation is
/// set to the new destination. A packet without a marked header is dropped as `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> IPMirror
///     -> ip :: CheckIPHeader(BADSRC 10.0.0.1) -> udp :: CheckUDPHeader -> Discard;
/// ```
/// ```expect
/// ip.drops = 0
/// udp.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "IPMirror",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "EtherMirror",
    drops = "no_ip_header",
    fates = "changed"
)]
pub struct IPMirrorArgs {
    /// Set the destination annotation.
    #[arg(position, default = "true")]
    dst_anno: bool,
}

pub struct IPMirror {
    args: IPMirrorArgs,
}

impl Filter for IPMirror {
    type Args = IPMirrorArgs;

    fn new(args: IPMirrorArgs, _: &mut Setup) -> Result<IPMirror, SetupError> {
        Ok(IPMirror { args })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        let (source, destination) = (header.source(), header.destination());
        let (protocol, is_first) = (header.protocol(), header.is_first_fragment());
        if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
            header.set_source(destination);
            header.set_destination(source);
        }
        if self.args.dst_anno {
            packet.set_destination_ip(source);
        }
        if !is_first || !matches!(protocol, protocol::TCP | protocol::UDP) {
            return Verdict::Pass(packet);
        }
        // TCP has the ports at the same offsets.
        if let Some(mut udp) = UdpViewMut::new(packet.transport_mut()) {
            let (source, destination) = (udp.view().source(), udp.view().destination());
            udp.set_source(destination);
            udp.set_destination(source);
        }
        // A header that is cut off behind both numbers will do.
        if protocol == protocol::TCP
            && let [_, _, _, _, numbers @ ..] = packet.transport_mut()
            && let Some((sequence, rest)) = numbers.split_first_chunk_mut::<4>()
            && let Some(acknowledgement) = rest.first_chunk_mut::<4>()
        {
            core::mem::swap(sequence, acknowledgement);
        }
        Verdict::Pass(packet)
    }
}
