//! `CheckIPHeader2`: separates packets with invalid IPv4 headers, without checking checksums.

use element::prelude::*;

use super::checker::Checker;
use super::checkipheader::{IpCheck, IpCheckArguments, OffsetArguments};
use super::faults::FaultArguments;
use super::headercheck::SourceArguments;

/// Validates IPv4 headers like `CheckIPHeader`, but verifies the checksum only on request.
/// ```click
/// InfiniteSource(DATA \<4500001400000000401100000a0000010a000002>, LIMIT 2, STOP true)
///     -> lax :: CheckIPHeader2
///     -> strict :: CheckIPHeader2(CHECKSUM true)
///     -> Discard;
/// ```
/// ```expect
/// lax.drops = 0
/// strict.drops = 2
/// strict.losses = bad_checksum 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckIPHeader2",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops, drop_details",
    logs,
    see = "CheckIPHeader, StripIPHeader, MarkIPHeader",
    drops = "too_short, bad_version, bad_header_length, bad_length, bad_checksum, bad_source",
    fates = "changed"
)]
pub struct CheckIPHeader2Args {
    #[arg(flatten)]
    sources: SourceArguments,
    #[arg(flatten)]
    faults: FaultArguments,
    /// Verify the checksum.
    #[arg(default = "false")]
    checksum: bool,
    #[arg(flatten)]
    position: OffsetArguments,
}

pub type CheckIPHeader2 = Checker<IpCheck<CheckIPHeader2Args>>;

impl IpCheckArguments for CheckIPHeader2Args {
    fn into_parts(self) -> (SourceArguments, FaultArguments, OffsetArguments, bool) {
        (self.sources, self.faults, self.position, self.checksum)
    }
}
