//! `UDPRewriter`: rewrites addresses and ports of UDP by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, seconds};
use super::handlers::{first_table, handlers};
use super::mapping::{Lifetimes, Tracking};
use super::rewriter::{Rewriter, RewriterClass, Settings};
use super::translate::KeyFields;

/// Rewrites the addresses and ports of UDP packets by flow.
///
/// It works like `IPRewriter` with a single table. It also rewrites TCP and DCCP, but identifies flows only by
/// addresses and ports, so each UDPRewriter should see packets of one protocol.
///
/// ## Differences
///
/// Flows that expire in the same millisecond are evicted in unspecified order. Tables list flows in a different order.
/// A specification that names no element is reported when the router starts.
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
    mixes_inputs,
    upkeep,
    shards = "divide",
    sums = "table_size, nmappings, mapping_failures, patterns, size, capacity",
    lists = "table, mappings",
    flows = "keeps",
    see = "IPRewriter, TCPRewriter, IPAddrRewriter, IPAddrPairRewriter, IPRewriterPatterns",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows",
    fates = "changed"
)]
pub(crate) struct UDPRewriterArgs {
    /// Lifetime of a flow.
    #[arg(default = "5m")]
    timeout: Timestamp,
    /// Another name of TIMEOUT.
    udp_timeout: Option<Timestamp>,
    /// Lifetime of a flow with packets in both directions; TIMEOUT by default.
    streaming_timeout: Option<Timestamp>,
    /// Another name of STREAMING_TIMEOUT.
    udp_streaming_timeout: Option<Timestamp>,
    /// Time after each packet for which a flow cannot be evicted.
    #[arg(default = "5")]
    guarantee: Timestamp,
    /// Another name of GUARANTEE.
    udp_guarantee: Option<Timestamp>,
    /// Set the destination annotation to the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// The [`Rewriter`] parameters of `UDPRewriter`.
pub(crate) struct UDPRewriterClass;

pub(crate) type UDPRewriter = Rewriter<UDPRewriterClass>;

impl RewriterClass for UDPRewriterClass {
    type Args = UDPRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, one line per direction.", first_table),
        Handler::read_with("mappings", "Older name of `table`.", first_table),
    ];
    const KEY_FIELDS: KeyFields = KeyFields::Udp;

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
