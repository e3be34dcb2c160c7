//! `CheckIPHeader2`: separates packets with invalid IPv4 headers, without checking checksums.

use element::prelude::*;

use super::checker::Checker;
use super::checkipheader::{IpCheck, Kind, PlaceArguments};
use super::headercheck::SourceArguments;
use super::tally::TallyArguments;

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
    see = "CheckIPHeader, StripIPHeader, MarkIPHeader",
    drops = "too_short, bad_version, bad_header_length, bad_length, bad_checksum, bad_source"
)]
pub struct CheckIPHeader2Args {
    #[arg(flatten)]
    sources: SourceArguments,
    #[arg(flatten)]
    tally: TallyArguments,
    /// Verify the checksum.
    #[arg(default = "false")]
    checksum: bool,
    #[arg(flatten)]
    place: PlaceArguments,
}

pub type CheckIPHeader2 = Checker<IpCheck<CheckIPHeader2Args>>;

impl Kind for CheckIPHeader2Args {
    fn parts(self) -> (SourceArguments, TallyArguments, PlaceArguments, bool) {
        (self.sources, self.tally, self.place, self.checksum)
    }
}
