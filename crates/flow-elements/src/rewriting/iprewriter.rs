//! `IPRewriter`: rewrites addresses and ports of TCP and UDP by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, TcpArguments, seconds};
use super::handlers::{first_table, handlers, lookup_flow, udp_table};
use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Rewriter, RewriterClass, Settings};
use super::translate::KeyFields;

/// Network address and port translation (NAPT, RFC 3022): rewrites TCP and UDP packets by flow.
///
/// Packets of a known flow are rewritten and go to the flow's output. For other packets, the specification of their
/// input applies:
///
/// - `drop` (or `discard`) drops them.
/// - `pass [OUTPUT]` forwards them unchanged and creates no flow.
/// - `keep FOUTPUT ROUTPUT` creates a flow without changes. FOUTPUT is the output for its packets, ROUTPUT for replies.
/// - `pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT` creates a flow with these addresses and ports; `-` keeps a
///   field. SPORT may be a range. From `1024-65535` it takes the original port if no flow to the same destination uses
///   it, else a random free one; `1024-65535#` chooses in sequence, `1024-65535?` at random.
/// - `pattern NAME FOUTPUT ROUTPUT` uses a pattern defined by `IPRewriterPatterns`.
/// - The name of an element such as `RoundRobinIPMapper` lets that element choose the pattern.
///
/// Replies are translated back. The IP header must be marked. Packets that are neither TCP nor UDP, fragments other
/// than the first, and packets too short for ports are dropped as `not_rewritable`, unless the input says `pass`.
/// Packets that must not create a flow are dropped as `no_mapping`, those for which no port is free as
/// `no_free_mapping`, and those that exceed the capacity as `too_many_flows`.
///
/// Each packet renews its flow's guarantee, during which the flow cannot be evicted. After that, it lives until its
/// timeout, or until a new flow needs its entry in a full table. A TCP flow has TCP_TIMEOUT once data has passed in
/// both directions, and TCP_DONE_TIMEOUT after FINs from both sides or a reset. A UDP flow has UDP_STREAMING_TIMEOUT
/// after three packets, at least one of them a reply. A hot swap keeps the flows of inputs whose specification is the
/// same.
///
/// ## Differences
///
/// Flows that expire in the same millisecond are evicted in unspecified order. Tables list flows in a different order.
/// A specification that names no element is reported when the router starts.
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
    mixes_inputs,
    upkeep,
    shards = "divide",
    sums = "table_size, nmappings, mapping_failures, patterns, size, capacity",
    lists = "tcp_table, udp_table, tcp_mappings, udp_mappings",
    flows = "keeps",
    see = "TCPRewriter, UDPRewriter, IPAddrRewriter, IPAddrPairRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, ICMPPingRewriter, FTPPortMapper",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows",
    fates = "changed"
)]
pub(crate) struct IPRewriterArgs {
    #[arg(flatten)]
    tcp: TcpArguments,
    /// Lifetime of a UDP flow.
    #[arg(default = "5m")]
    udp_timeout: Timestamp,
    /// Lifetime of a UDP flow with packets in both directions; UDP_TIMEOUT by default.
    udp_streaming_timeout: Option<Timestamp>,
    /// Time after each packet for which a UDP flow cannot be evicted.
    #[arg(default = "5")]
    udp_guarantee: Timestamp,
    /// Set the destination annotation to the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// The [`Rewriter`] parameters of `IPRewriter`.
pub(crate) struct IPRewriterClass;

pub(crate) type IPRewriter = Rewriter<IPRewriterClass>;

impl RewriterClass for IPRewriterClass {
    type Args = IPRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("tcp_table", "The TCP flows, one line per direction.", first_table),
        Handler::read_with("udp_table", "The UDP flows, one line per direction.", udp_table),
        Handler::read_with("tcp_mappings", "Older name of `tcp_table`.", first_table),
        Handler::read_with("udp_mappings", "Older name of `udp_table`.", udp_table),
        Handler::read_with(
            "tcp_lookup",
            "Translation of a TCP flow: takes SADDR SPORT DADDR DPORT.",
            lookup_flow,
        ),
    ];
    const KEY_FIELDS: KeyFields = KeyFields::Both;

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
