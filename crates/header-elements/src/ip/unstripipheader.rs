//! `UnstripIPHeader`: restores a stripped IPv4 header.

use element::prelude::*;

/// Restores the marked IPv4 header in front of the packet's data, after it was stripped.
///
/// A packet without a marked header is dropped as `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> Strip(28) -> UnstripIPHeader -> UnstripIPHeader
///     -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.byte_count = 108
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "UnstripIPHeader",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "CheckIPHeader, MarkIPHeader, StripIPHeader",
    drops = "no_ip_header",
    fates = "changed"
)]
pub struct UnstripIPHeaderArgs;

pub struct UnstripIPHeader;

impl Filter for UnstripIPHeader {
    type Args = UnstripIPHeaderArgs;

    fn new(_: UnstripIPHeaderArgs, _: &mut Setup) -> Result<UnstripIPHeader, SetupError> {
        Ok(UnstripIPHeader)
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(offset) = packet.network_offset() else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if offset < 0 && !packet.unstrip(offset.unsigned_abs()) {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        }
        Verdict::Pass(packet)
    }
}
