//! `CheckIPHeader`: separates packets with invalid IPv4 headers.

use core::marker::PhantomData;

use element::arguments::{Arguments, Raw};
use element::prelude::*;

use super::checker::{Check, Checker};
use super::faults::{FaultArguments, HeaderFault};
use super::headercheck::{HeaderCheck, REASONS, SourceArguments};

/// Validates IPv4 headers, marks them, and trims packets to the length that the header states.
///
/// Version, header length, total length and checksum must be correct. With INTERFACES, BADSRC or GOODDST, the source
/// address must also be one that a router may accept (RFC 1812, section 5.3.7). The destination annotation is set to
/// the destination address. Other packets go to output 1, or are dropped as `too_short`, `bad_version`,
/// `bad_header_length`, `bad_length`, `bad_checksum` or `bad_source`. The first bad packet is logged.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> good :: CheckIPHeader(INTERFACES 10.0.0.2/24)
///     -> shifted :: CheckIPHeader(OFFSET 4, DETAILS true)
///     -> Discard;
/// shifted[1] -> bad :: Counter -> Discard;
/// ```
/// ```expect
/// good.drops = 0
/// shifted.drops = 2
/// bad.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckIPHeader",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops, drop_details",
    logs,
    see = "CheckIPHeader2, MarkIPHeader, SetIPChecksum, StripIPHeader, CheckTCPHeader, CheckUDPHeader, CheckICMPHeader",
    drops = "too_short, bad_version, bad_header_length, bad_length, bad_checksum, bad_source",
    fates = "changed"
)]
pub struct CheckIPHeaderArgs {
    #[arg(flatten)]
    sources: SourceArguments,
    #[arg(flatten)]
    faults: FaultArguments,
    /// Verify the checksum.
    #[arg(default = "true")]
    checksum: bool,
    #[arg(flatten)]
    position: OffsetArguments,
}

/// Where the header starts.
#[derive(ArgumentGroup)]
pub struct OffsetArguments {
    /// Offset of the header in bytes.
    offset: Option<u32>,
    /// The same without its keyword.
    #[arg(rest, keyword = "OFFSET*")]
    old: Vec<Raw>,
}

pub type CheckIPHeader = Checker<IpCheck<CheckIPHeaderArgs>>;

/// The arguments of this element or of `CheckIPHeader2`.
pub trait IpCheckArguments: Args + 'static {
    /// The common arguments, and whether the checksum is verified.
    #[doc(hidden)]
    fn into_parts(self) -> (SourceArguments, FaultArguments, OffsetArguments, bool);
}

impl IpCheckArguments for CheckIPHeaderArgs {
    fn into_parts(self) -> (SourceArguments, FaultArguments, OffsetArguments, bool) {
        (self.sources, self.faults, self.position, self.checksum)
    }
}

/// The check of an IPv4 header.
pub struct IpCheck<K> {
    check: HeaderCheck,
    offset: usize,
    arguments: PhantomData<K>,
}

impl<K: IpCheckArguments> Check for IpCheck<K> {
    type Args = K;
    const REASONS: &'static [HeaderFault] = REASONS;

    fn new(args: K, setup: &Setup) -> Result<(Self, FaultArguments), SetupError> {
        let (sources, faults, OffsetArguments { offset, old }, checksum) = args.into_parts();
        let check = HeaderCheck::new(checksum, sources);
        let offset = match old.as_slice() {
            [] => offset,
            [Raw(text)] if let Ok(offset) = u32::from_argument(text, setup) => Some(offset),
            _ => return Err(Arguments::of(old.into_iter().map(|Raw(text)| text).collect()).finish()),
        };
        Ok((IpCheck { check, offset: offset.unwrap_or(0) as usize, arguments: PhantomData }, faults))
    }

    #[inline(always)]
    fn fault(&self, packet: &mut Packet) -> Option<usize> {
        self.check.check(packet, self.offset).err()
    }

    #[inline(always)]
    fn pass(&self, packet: &mut Packet) -> bool {
        self.check.pass(packet, self.offset)
    }

    fn subject(cx: &Context) -> String {
        format!("{}: IP header", cx.name())
    }
}
