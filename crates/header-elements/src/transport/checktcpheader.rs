//! `CheckTCPHeader`: separates packets with invalid TCP headers.

use element::prelude::*;
use packet::{Ip4View, TcpView, protocol};

use crate::ip::{Check, Checker, FaultArguments, HeaderFault};

/// Validates TCP packets: header length and checksum must be correct.
///
/// The marked IPv4 header gives the length of the segment. Other packets go to output 1, or are dropped as `not_tcp`,
/// `bad_length` or `bad_checksum`. The first bad packet is logged.
///
/// ## Differences
///
/// CHECKSUM is one of FastClick.
/// ```click
/// InfiniteSource(DATA \<0001000200000001000000025010ffff00000000>, LIMIT 2, STOP true)
///     -> IPEncap(tcp, 10.0.0.1, 10.0.0.2) -> bad :: CheckTCPHeader;
/// bad[0] -> Discard;
/// bad[1] -> SetTCPChecksum -> good :: CheckTCPHeader -> Discard;
/// ```
/// ```expect
/// bad.drops = 2
/// good.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "CheckTCPHeader",
    group = "transport",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops, drop_details",
    logs,
    see = "CheckIPHeader, CheckUDPHeader, CheckICMPHeader, MarkIPHeader",
    drops = "bad_length, bad_checksum, not_tcp"
)]
pub struct CheckTCPHeaderArgs {
    /// Verify the checksum.
    #[arg(default = "true")]
    checksum: bool,
    #[arg(flatten)]
    faults: FaultArguments,
}

pub type CheckTCPHeader = Checker<TcpCheck>;

/// The check of TCP lengths and checksums.
pub struct TcpCheck {
    checksum: bool,
}

impl Check for TcpCheck {
    type Args = CheckTCPHeaderArgs;
    const REASONS: &'static [HeaderFault] = &[
        HeaderFault { text: "not TCP", drop: Reason::NOT_TCP },
        HeaderFault { text: "bad packet length", drop: Reason::BAD_LENGTH },
        HeaderFault { text: "bad TCP checksum", drop: Reason::BAD_CHECKSUM },
    ];

    fn new(args: CheckTCPHeaderArgs, _: &Setup) -> Result<(Self, FaultArguments), SetupError> {
        Ok((TcpCheck { checksum: args.checksum }, args.faults))
    }

    #[inline]
    fn fault(&self, packet: &mut Packet) -> Option<usize> {
        let Some(header) = Ip4View::new(packet.network()).filter(|header| header.protocol() == protocol::TCP)
        else {
            return Some(0);
        };
        let length = header.total_length().saturating_sub(header.header_length() as u16);
        let segment = packet.transport().get(..length.into()).and_then(TcpView::new);
        let Some(tcp) = segment.filter(|tcp| (20..=length.into()).contains(&tcp.header_length())) else {
            return Some(1);
        };
        (self.checksum && !tcp.checksum_is_right(header.pseudo_header(length))).then_some(2)
    }

    fn subject(cx: &Context) -> String {
        format!("{} :: CheckTCPHeader: TCP header", cx.name())
    }
}
