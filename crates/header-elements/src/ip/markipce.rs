//! `MarkIPCE`: sets the congestion experienced (CE) code point of IPv4 packets.

use element::prelude::*;
use packet::Ip4View;

use super::typeofservice::set_bits;

/// Marks IPv4 packets as congestion experienced (ECN), and updates the checksum.
///
/// A packet that is not ECN-capable is dropped as `not_capable`, or marked too with FORCE. A packet without a marked
/// header is dropped as `no_ip_header`.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000) -> t :: Tee;
/// t[0] -> MarkIPCE -> none :: Counter -> Discard;
/// t[1] -> SetIPECN(ect1) -> MarkIPCE -> c :: CheckIPHeader -> some :: Counter -> Discard;
/// ```
/// ```expect
/// none.count = 0
/// some.count = 2
/// c.drops = 0
/// MarkIPCE@4.losses = not_capable 2
/// ```
#[derive(Args)]
#[element(
    name = "MarkIPCE",
    group = "ip",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    see = "SetIPECN",
    drops = "no_ip_header, not_capable",
    fates = "changed"
)]
pub struct MarkIPCEArgs {
    /// Mark packets that are not ECN-capable too.
    #[arg(position, default = "false")]
    force: bool,
}

pub struct MarkIPCE {
    args: MarkIPCEArgs,
}

impl Filter for MarkIPCE {
    type Args = MarkIPCEArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Always zero, as in Click; see `losses`.", |_| "0".to_string())];

    fn new(args: MarkIPCEArgs, _: &mut Setup) -> Result<MarkIPCE, SetupError> {
        Ok(MarkIPCE { args })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        match Ip4View::new(packet.network()).map(|header| header.ecn()) {
            Some(0) if !self.args.force => Verdict::Drop(packet, Reason::NOT_CAPABLE),
            Some(3) => Verdict::Pass(packet),
            _ => set_bits(packet, 3, 3),
        }
    }
}
