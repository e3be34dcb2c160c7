//! `TCPRewriter`: rewrites addresses, ports and sequence numbers of TCP by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, TcpArguments};
use super::handlers::{first_table, handlers, lookup_flow};
use super::rewriter::{Rewriter, RewriterClass, Settings};
use super::translate::KeyFields;

/// Rewrites the addresses, ports and sequence numbers of TCP packets by flow.
///
/// It works like `IPRewriter`, for TCP only. It adjusts sequence and acknowledgement numbers, including selective
/// acknowledgements, if another element such as `FTPPortMapper` has changed the length of the data.
///
/// ## Differences
///
/// Flows that expire in the same millisecond are evicted in unspecified order. Tables list flows in a different order.
/// A specification that names no element is reported when the router starts.
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
    mixes_inputs,
    upkeep,
    shards = "divide",
    sums = "table_size, nmappings, mapping_failures, patterns, size, capacity",
    lists = "table, mappings",
    flows = "keeps",
    see = "IPRewriter, IPAddrRewriter, IPAddrPairRewriter, IPRewriterPatterns, FTPPortMapper",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows",
    fates = "changed"
)]
pub(crate) struct TCPRewriterArgs {
    #[arg(flatten)]
    tcp: TcpArguments,
    /// Set the destination annotation to the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// The [`Rewriter`] parameters of `TCPRewriter`.
pub(crate) struct TCPRewriterClass;

pub(crate) type TCPRewriter = Rewriter<TCPRewriterClass>;

impl RewriterClass for TCPRewriterClass {
    type Args = TCPRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, one line per direction.", first_table),
        Handler::read_with("mappings", "Older name of `table`.", first_table),
        Handler::read_with("lookup", "Translation of a flow: takes SADDR SPORT DADDR DPORT.", lookup_flow,),
    ];
    const KEY_FIELDS: KeyFields = KeyFields::Tcp;

    fn settings(args: TCPRewriterArgs) -> Settings {
        args.flows.settings(vec![args.tcp.lifetimes()], args.dst_anno)
    }
}
