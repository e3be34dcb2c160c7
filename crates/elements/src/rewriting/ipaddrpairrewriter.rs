//! `IPAddrPairRewriter`: rewrites addresses by pairs of them.

use element::arguments::{Annotation, Raw};
use element::prelude::*;

use super::arguments::rewriter_arguments;
use super::handlers::{first_table, handlers};
use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Kind, Rewriter, Settings, annotations, seconds};
use super::translate::Shape;

rewriter_arguments! {
    /// Rewrites the addresses of packets by pairs of source and destination.
    ///
    /// It is an `IPRewriter` (which see) for packets of any protocol, whose flows are told by both addresses. Its patterns are
    /// `SADDR DADDR`, where SADDR may be a range or prefix as in `IPAddrRewriter`.
    ///
    /// ## Differences
    ///
    /// Of several flows that may go, and have the same millisecond to go, it is not said which goes first. The lines of a table
    /// stand in another order. A specification that names no element is found out when the router starts.
    ///
    /// ```click
    /// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
    ///     -> rw :: IPAddrPairRewriter(pattern 1.0.0.1 6.0.0.6 0 1, drop);
    /// rw[0] -> IPMirror -> [1]rw;
    /// rw[1] -> back :: IPClassifier(src host 5.0.0.5 and dst host 10.0.0.1, -);
    /// back[0] -> right :: Counter -> Discard;
    /// back[1] -> wrong :: Counter -> Discard;
    /// ```
    /// ```expect
    /// right.count = 3
    /// wrong.count = 0
    /// rw.patterns = 1.0.0.1 6.0.0.6 [1]\n<drop>
    /// ```
    #[derive(Args)]
    #[element(
        name = "IPAddrPairRewriter",
        group = "rewriting",
        ports = "1-/1-",
        processing = "h/h",
        see = "IPRewriter, IPAddrRewriter, TCPRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, StoreIPAddress"
    )]
    IPAddrPairRewriterArgs {
        /// How long a flow lives.
        #[arg(default = "2h")]
        timeout: Timestamp,
        /// How long after a packet a flow is kept in any case.
        #[arg(default = "5")]
        guarantee: Timestamp,
    } []
}

/// What makes a rewriter an IPAddrPairRewriter.
pub(crate) struct IPAddrPairRewriterKind;

/// The element.
pub(crate) type IPAddrPairRewriter = Rewriter<IPAddrPairRewriterKind>;

impl Kind for IPAddrPairRewriterKind {
    type Args = IPAddrPairRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, a line for each direction.", first_table),
        Handler::read_with("mappings", "An older name of `table`.", first_table),
    ];
    const SHAPE: Shape = Shape::AddressPair;

    fn settings(args: IPAddrPairRewriterArgs) -> Settings {
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
