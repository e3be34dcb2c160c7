//! `CheckUDPHeader`: separates packets with invalid UDP headers.

use element::prelude::*;
use packet::{Ip4View, UdpView, protocol};

use crate::ip::{Check, Checker, FaultArguments, HeaderFault};

/// Validates UDP packets: the length must be correct, and the checksum correct or absent.
///
/// The UDP length must be at least that of the header, and at most that of the packet. Other packets go to output 1, or
/// are dropped as `not_udp`, `bad_length` or `bad_checksum`. The first bad packet is logged. The IPv4 header must be
/// marked.
///
/// ## Differences
///
/// CHECKSUM is one of FastClick.
/// ```click
/// InfiniteSource(LENGTH 4, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000) -> good :: CheckUDPHeader
///     -> StoreData(28, \<ffff>) -> bad :: CheckUDPHeader(DETAILS true)
///     -> Discard;
/// ```
/// ```expect
/// good.drops = 0
/// bad.drops = 2
/// bad.losses = bad_checksum 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckUDPHeader",
    group = "transport",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops, drop_details",
    logs,
    see = "CheckIPHeader, CheckTCPHeader, CheckICMPHeader, MarkIPHeader",
    drops = "bad_length, bad_checksum, not_udp"
)]
pub struct CheckUDPHeaderArgs {
    /// Verify the checksum.
    #[arg(default = "true")]
    checksum: bool,
    #[arg(flatten)]
    faults: FaultArguments,
}

pub type CheckUDPHeader = Checker<UdpCheck>;

/// The check of UDP lengths and checksums.
pub struct UdpCheck {
    checksum: bool,
}

impl Check for UdpCheck {
    type Args = CheckUDPHeaderArgs;
    const REASONS: &'static [HeaderFault] = &[
        HeaderFault { text: "not UDP", drop: Reason::NOT_UDP },
        HeaderFault { text: "bad packet length", drop: Reason::BAD_LENGTH },
        HeaderFault { text: "bad UDP checksum", drop: Reason::BAD_CHECKSUM },
    ];

    fn new(args: CheckUDPHeaderArgs, _: &Setup) -> Result<(Self, FaultArguments), SetupError> {
        Ok((UdpCheck { checksum: args.checksum }, args.faults))
    }

    #[inline]
    fn fault(&self, packet: &mut Packet) -> Option<usize> {
        let Some(header) = Ip4View::new(packet.network()).filter(|header| header.protocol() == protocol::UDP)
        else {
            return Some(0);
        };
        let bytes = packet.transport();
        let Some(udp) = UdpView::new(bytes).filter(|udp| (8..=bytes.len()).contains(&udp.length().into()))
        else {
            return Some(1);
        };
        (self.checksum && !udp.checksum_is_right(header.pseudo_header(udp.length()))).then_some(2)
    }

    fn subject(_: &Context) -> String {
        "UDP header".into()
    }
}
