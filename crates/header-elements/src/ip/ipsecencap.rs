//! `IPsecEncap`: adds the outer header of an IPsec tunnel.

use core::net::Ipv4Addr;

use element::arguments::IpProtocol;
use element::prelude::*;
use packet::annotation;

use super::template::HeaderTemplate;

/// Adds an IPv4 header with the destination of the annotation: the outer header of an IPsec tunnel.
///
/// The source is unknown until an output is chosen: the fix-source annotation asks `FixIPSrc` to set it. The time to live is 250;
/// the identification counts from 0.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true)
///     -> SetIPAddress(192.0.2.2)
///     -> IPsecEncap(50) -> FixIPSrc(192.0.2.1) -> CheckIPHeader
///     -> esp :: IPClassifier(ip proto 50 and src host 192.0.2.1 and dst host 192.0.2.2, -);
/// esp[0] -> c :: Counter -> Discard;
/// esp[1] -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 80
/// ```
#[derive(Args)]
#[element(
    name = "IPsecEncap",
    group = "ip",
    shards = "independent",
    flows = "changes",
    see = "IPEncap, FixIPSrc, IPsecESPEncap, RadixIPsecLookup",
    drops = "too_long",
    fates = "changed"
)]
pub struct IPsecEncapArgs {
    /// Protocol, by number or name: 50 for ESP.
    #[arg(position)]
    proto: IpProtocol,
}

pub struct IPsecEncap {
    header: HeaderTemplate,
}

impl Filter for IPsecEncap {
    type Args = IPsecEncapArgs;

    fn new(args: IPsecEncapArgs, _: &mut Setup) -> Result<IPsecEncap, SetupError> {
        Ok(IPsecEncap { header: HeaderTemplate::new(args.proto.0, Ipv4Addr::UNSPECIFIED) })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let length = u16::try_from(packet.len() + 20).ok();
        let Some(length) = length.filter(|_| packet.prepend(20).is_some()) else {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        };
        let destination = packet.destination_ip();
        self.header.write(packet.data_mut(), length, destination);
        packet.set_network(0, 20);
        packet.set_annotation_u8(annotation::FIX_IP_SRC.offset.into(), 1);
        Verdict::Pass(packet)
    }
}
