//! `IPGWOptions`: processes IPv4 options as a router.

use core::net::Ipv4Addr;

use element::arguments::SpaceSeparated;
use element::prelude::*;
use packet::{Ip4View, Ip4ViewMut, annotation};

use super::gatewayoptions::{Router, RouterOptions, find_router_options};

/// Processes the record-route and timestamp options of IPv4 headers, as a router must.
///
/// Source routes are not processed, because they concern a router only in packets addressed to it. A packet with an
/// invalid option goes to output 1 with the offset of the bad byte in its parameter-problem annotation, for
/// `ICMPError`, or is dropped as `bad_option`. The checksum is recomputed if an option changed.
/// ```click
/// InfiniteSource(DATA \<4700001c000000004011000 00a0000010a0000020707040000000000>, LIMIT 2, STOP true)
///     -> MarkIPHeader -> g :: IPGWOptions(10.0.0.9) -> CheckIPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// g.drops = 0
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "IPGWOptions",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    see = "ICMPError",
    drops = "bad_option, no_ip_header",
    fates = "changed"
)]
pub struct IPGWOptionsArgs {
    /// The router's address on the outgoing interface.
    #[arg(position)]
    myaddr: Ipv4Addr,
    /// Further addresses of the router, for timestamp options that name routers.
    #[arg(position, default = "")]
    otheraddrs: SpaceSeparated<Ipv4Addr>,
}

pub struct IPGWOptions {
    args: IPGWOptionsArgs,
    drops: u64,
}

/// Processes the options of a marked header. The error is the offset of an invalid byte.
#[cold]
pub(super) fn process(packet: &mut Packet, router: &Router) -> Result<(), u8> {
    let length = packet.network_header_length();
    match packet.network().get(..length).map_or(RouterOptions::Absent, find_router_options) {
        RouterOptions::Absent => return Ok(()),
        RouterOptions::Malformed(offset) => return Err(offset),
        RouterOptions::Present => {}
    }
    let bytes = packet.network_mut();
    if router.process(bytes, length)?
        && let Some(mut header) = Ip4ViewMut::new(bytes)
    {
        header.fill_checksum();
    }
    Ok(())
}

/// Sets the annotation with the offset of the invalid byte.
pub(super) fn set_problem(packet: &mut Packet, offset: u8) {
    packet.set_annotation_u8(annotation::ICMP_PARAMPROB.offset.into(), offset);
}

impl Filter for IPGWOptions {
    type Args = IPGWOptionsArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Packets with invalid options.", |element| element.drops.to_string())];

    fn new(args: IPGWOptionsArgs, _: &mut Setup) -> Result<IPGWOptions, SetupError> {
        Ok(IPGWOptions { args, drops: 0 })
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if header.header_length() <= 20 {
            return Verdict::Pass(packet);
        }
        let router = Router { address: self.args.myaddr, others: &self.args.otheraddrs.0, now: cx.now() };
        match process(&mut packet, &router) {
            Ok(()) => Verdict::Pass(packet),
            Err(offset) => {
                self.drops += 1;
                set_problem(&mut packet, offset);
                Verdict::Divert(packet, Reason::BAD_OPTION)
            }
        }
    }
}
