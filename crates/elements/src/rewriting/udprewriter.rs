//! `UDPRewriter`: rewrites addresses and ports of UDP by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, seconds};
use super::handlers::{first_table, handlers};
use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Kind, Rewriter, Settings};
use super::translate::Shape;

/// Rewrites the addresses and ports of UDP packets by flow.
///
/// It is an `IPRewriter` (which see) with one table. It rewrites TCP and DCCP as well, but tells flows by addresses and
/// ports alone, so that any one of its kind should see packets of one protocol.
///
/// ## Differences
///
/// Of several flows that may go, and have the same millisecond to go, it is not said which goes first. The lines of a
/// table stand in another order. A specification that names no element is found out when the router starts.
///
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
///     -> rw :: UDPRewriter(pattern 1.0.0.1 2000-3000# - - 0 1, drop);
/// rw[0] -> IPMirror -> [1]rw;
/// rw[1] -> back :: IPClassifier(dst host 10.0.0.1 and udp dst port 1000, -);
/// back[0] -> right :: Counter -> Discard;
/// back[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 3
/// wrong.count = 0
/// rw.table_size = 1
/// ```
#[derive(Args)]
#[element(
    name = "UDPRewriter",
    group = "rewriting",
    ports = "1-/1-",
    processing = "h/h",
    see = "IPRewriter, TCPRewriter, IPAddrRewriter, IPAddrPairRewriter, IPRewriterPatterns",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows"
)]
pub(crate) struct UDPRewriterArgs {
    /// How long a flow lives.
    #[arg(default = "5m")]
    timeout: Timestamp,
    /// Another name of TIMEOUT.
    udp_timeout: Option<Timestamp>,
    /// How long a flow of packets both ways lives; as TIMEOUT if not given.
    streaming_timeout: Option<Timestamp>,
    /// Another name of STREAMING_TIMEOUT.
    udp_streaming_timeout: Option<Timestamp>,
    /// How long after a packet a flow is kept in any case.
    #[arg(default = "5")]
    guarantee: Timestamp,
    /// Another name of GUARANTEE.
    udp_guarantee: Option<Timestamp>,
    /// Whether the destination annotation becomes the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// What makes a rewriter an UDPRewriter.
pub(crate) struct UDPRewriterKind;

/// The element.
pub(crate) type UDPRewriter = Rewriter<UDPRewriterKind>;

impl Kind for UDPRewriterKind {
    type Args = UDPRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, a line for each direction.", first_table),
        Handler::read_with("mappings", "An older name of `table`.", first_table),
    ];
    const SHAPE: Shape = Shape::Udp;

    fn settings(args: UDPRewriterArgs) -> Settings {
        let early = args.udp_timeout.unwrap_or(args.timeout);
        let lifetimes = Lifetimes {
            guarantee: seconds(args.udp_guarantee.unwrap_or(args.guarantee)),
            early: seconds(early),
            settled: seconds(args.streaming_timeout.or(args.udp_streaming_timeout).unwrap_or(early)),
            done: 0,
            tracking: Tracking::Udp,
        };
        args.flows.settings(vec![lifetimes], args.dst_anno)
    }
}
