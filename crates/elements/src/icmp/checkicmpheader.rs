//! `CheckICMPHeader`: separates packets with sound ICMP headers.

use element::prelude::*;
use packet::view::icmp4::kind::*;
use packet::{Icmp4View, Ip4View, protocol};

use crate::ip::{Reason, Tally};

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
    /// Whether every refusal is told on the console.
    #[arg(default = "false")]
    verbose: bool,
    /// Whether refusals are counted by reason.
    #[arg(default = "false")]
    details: bool,
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

impl Filter for CheckICMPHeader {
    type Args = CheckICMPHeaderArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets refused.", |element| element.tally.drops()),
        Handler::read_with("drop_details", "Packets refused by reason, with DETAILS.", |element, _, _| {
            element.tally.details()
        }),
    ];

    fn new(args: CheckICMPHeaderArgs, _: &mut Setup) -> Result<CheckICMPHeader, SetupError> {
        Ok(CheckICMPHeader { tally: Tally::new(REASONS, args.verbose, args.details) })
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
