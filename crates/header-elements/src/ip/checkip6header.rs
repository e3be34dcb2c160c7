//! `CheckIP6Header`: separates packets with invalid IPv6 headers.

use core::net::Ipv6Addr;

use element::arguments::{ArgumentError, SpaceSeparated};
use element::prelude::*;
use packet::Ip6View;
use packet::view::ip6::LENGTH;

/// Validates IPv6 headers, marks them, and trims packets to the length that the header states.
///
/// Version and payload length must be correct, and the source must be neither all ones nor one of BADADDRS. Other
/// packets go to output 1, or are dropped as `too_short`, `bad_version`, `bad_length` or `bad_source`. The first bad
/// packet is logged.
/// ```click
/// InfiniteSource(DATA \<6000000000003b0220010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 2, STOP true)
///     -> good :: CheckIP6Header -> bad :: CheckIP6Header("2001:db8::1 ::1") -> Discard;
/// ```
/// ```expect
/// good.drops = 0
/// bad.drops = 2
/// bad.losses = bad_source 2
/// ```
/// ## Differences
/// A list of addresses may be written without quotes, as older configurations do.
#[derive(Args)]
#[element(
    name = "CheckIP6Header",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    logs,
    see = "MarkIP6Header",
    drops = "too_short, bad_version, bad_length, bad_source",
    fates = "changed"
)]
pub struct CheckIP6HeaderArgs {
    /// Source addresses to reject.
    #[arg(position, default = "")]
    badaddrs: Sources,
    /// Offset of the header in bytes.
    #[arg(position, default = "0")]
    offset: i32,
}

/// A list of addresses, parsed after the other arguments.
pub(super) struct Sources(SpaceSeparated<Ipv6Addr>);

impl FromArgument for Sources {
    const KIND: &'static str = <SpaceSeparated<Ipv6Addr> as FromArgument>::KIND;

    fn from_argument(text: &str, setup: &Setup) -> Result<Sources, ArgumentError> {
        let list = SpaceSeparated::from_argument(&element::text::unquote(text), setup);
        // In Click several addresses are quoted; other lists are errors of syntax.
        list.map(Sources).map_err(|_| match element::text::words(text).len() {
            0 | 1 => ArgumentError::semantic("expects IP6ADDRESS -a "),
            _ => ArgumentError::Syntax,
        })
    }
}

pub struct CheckIP6Header {
    args: CheckIP6HeaderArgs,
    drops: u64,
}

/// The source address that is always invalid.
const ALL_ONES: Ipv6Addr = Ipv6Addr::from_bits(u128::MAX);

impl CheckIP6Header {
    /// The length of the packet from the header on, or the reason for rejecting it.
    #[inline]
    fn checked_length(&self, bytes: &[u8]) -> Result<usize, Reason> {
        let header = Ip6View::new(bytes).ok_or(Reason::TOO_SHORT)?;
        let length = LENGTH + usize::from(header.payload_length());
        let source = header.source();
        if header.version() != 6 {
            Err(Reason::BAD_VERSION)
        } else if length > bytes.len() {
            Err(Reason::BAD_LENGTH)
        } else if source == ALL_ONES || self.args.badaddrs.0.0.contains(&source) {
            Err(Reason::BAD_SOURCE)
        } else {
            Ok(length)
        }
    }
}

impl Filter for CheckIP6Header {
    type Args = CheckIP6HeaderArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Packets that failed the check.", |element| element.drops.to_string())];

    fn new(args: CheckIP6HeaderArgs, _: &mut Setup) -> Result<CheckIP6Header, SetupError> {
        Ok(CheckIP6Header { args, drops: 0 })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let offset = self.args.offset as usize;
        match self.checked_length(packet.data().get(offset..).unwrap_or(&[])) {
            Ok(length) => {
                packet.set_network(offset as isize, LENGTH);
                packet.truncate(offset + length);
                Verdict::Pass(packet)
            }
            Err(reason) => {
                if self.drops == 0 {
                    cx.log("IP6 header check failed");
                }
                self.drops += 1;
                Verdict::Divert(packet, reason)
            }
        }
    }
}
