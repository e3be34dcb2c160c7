//! `CheckICMPHeader`: separates packets with sound ICMP headers.

use element::prelude::*;
use packet::view::icmp4::kind::*;
use packet::{Icmp4View, Ip4View, protocol};

use crate::ip::{Reason, Tallied, Tally, TallyArguments};

/// Passes ICMP packets whose length fits their type and whose checksum is right.
///
/// Other packets go to output 1, or are dropped as `not_icmp`, `bad_length` or `bad_checksum`; the first of them is told
/// on the console. The IPv4 header must be marked.
/// ```click
/// InfiniteSource(LENGTH 4, LIMIT 2, STOP true)
///     -> ICMPPingEncap(10.0.0.1, 10.0.0.2) -> good :: CheckICMPHeader
///     -> Truncate(24) -> short :: CheckICMPHeader(DETAILS true)
///     -> Discard;
/// ```
/// ```expect
/// good.drops = 0
/// short.drops = 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckICMPHeader",
    group = "icmp",
    ports = "1/1-2",
    processing = "a/ah",
    commutes,
    see = "CheckIPHeader, CheckTCPHeader, CheckUDPHeader, MarkIPHeader"
)]
pub struct CheckICMPHeaderArgs {
    #[arg(flatten)]
    tally: TallyArguments,
}

static REASONS: &[Reason] = &[
    Reason { text: "not ICMP", drop: "not_icmp" },
    Reason { text: "bad packet length", drop: "bad_length" },
    Reason { text: "bad ICMP checksum", drop: "bad_checksum" },
];

/// The element.
pub struct CheckICMPHeader {
    tally: Tally,
}

/// The place of the fault among [`REASONS`], if there is one.
fn fault(packet: &Packet) -> Option<usize> {
    if Ip4View::new(packet.network()).is_none_or(|header| header.protocol() != protocol::ICMP) {
        return Some(0);
    }
    let bytes = packet.transport();
    let Some(message) = Icmp4View::new(bytes) else {
        return Some(1);
    };
    let fits = match message.kind() {
        // A header without options and eight bytes of what it carries.
        UNREACHABLE | TIME_EXCEEDED | PARAMETER_PROBLEM | SOURCE_QUENCH | REDIRECT => bytes.len() >= 8 + 28,
        TIMESTAMP | TIMESTAMP_REPLY => bytes.len() == 8 + 12,
        INFORMATION | INFORMATION_REPLY => bytes.len() == 8,
        _ => true,
    };
    if !fits {
        return Some(1);
    }
    (!message.checksum_is_right()).then_some(2)
}

impl Tallied for CheckICMPHeader {
    fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Filter for CheckICMPHeader {
    type Args = CheckICMPHeaderArgs;
    const HANDLERS: &'static [Handler<Self>] = &<Self as Tallied>::HANDLERS;

    fn new(args: CheckICMPHeaderArgs, _: &mut Setup) -> Result<CheckICMPHeader, SetupError> {
        Ok(CheckICMPHeader { tally: Tally::new(REASONS, args.tally) })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        fault(packet).is_none()
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        match fault(&packet) {
            None => Verdict::Pass(packet),
            Some(reason) => self
                .tally
                .refuse(cx, packet, reason, || format!("{} :: CheckICMPHeader: ICMP header", cx.name())),
        }
    }
}
