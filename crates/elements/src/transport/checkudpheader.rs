//! `CheckUDPHeader`: separates packets with sound UDP headers.

use element::prelude::*;
use packet::{Ip4View, UdpView, protocol};

use crate::ip::{Reason, Tallied, Tally, TallyArguments};

/// Passes UDP packets whose length is sound and whose checksum is right or absent.
///
/// The length must be that of a header at least, and of the packet at most.
/// Other packets go to output 1, or are dropped as `not_udp`, `bad_length` or `bad_checksum`; the first of them is told
/// on the console. The IPv4 header must be marked.
/// ```click
/// InfiniteSource(LENGTH 4, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000) -> good :: CheckUDPHeader
///     -> StoreData(28, \<ffff>) -> bad :: CheckUDPHeader(DETAILS true)
///     -> Discard;
/// ```
/// ```expect
/// good.drops = 0
/// bad.drops = 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckUDPHeader",
    group = "transport",
    ports = "1/1-2",
    processing = "a/ah",
    commutes,
    see = "CheckIPHeader, CheckTCPHeader, CheckICMPHeader, MarkIPHeader"
)]
pub struct CheckUDPHeaderArgs {
    #[arg(flatten)]
    tally: TallyArguments,
}

static REASONS: &[Reason] = &[
    Reason { text: "not UDP", drop: "not_udp" },
    Reason { text: "bad packet length", drop: "bad_length" },
    Reason { text: "bad UDP checksum", drop: "bad_checksum" },
];

/// The element.
pub struct CheckUDPHeader {
    tally: Tally,
}

/// The place of the fault among [`REASONS`], if there is one.
#[inline]
fn fault(packet: &Packet) -> Option<usize> {
    let Some(header) = Ip4View::new(packet.network()).filter(|header| header.protocol() == protocol::UDP)
    else {
        return Some(0);
    };
    let bytes = packet.transport();
    let Some(udp) = UdpView::new(bytes).filter(|udp| (8..=bytes.len()).contains(&udp.length().into())) else {
        return Some(1);
    };
    (!udp.checksum_is_right(header.pseudo_header(udp.length()))).then_some(2)
}

impl Tallied for CheckUDPHeader {
    fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Filter for CheckUDPHeader {
    type Args = CheckUDPHeaderArgs;
    const HANDLERS: &'static [Handler<Self>] = &<Self as Tallied>::HANDLERS;

    fn new(args: CheckUDPHeaderArgs, _: &mut Setup) -> Result<CheckUDPHeader, SetupError> {
        Ok(CheckUDPHeader { tally: Tally::new(REASONS, args.tally) })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        fault(packet).is_none()
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        match fault(&packet) {
            None => Verdict::Pass(packet),
            Some(reason) => self.tally.refuse(cx, packet, reason, || "UDP header".to_string()),
        }
    }
}
