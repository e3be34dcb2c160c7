//! `IPOutputCombo`: combines a router's output processing of IPv4 packets.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::{Ip4View, Ip4ViewMut, PacketType};

use super::fixipsrc::fix_source;
use super::gatewayoptions::Router;
use super::ipgwoptions::{process, set_problem};

/// Combines DropBroadcasts, PaintTee, IPGWOptions, FixIPSrc, DecIPTTL and CheckLength, for the output of an IP router.
///
/// It is equivalent to `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) -> DecIPTTL ->
/// CheckLength(MTU)`. Its outputs:
///
/// - 0: packets to forward;
/// - 1: copies of packets with paint COLOR, for redirects;
/// - 2: packets with invalid options;
/// - 3: packets whose time to live expired;
/// - 4: packets longer than MTU.
///
/// Broadcasts are dropped as `broadcast`, and packets without a marked header as `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000) -> Paint(2)
///     -> o :: IPOutputCombo(2, 10.0.0.9, 60) -> good :: Counter -> Discard;
/// o[1] -> redirects :: Counter -> Discard; o[2] -> Discard; o[3] -> Discard; o[4] -> Discard;
/// ```
/// ```expect
/// good.count = 3
/// redirects.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "IPOutputCombo",
    group = "ip",
    ports = "1/5",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "DropBroadcasts, PaintTee, CheckLength, IPGWOptions, FixIPSrc, DecIPTTL, IPFragmenter, IPInputCombo",
    drops = "no_ip_header, broadcast",
    fates = "copied, changed"
)]
pub struct IPOutputComboArgs {
    /// Paint of packets that leave by the interface on which they arrived.
    #[arg(position)]
    color: i32,
    /// The router's address on this interface.
    #[arg(position)]
    ipaddr: Ipv4Addr,
    /// Maximum packet length in bytes.
    #[arg(position)]
    mtu: u32,
}

pub struct IPOutputCombo {
    args: IPOutputComboArgs,
}

impl Filter for IPOutputCombo {
    type Args = IPOutputComboArgs;

    fn new(args: IPOutputComboArgs, _: &mut Setup) -> Result<IPOutputCombo, SetupError> {
        Ok(IPOutputCombo { args })
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        if matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast) {
            return Verdict::Drop(packet, Reason::BROADCAST);
        }
        if i32::from(packet.paint()) == self.args.color
            && let Some(copy) = cx.duplicate(&packet)
        {
            cx.send(1, copy);
        }
        let Some(header) = Ip4View::new(packet.network()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if header.header_length() > 20 {
            let router = Router { address: self.args.ipaddr, others: &[], now: cx.now() };
            if let Err(offset) = process(&mut packet, &router) {
                set_problem(&mut packet, offset);
                return Verdict::To(2, packet);
            }
        }
        fix_source(&mut packet, self.args.ipaddr);
        let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if header.view().ttl() <= 1 {
            return Verdict::To(3, packet);
        }
        header.decrement_ttl();
        if packet.len() > self.args.mtu as usize {
            return Verdict::To(4, packet);
        }
        Verdict::Pass(packet)
    }
}
