//! `TCPRewriter`: rewrites addresses, ports and sequence numbers of TCP by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, TcpArguments};
use super::handlers::{first_table, handlers, look_up};
use super::rewriter::{Kind, Rewriter, Settings};
use super::translate::Shape;

/// Rewrites the addresses, ports and sequence numbers of TCP packets by flow.
///
/// It is an `IPRewriter` (which see) for TCP alone. Sequence and acknowledgement numbers, those in selective
/// acknowledgements included, move where another element has made the data longer or shorter, as `FTPPortMapper` does.
///
/// ## Differences
///
/// Of several flows that may go, and have the same millisecond to go, it is not said which goes first. The lines of a
/// table stand in another order. A specification that names no element is found out when the router starts.
///
/// ```click
/// FastTCPFlows(0, 4, 60, 0:0:0:0:0:1, 10.0.0.1, 0:0:0:0:0:2, 5.0.0.5, 1, 4) -> Unqueue -> Strip(14) -> CheckIPHeader
///     -> rw :: TCPRewriter(pattern 1.0.0.1 2000-3000# - - 0 0)
///     -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// c.count = 4
/// rw.table_size = 1
/// ```
#[derive(Args)]
#[element(
    name = "TCPRewriter",
    group = "rewriting",
    ports = "1-/1-",
    processing = "h/h",
    see = "IPRewriter, IPAddrRewriter, IPAddrPairRewriter, IPRewriterPatterns, FTPPortMapper",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows"
)]
pub(crate) struct TCPRewriterArgs {
    #[arg(flatten)]
    tcp: TcpArguments,
    /// Whether the destination annotation becomes the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// What makes a rewriter an TCPRewriter.
pub(crate) struct TCPRewriterKind;

/// The element.
pub(crate) type TCPRewriter = Rewriter<TCPRewriterKind>;

impl Kind for TCPRewriterKind {
    type Args = TCPRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, a line for each direction.", first_table),
        Handler::read_with("mappings", "An older name of `table`.", first_table),
        Handler::read_with(
            "lookup",
            "The new addresses and ports of packets with given ones: SADDR SPORT DADDR DPORT.",
            look_up,
        ),
    ];
    const SHAPE: Shape = Shape::Tcp;

    fn settings(args: TCPRewriterArgs) -> Settings {
        args.flows.settings(vec![args.tcp.lifetimes()], args.dst_anno)
    }
}
