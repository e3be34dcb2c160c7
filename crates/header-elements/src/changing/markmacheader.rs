//! `MarkMACHeader`: sets the link header annotation.

use element::prelude::*;

/// Sets the link header annotation to OFFSET bytes into each packet.
///
/// With a LENGTH above zero, it also sets the network header annotation LENGTH bytes further on. A position beyond the
/// end of the packet clears the annotation.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> MarkMACHeader(0, 14) -> StripToNetworkHeader
///     -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 92
/// ```
#[derive(Args)]
#[element(
    name = "MarkMACHeader",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "MarkIPHeader, StripToNetworkHeader"
)]
pub struct MarkMACHeaderArgs {
    /// Offset of the link header.
    #[arg(position, default = "0")]
    offset: u32,
    /// Length of the link header; 0 if unknown.
    #[arg(position, default = "0")]
    length: u32,
}

pub struct MarkMACHeader {
    args: MarkMACHeaderArgs,
}

impl Filter for MarkMACHeader {
    type Args = MarkMACHeaderArgs;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: MarkMACHeaderArgs, _: &mut Setup) -> Result<MarkMACHeader, SetupError> {
        Ok(MarkMACHeader { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let offset = self.args.offset as isize;
        match self.args.length {
            0 => packet.set_mac(offset),
            length => packet.set_mac_header(offset, length as usize),
        }
        true
    }
}
