//! `IPAddrPairRewriter`: rewrites pairs of addresses.

use element::prelude::*;

use super::arguments::{AddressArguments, FlowArguments};
use super::handlers::{first_table, handlers};
use super::rewriter::{Rewriter, RewriterClass, Settings};
use super::translate::KeyFields;

/// Rewrites the addresses of packets by source and destination address pair.
///
/// It works like `IPRewriter`, for packets of any protocol; both addresses identify a flow. Patterns have the form
/// `SADDR DADDR`, where SADDR may be a range or prefix as in `IPAddrRewriter`.
///
/// ## Differences
///
/// Flows that expire in the same millisecond are evicted in unspecified order. Tables list flows in a different order.
/// A specification that names no element is reported when the router starts.
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
    mixes_inputs,
    upkeep,
    shards = "divide",
    sums = "table_size, nmappings, mapping_failures, patterns, size, capacity",
    lists = "table, mappings",
    flows = "keeps",
    see = "IPRewriter, IPAddrRewriter, TCPRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, StoreIPAddress",
    drops = "no_mapping, no_free_mapping, bad_pattern, not_rewritable, too_many_flows",
    fates = "changed"
)]
pub(crate) struct IPAddrPairRewriterArgs {
    #[arg(flatten)]
    addresses: AddressArguments,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// The [`Rewriter`] parameters of `IPAddrPairRewriter`.
pub(crate) struct IPAddrPairRewriterClass;

pub(crate) type IPAddrPairRewriter = Rewriter<IPAddrPairRewriterClass>;

impl RewriterClass for IPAddrPairRewriterClass {
    type Args = IPAddrPairRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, one line per direction.", first_table),
        Handler::read_with("mappings", "Older name of `table`.", first_table),
    ];
    const KEY_FIELDS: KeyFields = KeyFields::AddressPair;

    fn settings(args: IPAddrPairRewriterArgs) -> Settings {
        args.flows.settings(vec![args.addresses.lifetimes()], true)
    }
}
