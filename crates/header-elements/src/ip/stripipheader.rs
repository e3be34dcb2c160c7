//! `StripIPHeader`: removes the IPv4 header.

use element::prelude::*;

/// Strips everything up to the end of the marked IPv4 header, including options.
///
/// The marks stay, so elements can still read the header, and `UnstripIPHeader` can restore it. A packet whose header
/// is not marked, or ends beyond the packet, is dropped as `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> StripIPHeader -> inner :: Counter
///     -> UnstripIPHeader -> outer :: Counter
///     -> Discard;
/// ```
/// ```expect
/// inner.byte_count = 32
/// outer.byte_count = 72
/// inner.count = 2
/// outer.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "StripIPHeader",
    group = "ip",
    order_insensitive,
    shards = "independent",
    flows = "changes",
    see = "CheckIPHeader, CheckIPHeader2, MarkIPHeader, UnstripIPHeader, Strip",
    drops = "no_ip_header",
    fates = "changed"
)]
pub struct StripIPHeaderArgs;

pub struct StripIPHeader;

impl Filter for StripIPHeader {
    type Args = StripIPHeaderArgs;

    fn new(_: StripIPHeaderArgs, _: &mut Setup) -> Result<StripIPHeader, SetupError> {
        Ok(StripIPHeader)
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(offset) = packet.transport_offset() else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        packet.strip(usize::try_from(offset).unwrap_or(0));
        Verdict::Pass(packet)
    }
}
