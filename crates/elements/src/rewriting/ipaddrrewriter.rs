//! `IPAddrRewriter`: rewrites source addresses.

use element::prelude::*;

use super::arguments::{AddressArguments, FlowArguments};
use super::handlers::{first_table, handlers};
use super::rewriter::{Kind, Rewriter, Settings};
use super::translate::Shape;

/// Rewrites the source addresses of packets, and the destination addresses of replies: basic NAT (RFC 3022).
///
/// It is an `IPRewriter` (which see) for packets of any protocol, whose flows are told by one address: the source of a
/// packet, or the destination of a reply. Its patterns are `SADDR -`, where SADDR may be a range `1.0.0.1-1.0.0.9` or a
/// prefix `1.0.0.0/28` (without its first and last address), of which a free address is chosen at random, or with `#`
/// behind it one after the other. The destination annotation is set in replies only.
///
/// ## Differences
///
/// Of several flows that may go, and have the same millisecond to go, it is not said which goes first. The lines of a
/// table stand in another order. A specification that names no element is found out when the router starts.
///
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
///     -> rw :: IPAddrRewriter(pattern 1.0.0.1-1.0.0.9# - 0 1, drop);
/// rw[0] -> IPMirror -> [1]rw;
/// rw[1] -> back :: IPClassifier(dst host 10.0.0.1, -);
/// back[0] -> right :: Counter -> Discard;
/// back[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 3
/// wrong.count = 0
/// rw.patterns = 1.0.0.1-1.0.0.9 - [1]\n<drop>
/// ```
#[derive(Args)]
#[element(
    name = "IPAddrRewriter",
    group = "rewriting",
    ports = "1-/1-",
    processing = "h/h",
    see = "IPRewriter, IPAddrPairRewriter, TCPRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, StoreIPAddress",
    drops = "no_mapping, no_free_mapping, bad_pattern, not_rewritable, too_many_flows"
)]
pub(crate) struct IPAddrRewriterArgs {
    #[arg(flatten)]
    addresses: AddressArguments,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// What makes a rewriter an IPAddrRewriter.
pub(crate) struct IPAddrRewriterKind;

/// The element.
pub(crate) type IPAddrRewriter = Rewriter<IPAddrRewriterKind>;

impl Kind for IPAddrRewriterKind {
    type Args = IPAddrRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, a line for each direction.", first_table),
        Handler::read_with("mappings", "An older name of `table`.", first_table),
    ];
    const SHAPE: Shape = Shape::Address;

    fn settings(args: IPAddrRewriterArgs) -> Settings {
        args.flows.settings(vec![args.addresses.lifetimes()], true)
    }
}
