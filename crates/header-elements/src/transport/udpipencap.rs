//! `UDPIPEncap`: encapsulates packets in UDP and IPv4.

use core::net::Ipv4Addr;

use element::arguments::{ArgumentError, UdpPort};
use element::prelude::*;
use packet::protocol;

use super::encapsulation;
use crate::ip::{Destination, HeaderTemplate};

/// Adds UDP and IPv4 headers with fixed addresses and ports.
///
/// The destination annotation is set to DST; with DST `DST_ANNO`, the destination is taken from the annotation. The
/// time to live is 250; the identification counts from 0.
///
/// ## Differences
///
/// A UDP checksum of zero is sent as 0xffff (RFC 768), since zero means no checksum. Without CHECKSUM, Click may leave
/// the checksum out.
/// ```click
/// InfiniteSource(LENGTH 12, LIMIT 3, STOP true)
///     -> u :: UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, domain)
///     -> CheckIPHeader -> CheckUDPHeader
///     -> c :: Counter -> Discard;
/// ```
/// ```expect
/// u.dst = 10.0.0.2
/// u.dport = 53
/// c.count = 3
/// c.byte_count = 120
/// ```
#[derive(Args)]
#[element(
    name = "UDPIPEncap",
    group = "transport",
    shards = "independent",
    flows = "changes",
    see = "Strip, IPEncap",
    drops = "too_long",
    fates = "changed"
)]
pub struct UDPIPEncapArgs {
    /// Source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// Source port.
    #[arg(position)]
    sport: UdpPort,
    /// Destination address, or `DST_ANNO`.
    #[arg(position)]
    dst: DestinationArgument,
    /// Destination port.
    #[arg(position)]
    dport: UdpPort,
    /// Compute the UDP checksum.
    #[arg(position, default = "true")]
    checksum: bool,
}

/// A destination address, or `DST_ANNO`; the error for invalid text is Click's.
struct DestinationArgument(Destination);

impl FromArgument for DestinationArgument {
    const KIND: &'static str = Destination::KIND;

    fn from_argument(text: &str, setup: &Setup) -> Result<DestinationArgument, ArgumentError> {
        Destination::from_argument(text, setup)
            .map(DestinationArgument)
            .map_err(|_| ArgumentError::semantic("bad DST"))
    }
}

pub struct UDPIPEncap {
    args: UDPIPEncapArgs,
    header: HeaderTemplate,
}

impl Filter for UDPIPEncap {
    type Args = UDPIPEncapArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "Source address.", |element| element.args.src.to_string()),
        Handler::argument("src", (Some(0), "SRC"), "Sets the source address.", |element, cx, value| {
            element.args.src = cx.argument(value)?;
            element.header.set_source(element.args.src);
            Ok(())
        }),
        Handler::read("sport", "Source port.", |element| element.args.sport.0.to_string()),
        Handler::argument("sport", (Some(1), "SPORT"), "Sets the source port.", |element, cx, value| {
            element.args.sport = cx.argument(value)?;
            Ok(())
        }),
        Handler::read("dst", "Destination address; 0.0.0.0 for `DST_ANNO`.", |element| {
            match element.args.dst.0 {
                Destination::Address(address) => address.to_string(),
                Destination::Annotation => Ipv4Addr::UNSPECIFIED.to_string(),
            }
        }),
        Handler::argument(
            "dst",
            (Some(2), "DST"),
            "Sets the destination address, or `DST_ANNO`.",
            |element, cx, value| {
                element.args.dst = cx.argument(value)?;
                Ok(())
            },
        ),
        Handler::read("dport", "Destination port.", |element| element.args.dport.0.to_string()),
        Handler::argument("dport", (Some(3), "DPORT"), "Sets the destination port.", |element, cx, value| {
            element.args.dport = cx.argument(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: UDPIPEncapArgs, _: &mut Setup) -> Result<UDPIPEncap, SetupError> {
        let header = HeaderTemplate::new(protocol::UDP, args.src);
        Ok(UDPIPEncap { args, header })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if !encapsulation::make_room(&mut packet) {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        let UDPIPEncap { args, header } = self;
        let addresses = [args.src, args.dst.0.of(&mut packet)];
        encapsulation::write(&mut packet, header, addresses, [args.sport.0, args.dport.0], args.checksum);
        Verdict::Pass(packet)
    }
}
