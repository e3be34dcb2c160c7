//! `IPInputCombo`: combines a router's input processing of IPv4 packets.

use core::net::Ipv4Addr;

use element::arguments::SpaceSeparated;
use element::prelude::*;

use super::headercheck::{HeaderCheck, REASONS, SourceArguments};
use crate::changing::strip;

/// Combines Paint, Strip, CheckIPHeader and GetIPAddress in one element, for the input side of an IP router.
///
/// It is equivalent to `Paint(COLOR) -> Strip(14) -> CheckIPHeader(BADSRC) -> GetIPAddress(16)`, except that it always
/// drops packets that fail the check. It uses the drop reasons of `CheckIPHeader`.
/// ```click
/// InfiniteSource(DATA \<0202020202020101010101010800 4500001400000000401166d70a0000010a000002>, LIMIT 2, STOP true)
///     -> i :: IPInputCombo(3, INTERFACES 10.0.0.2/24)
///     -> p :: CheckPaint(3) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// i.drops = 0
/// c.byte_count = 40
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "IPInputCombo",
    group = "ip",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    logs,
    see = "Paint, CheckIPHeader, Strip, GetIPAddress, IPOutputCombo",
    drops = "too_short, bad_version, bad_header_length, bad_length, bad_checksum, bad_source",
    fates = "changed"
)]
pub struct IPInputComboArgs {
    #[arg(flatten)]
    sources: SourceArguments,
    /// Paint of the packets.
    #[arg(position)]
    color: i32,
    /// Source addresses to reject, in addition to 0.0.0.0 and 255.255.255.255.
    #[arg(position, keyword = "BADSRC*")]
    old_badsrc: Option<SpaceSeparated<Ipv4Addr>>,
}

pub struct IPInputCombo {
    color: u8,
    check: HeaderCheck,
    drops: u64,
}

impl IPInputCombo {
    #[cold]
    fn reject(&mut self, cx: &Context, packet: Packet, reason: usize) -> Verdict {
        if self.drops == 0 {
            cx.log("IP checksum failed");
        }
        self.drops += 1;
        Verdict::Drop(packet, REASONS.get(reason).map_or(Reason::UNDECLARED, |fault| fault.drop))
    }
}

impl Filter for IPInputCombo {
    type Args = IPInputComboArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Packets that failed the check.", |element| element.drops.to_string())];

    fn new(args: IPInputComboArgs, _: &mut Setup) -> Result<IPInputCombo, SetupError> {
        let mut check = HeaderCheck::new(true, args.sources);
        if let Some(list) = args.old_badsrc {
            check.set_old_bad_sources(list);
        }
        Ok(IPInputCombo { color: args.color as u8, check, drops: 0 })
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        packet.set_paint(self.color);
        strip(cx, &mut packet, 14);
        match self.check.check(&mut packet, 0) {
            Ok(()) => Verdict::Pass(packet),
            Err(reason) => self.reject(cx, packet, reason),
        }
    }
}
