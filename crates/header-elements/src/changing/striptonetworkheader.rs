//! `StripToNetworkHeader`: removes the bytes before the network header.

use element::prelude::*;

/// Removes everything before the network header, or restores the network header if it was stripped.
///
/// `CheckIPHeader` and `MarkIPHeader` set the network header annotation that it needs.
///
/// ## Differences
/// A packet without a network header annotation is dropped as `no_network_header`; in Click it must not occur.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> MarkIPHeader(14) -> StripToNetworkHeader
///     -> stripped :: Counter -> Discard;
/// ```
/// ```expect
/// stripped.count = 2
/// stripped.byte_count = 92
/// ```
#[derive(Args)]
#[element(
    name = "StripToNetworkHeader",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "Strip, MarkIPHeader",
    drops = "no_network_header",
    fates = "changed"
)]
pub struct StripToNetworkHeaderArgs {}

pub struct StripToNetworkHeader;

impl Filter for StripToNetworkHeader {
    type Args = StripToNetworkHeaderArgs;

    fn new(_: StripToNetworkHeaderArgs, _: &mut Setup) -> Result<StripToNetworkHeader, SetupError> {
        Ok(StripToNetworkHeader)
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(offset) = packet.network_offset() else {
            return Verdict::Drop(packet, Reason::NO_NETWORK_HEADER);
        };
        if offset >= 0 {
            packet.strip(offset.unsigned_abs());
        } else {
            // The header is in the headroom, so the headroom is large enough.
            packet.unstrip(offset.unsigned_abs());
        }
        Verdict::Pass(packet)
    }
}
