//! `IPEncap`: encapsulates packets in IPv4.

use core::net::Ipv4Addr;

use element::arguments::{ArgumentError, IpProtocol, Word};
use element::prelude::*;
use packet::view::ip4::DONT_FRAGMENT;

use super::destination::Destination;
use super::template::HeaderTemplate;

/// Adds an IPv4 header with a fixed protocol and fixed addresses.
///
/// The destination annotation is set to DST; with DST `DST_ANNO`, the destination is taken from the annotation. The
/// identification counts from 0.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true)
///     -> e :: IPEncap(ipip, 10.0.0.1, 10.0.0.2, TTL 3, DSCP 46)
///     -> CheckIPHeader -> DecIPTTL -> DecIPTTL -> last :: DecIPTTL
///     -> Discard;
/// ```
/// ```expect
/// e.src = 10.0.0.1
/// e.dst = 10.0.0.2
/// last.drops = 2
/// last.losses = ttl_expired 2
/// ```
#[derive(Args)]
#[element(
    name = "IPEncap",
    group = "ip",
    shards = "independent",
    flows = "changes",
    see = "UDPIPEncap, StripIPHeader",
    drops = "too_long",
    fates = "changed"
)]
pub struct IPEncapArgs {
    /// Protocol, by number or name.
    #[arg(position)]
    proto: IpProtocol,
    /// Source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// Destination address, or `DST_ANNO`.
    #[arg(position)]
    dst: Destination,
    /// Type-of-service byte; excludes DSCP, ECT and CE.
    tos: Option<i32>,
    /// Time to live.
    #[arg(default = "250")]
    ttl: u8,
    /// Differentiated services code point, 0 to 63.
    dscp: Option<i32>,
    /// Mark packets as ECN-capable; `2` for the codepoint ECT(1).
    #[arg(default = "false")]
    ect: Keyword,
    /// Mark packets as congestion experienced.
    #[arg(default = "false")]
    ce: bool,
    /// Set the don't-fragment flag.
    #[arg(default = "false")]
    df: bool,
}

/// A single unquoted word of letters, digits and some symbols.
struct Keyword(String);

impl FromArgument for Keyword {
    const KIND: &'static str = Word::KIND;

    fn from_argument(text: &str, _: &Setup) -> Result<Keyword, ArgumentError> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.:?!".contains(letter);
        Some(text)
            .filter(|text| text.chars().all(fits))
            .map(|text| Keyword(text.into()))
            .ok_or(ArgumentError::Syntax)
    }
}

pub struct IPEncap {
    source: Ipv4Addr,
    destination: Destination,
    header: HeaderTemplate,
}

impl IPEncapArgs {
    /// The type-of-service byte that the arguments specify.
    fn type_of_service(&self, setup: &Setup) -> Result<u8, SetupError> {
        let ect = match self.ect.0.as_str() {
            "2" => 2,
            text => bool::from_argument(text, setup)
                .map(u8::from)
                .map_err(|_| SetupError::new(format!("bad ECT value '{text}'")))?,
        };
        let (tos, dscp) = (self.tos.filter(|tos| *tos != -1), self.dscp.filter(|dscp| *dscp != -1));
        let problem = if tos.is_some() && dscp.is_some() {
            "cannot set both TOS and DSCP"
        } else if tos.is_some() && (ect > 0 || self.ce) {
            "cannot set both TOS and ECN bits"
        } else if tos.is_some_and(|tos| !(0..256).contains(&tos)) {
            "TOS too large; max 255"
        } else if dscp.is_some_and(|dscp| !(0..63).contains(&dscp)) {
            // 63 itself is rejected too.
            "DSCP too large; max 63"
        } else if ect > 0 && self.ce {
            "can set at most one ECN option"
        } else {
            let ecn = if self.ce { 3 } else { ect };
            return Ok(tos.unwrap_or(dscp.unwrap_or(0) << 2) as u8 | ecn);
        };
        Err(SetupError::new(problem))
    }
}

impl Filter for IPEncap {
    type Args = IPEncapArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "Source address.", |element| element.source.to_string()),
        Handler::argument("src", (Some(1), "SRC"), "Sets the source address.", |element, cx, value| {
            element.source = cx.argument(value)?;
            element.header.set_source(element.source);
            Ok(())
        }),
        Handler::read("dst", "Destination address, or `DST_ANNO`.", |element| match element.destination {
            Destination::Address(address) => address.to_string(),
            Destination::Annotation => "DST_ANNO".to_string(),
        }),
        Handler::argument(
            "dst",
            (Some(2), "DST"),
            "Sets the destination address, or `DST_ANNO`.",
            |element, cx, value| {
                element.destination = cx.argument(value)?;
                Ok(())
            },
        ),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: IPEncapArgs, setup: &mut Setup) -> Result<IPEncap, SetupError> {
        let tos = args.type_of_service(setup)?;
        let fragment = if args.df { DONT_FRAGMENT } else { 0 };
        let header = HeaderTemplate::new(args.proto.0, args.src).with(tos, fragment, args.ttl);
        Ok(IPEncap { source: args.src, destination: args.dst, header })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if packet.prepend(20).is_none() {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        let destination = self.destination.of(&mut packet);
        let bytes = packet.data_mut();
        let length = bytes.len() as u16;
        self.header.write(bytes, length, destination);
        packet.set_network(0, 20);
        Verdict::Pass(packet)
    }
}
