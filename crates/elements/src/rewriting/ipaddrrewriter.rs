//! `IPAddrRewriter`: rewrites source addresses.

use element::arguments::{Annotation, Raw};
use element::prelude::*;

use super::arguments::rewriter_arguments;
use super::handlers::{first_table, handlers};
use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Kind, Rewriter, Settings, annotations, seconds};
use super::translate::Shape;

rewriter_arguments! {
    /// Rewrites the source addresses of packets, and the destination addresses of replies: basic NAT (RFC 3022).
    ///
    /// It is an `IPRewriter` (which see) for packets of any protocol, whose flows are told by one address: the source of a packet, or
    /// the destination of a reply. Its patterns are `SADDR -`, where SADDR may be a range `1.0.0.1-1.0.0.9` or a prefix `1.0.0.0/28`
    /// (without its first and last address), of which a free address is chosen at random, or with `#` behind it one after the other.
    /// The destination annotation is set in replies only.
    ///
    /// ## Differences
    ///
    /// Of several flows that may go, and have the same millisecond to go, it is not said which goes first. The lines of a table
    /// stand in another order. A specification that names no element is found out when the router starts.
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
        see = "IPRewriter, IPAddrPairRewriter, TCPRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, StoreIPAddress"
    )]
    IPAddrRewriterArgs {
        /// How long a flow lives.
        #[arg(default = "2h")]
        timeout: Timestamp,
        /// How long after a packet a flow is kept in any case.
        #[arg(default = "5")]
        guarantee: Timestamp,
    } []
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
        let lifetimes = Lifetimes {
            guarantee: seconds(args.guarantee),
            early: seconds(args.timeout),
            settled: 0,
            done: 0,
            tracking: Tracking::None,
        };
        args.into_settings(vec![lifetimes], true)
    }
}
