//! `CheckIPHeader2`: separates packets with sound IPv4 headers, whatever their checksums.

use core::net::Ipv4Addr;

use element::arguments::{Ip4PrefixOrHost, Spaced};
use element::prelude::*;

use super::checkipheader::{CheckIPHeader, First};
use super::headercheck::{HeaderCheck, REASONS};
use super::tally::Tally;

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
    /// Addresses of the router with prefix lengths: their broadcast addresses are bad sources, they are good destinations.
    interfaces: Option<Spaced<Ip4PrefixOrHost>>,
    /// Sources that are refused.
    badsrc: Option<Spaced<Ipv4Addr>>,
    /// Destinations for which any source will do.
    gooddst: Option<Spaced<Ipv4Addr>>,
    /// Whether every refusal is told on the console.
    #[arg(default = "false")]
    verbose: bool,
    /// Whether refusals are counted by reason.
    #[arg(default = "false")]
    details: bool,
    /// Whether the checksum is looked at.
    #[arg(default = "false")]
    checksum: bool,
    /// The offset of the header in bytes, or bad sources in the old syntax.
    #[arg(position, keyword = "BADSRC*")]
    first: Option<First>,
    /// Where the header starts, in bytes.
    #[arg(position)]
    offset: Option<u32>,
}

/// The element.
pub struct CheckIPHeader2 {
    check: CheckIPHeader,
}

impl Filter for CheckIPHeader2 {
    type Args = CheckIPHeader2Args;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets refused.", |element| element.check.tally().drops()),
        Handler::read_with("drop_details", "Packets refused by reason, with DETAILS.", |element, _, _| {
            element.check.tally().details()
        }),
    ];

    fn new(args: CheckIPHeader2Args, _: &mut Setup) -> Result<CheckIPHeader2, SetupError> {
        let check = HeaderCheck::new(args.checksum, args.interfaces, args.badsrc, args.gooddst);
        let tally = Tally::new(REASONS, args.verbose, args.details);
        Ok(CheckIPHeader2 { check: CheckIPHeader::make(check, args.first, args.offset, tally) })
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
