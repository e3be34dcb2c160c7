//! `CheckIPHeader2`: separates packets with sound IPv4 headers, whatever their checksums.

use element::prelude::*;

use super::checkipheader::{CheckIPHeader, PlaceArguments};
use super::headercheck::{HeaderCheck, SourceArguments};
use super::tally::{Tallied, Tally, TallyArguments};

/// Does what `CheckIPHeader` does, but looks at the checksum only when told to.
/// ```click
/// InfiniteSource(DATA \<4500001400000000401100000a0000010a000002>, LIMIT 2, STOP true)
///     -> lax :: CheckIPHeader2
///     -> strict :: CheckIPHeader2(CHECKSUM true)
///     -> Discard;
/// ```
/// ```expect
/// lax.drops = 0
/// strict.drops = 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckIPHeader2",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    commutes,
    see = "CheckIPHeader, StripIPHeader, MarkIPHeader"
)]
pub struct CheckIPHeader2Args {
    #[arg(flatten)]
    sources: SourceArguments,
    #[arg(flatten)]
    tally: TallyArguments,
    /// Whether the checksum is looked at.
    #[arg(default = "false")]
    checksum: bool,
    #[arg(flatten)]
    place: PlaceArguments,
}

/// The element.
pub struct CheckIPHeader2 {
    check: CheckIPHeader,
}

impl Tallied for CheckIPHeader2 {
    fn tally(&self) -> &Tally {
        self.check.tally()
    }
}

impl Filter for CheckIPHeader2 {
    type Args = CheckIPHeader2Args;
    const HANDLERS: &'static [Handler<Self>] = &<Self as Tallied>::HANDLERS;

    fn new(args: CheckIPHeader2Args, setup: &mut Setup) -> Result<CheckIPHeader2, SetupError> {
        let check = HeaderCheck::new(args.checksum, args.sources);
        Ok(CheckIPHeader2 { check: CheckIPHeader::make(check, args.place, args.tally, setup)? })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        self.check.pass_plain(packet)
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        self.check.judge(cx, packet)
    }
}
