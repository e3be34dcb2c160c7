//! `CheckICMPHeader`: separates packets with invalid ICMP headers.

use element::prelude::*;
use packet::view::icmp4::kind::*;
use packet::{Icmp4View, Ip4View, protocol};

use crate::ip::{Check, Checker, FaultArguments, HeaderFault};

/// Validates ICMP packets: their length must fit their type, and their checksum must be correct.
///
/// Other packets go to output 1, or are dropped as `not_icmp`, `bad_length` or `bad_checksum`. The first bad packet is
/// logged. The IPv4 header must be marked.
/// ```click
/// InfiniteSource(LENGTH 4, LIMIT 2, STOP true)
///     -> ICMPPingEncap(10.0.0.1, 10.0.0.2) -> good :: CheckICMPHeader
///     -> Truncate(24) -> short :: CheckICMPHeader(DETAILS true)
///     -> Discard;
/// ```
/// ```expect
/// good.drops = 0
/// short.drops = 2
/// short.losses = bad_length 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckICMPHeader",
    group = "icmp",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops, drop_details",
    logs,
    see = "CheckIPHeader, CheckTCPHeader, CheckUDPHeader, MarkIPHeader",
    drops = "bad_length, bad_checksum, not_icmp"
)]
pub struct CheckICMPHeaderArgs {
    #[arg(flatten)]
    faults: FaultArguments,
}

pub type CheckICMPHeader = Checker<IcmpCheck>;

/// The check of ICMP lengths and checksums.
pub struct IcmpCheck;

impl Check for IcmpCheck {
    type Args = CheckICMPHeaderArgs;
    const REASONS: &'static [HeaderFault] = &[
        HeaderFault { text: "not ICMP", drop: Reason::NOT_ICMP },
        HeaderFault { text: "bad packet length", drop: Reason::BAD_LENGTH },
        HeaderFault { text: "bad ICMP checksum", drop: Reason::BAD_CHECKSUM },
    ];

    fn new(args: CheckICMPHeaderArgs, _: &Setup) -> Result<(Self, FaultArguments), SetupError> {
        Ok((IcmpCheck, args.faults))
    }

    #[inline]
    fn fault(&self, packet: &mut Packet) -> Option<usize> {
        if Ip4View::new(packet.network()).is_none_or(|header| header.protocol() != protocol::ICMP) {
            return Some(0);
        }
        let bytes = packet.transport();
        let Some(message) = Icmp4View::new(bytes) else {
            return Some(1);
        };
        let fits = match message.kind() {
            // An IP header without options and eight bytes of its payload.
            _ if message.is_error() => bytes.len() >= 8 + 28,
            TIMESTAMP | TIMESTAMP_REPLY => bytes.len() == 8 + 12,
            INFORMATION | INFORMATION_REPLY => bytes.len() == 8,
            _ => true,
        };
        if !fits {
            return Some(1);
        }
        (!message.checksum_is_right()).then_some(2)
    }

    fn subject(cx: &Context) -> String {
        format!("{} :: CheckICMPHeader: ICMP header", cx.name())
    }
}
