//! `DynamicUDPIPEncap`: encapsulates packets in UDP and IPv4 with changing ports.

use core::net::Ipv4Addr;

use element::arguments::UdpPort;
use element::prelude::*;
use packet::protocol;

use super::encapsulation;
use crate::ip::HeaderTemplate;

/// Adds UDP and IPv4 headers whose ports both increase by one every INTERVAL packets.
///
/// The destination annotation is set to DST. The time to live is 250; the identification counts from 0.
///
/// ## Differences
///
/// A UDP checksum of zero is sent as 0xffff (RFC 768), since zero means no checksum.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 6, STOP true)
///     -> DynamicUDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000, INTERVAL 2)
///     -> CheckIPHeader -> CheckUDPHeader
///     -> c :: IPClassifier(dst port 2002, -);
/// c[0] -> third :: Counter -> Discard; c[1] -> Discard;
/// ```
/// ```expect
/// third.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "DynamicUDPIPEncap",
    group = "transport",
    see = "Strip, IPEncap, UDPIPEncap",
    drops = "too_long",
    fates = "changed"
)]
pub struct DynamicUDPIPEncapArgs {
    /// Source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// First source port.
    #[arg(position)]
    sport: UdpPort,
    /// Destination address.
    #[arg(position)]
    dst: Ipv4Addr,
    /// First destination port.
    #[arg(position)]
    dport: UdpPort,
    /// Compute the UDP checksum.
    #[arg(position, default = "true")]
    checksum: bool,
    /// Packets between port changes; 0 for no changes.
    #[arg(position, default = "0")]
    interval: u32,
}

pub struct DynamicUDPIPEncap {
    args: DynamicUDPIPEncapArgs,
    header: HeaderTemplate,
    count: u32,
}

impl Filter for DynamicUDPIPEncap {
    type Args = DynamicUDPIPEncapArgs;

    fn new(args: DynamicUDPIPEncapArgs, _: &mut Setup) -> Result<DynamicUDPIPEncap, SetupError> {
        let header = HeaderTemplate::new(protocol::UDP, args.src);
        Ok(DynamicUDPIPEncap { args, header, count: 0 })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if !encapsulation::make_room(&mut packet) {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        let DynamicUDPIPEncap { args, header, .. } = self;
        packet.set_destination_ip(args.dst);
        let ports = [args.sport.0, args.dport.0];
        encapsulation::write(&mut packet, header, [args.src, args.dst], ports, args.checksum);
        self.count = self.count.wrapping_add(1);
        if self.count == self.args.interval {
            self.args.sport.0 = self.args.sport.0.wrapping_add(1);
            self.args.dport.0 = self.args.dport.0.wrapping_add(1);
            self.count = 0;
        }
        Verdict::Pass(packet)
    }
}
