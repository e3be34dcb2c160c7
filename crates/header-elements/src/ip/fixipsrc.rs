//! `FixIPSrc`: sets the router's source address in packets that request it.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::{Ip4View, Ip4ViewMut, annotation};

/// Sets the IPv4 source address of packets that have the fix-source annotation, and updates the checksum.
///
/// Elements such as `ICMPError` set this annotation, because the router's address is known only at the outgoing
/// interface. FixIPSrc clears it. Other packets, packets without a marked header, and IPv6 packets pass unchanged.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> SetAnnoByte(FIX_IP_SRC, 1)
///     -> FixIPSrc(10.9.9.9)
///     -> check :: CheckIPHeader(BADSRC 10.9.9.9, DETAILS true)
///     -> Discard;
/// ```
/// ```expect
/// check.drops = 2
/// check.losses = bad_source 2
/// ```
#[derive(Args)]
#[element(
    name = "FixIPSrc",
    group = "ip",
    order_insensitive,
    see = "ICMPError",
    fates = "changed",
    shards = "independent",
    flows = "changes"
)]
pub struct FixIPSrcArgs {
    /// Source address to set.
    #[arg(position)]
    ipaddr: Ipv4Addr,
}

pub struct FixIPSrc {
    source: Ipv4Addr,
}

/// Sets the source address of a packet that requests it. Returns whether it did.
#[inline]
pub(super) fn fix_source(packet: &mut Packet, source: Ipv4Addr) -> bool {
    const ANNOTATION: usize = annotation::FIX_IP_SRC.offset as usize;
    let is_ip4 = |packet: &Packet| Ip4View::new(packet.network()).is_some_and(|header| header.version() == 4);
    if packet.annotation_u8(ANNOTATION) == 0 || !is_ip4(packet) {
        return false;
    }
    packet.set_annotation_u8(ANNOTATION, 0);
    if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
        header.set_source(source);
        header.fill_checksum();
    }
    true
}

impl Filter for FixIPSrc {
    type Args = FixIPSrcArgs;

    fn new(args: FixIPSrcArgs, _: &mut Setup) -> Result<FixIPSrc, SetupError> {
        Ok(FixIPSrc { source: args.ipaddr })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        fix_source(packet, self.source);
        true
    }
}
