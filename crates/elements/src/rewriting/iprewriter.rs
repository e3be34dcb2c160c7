//! `IPRewriter`: rewrites addresses and ports of TCP and UDP by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, TcpArguments, seconds};
use super::handlers::{first_table, handlers, look_up, udp_table};
use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Kind, Rewriter, Settings};
use super::translate::Shape;

/// Rewrites the addresses and ports of TCP and UDP packets by flow: a network address and port translator (RFC 3022).
///
/// Packets of a known flow are rewritten and go to its output; its first packet, and those that make no flow, go by the
/// specification of their input:
///
/// - `drop` (or `discard`) drops them;
/// - `pass [OUTPUT]` sends them on as they are;
/// - `keep FOUTPUT ROUTPUT` begins a flow that changes nothing, with these outputs for its packets and the replies;
/// - `pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT` begins a flow whose packets get these addresses and ports; `-`
///   leaves a field as it is. SPORT may be a range `1024-65535`, of which a port is chosen that no flow to the same
///   place has: the packet's own if it is free, else a random one. `1024-65535#` chooses one after the other,
///   `1024-65535?` at random;
/// - `pattern NAME FOUTPUT ROUTPUT` takes a pattern of `IPRewriterPatterns`;
/// - the name of an element such as `RoundRobinIPMapper`, which chooses.
///
/// Replies get the addresses and ports of the first packet back. Packets need their IP header marked. What is neither
/// TCP nor UDP, later fragments and packets too short for ports are dropped as `not_rewritable`, unless the input says
/// `pass`; packets that may begin no flow as `no_mapping`, without a free port as `no_free_mapping`, without room as
/// `too_many_flows`.
///
/// Every packet renews its flow's guarantee. After that the flow lives until its timeout, and is taken away earlier
/// only to make room. A TCP flow has TCP_TIMEOUT once data went both ways, and TCP_DONE_TIMEOUT after FINs of both
/// sides or a reset; a UDP flow of three packets, one of them a reply, has UDP_STREAMING_TIMEOUT.
/// A new configuration takes over the flows of inputs whose specification is the same.
///
/// ## Differences
///
/// Of several flows that may go, and have the same millisecond to go, it is not said which goes first. The lines of a
/// table stand in another order. A specification that names no element is found out when the router starts.
///
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
///     -> rw :: IPRewriter(pattern 1.0.0.1 2000-3000# - - 0 1, drop);
/// rw[0] -> IPMirror -> [1]rw;
/// rw[1] -> back :: IPClassifier(dst host 10.0.0.1 and udp dst port 1000, -);
/// back[0] -> right :: Counter -> Discard;
/// back[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 3
/// wrong.count = 0
/// rw.table_size = 1
/// rw.patterns = 1.0.0.1 2000-3000 - - [1]\n<drop>
/// ```
#[derive(Args)]
#[element(
    name = "IPRewriter",
    group = "rewriting",
    ports = "1-/1-",
    processing = "h/h",
    see = "TCPRewriter, UDPRewriter, IPAddrRewriter, IPAddrPairRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, ICMPPingRewriter, FTPPortMapper",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows"
)]
pub(crate) struct IPRewriterArgs {
    #[arg(flatten)]
    tcp: TcpArguments,
    /// How long a UDP flow lives.
    #[arg(default = "5m")]
    udp_timeout: Timestamp,
    /// How long a UDP flow of packets both ways lives; as UDP_TIMEOUT if not given.
    udp_streaming_timeout: Option<Timestamp>,
    /// How long after a packet a UDP flow is kept in any case.
    #[arg(default = "5")]
    udp_guarantee: Timestamp,
    /// Whether the destination annotation becomes the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// What makes a rewriter an IPRewriter.
pub(crate) struct IPRewriterKind;

/// The element.
pub(crate) type IPRewriter = Rewriter<IPRewriterKind>;

impl Kind for IPRewriterKind {
    type Args = IPRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("tcp_table", "The TCP flows, a line for each direction.", first_table),
        Handler::read_with("udp_table", "The UDP flows, a line for each direction.", udp_table),
        Handler::read_with("tcp_mappings", "An older name of `tcp_table`.", first_table),
        Handler::read_with("udp_mappings", "An older name of `udp_table`.", udp_table),
        Handler::read_with(
            "tcp_lookup",
            "The new addresses and ports of TCP packets with given ones: SADDR SPORT DADDR DPORT.",
            look_up,
        ),
    ];
    const SHAPE: Shape = Shape::Both;

    fn settings(args: IPRewriterArgs) -> Settings {
        let udp = Lifetimes {
            guarantee: seconds(args.udp_guarantee),
            early: seconds(args.udp_timeout),
            settled: seconds(args.udp_streaming_timeout.unwrap_or(args.udp_timeout)),
            done: 0,
            tracking: Tracking::Udp,
        };
        args.flows.settings(vec![args.tcp.lifetimes(), udp], args.dst_anno)
    }
}
