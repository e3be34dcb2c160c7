//! `IPAddrRewriter`: rewrites source addresses.

use element::prelude::*;

use super::arguments::{AddressArguments, FlowArguments};
use super::handlers::{first_table, handlers};
use super::rewriter::{Rewriter, RewriterClass, Settings};
use super::translate::KeyFields;

/// Basic NAT (RFC 3022): rewrites source addresses of packets and destination addresses of replies.
///
/// It works like `IPRewriter`, for packets of any protocol. One address identifies a flow: the source of a packet, or
/// the destination of a reply. Patterns have the form `SADDR -`. SADDR may be a range `1.0.0.1-1.0.0.9` or a prefix
/// `1.0.0.0/28` (without its first and last address). A free address is chosen at random, or in sequence if `#`
/// follows. The destination annotation is set only in replies.
///
/// ## Differences
///
/// Flows that expire in the same millisecond are evicted in unspecified order. Tables list flows in a different order.
/// A specification that names no element is reported when the router starts.
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
    mixes_inputs,
    upkeep,
    see = "IPRewriter, IPAddrPairRewriter, TCPRewriter, IPRewriterPatterns, RoundRobinIPMapper, ICMPRewriter, StoreIPAddress",
    drops = "no_mapping, no_free_mapping, bad_pattern, not_rewritable, too_many_flows",
    fates = "changed"
)]
pub(crate) struct IPAddrRewriterArgs {
    #[arg(flatten)]
    addresses: AddressArguments,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// The [`Rewriter`] parameters of `IPAddrRewriter`.
pub(crate) struct IPAddrRewriterClass;

pub(crate) type IPAddrRewriter = Rewriter<IPAddrRewriterClass>;

impl RewriterClass for IPAddrRewriterClass {
    type Args = IPAddrRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, one line per direction.", first_table),
        Handler::read_with("mappings", "Older name of `table`.", first_table),
    ];
    const KEY_FIELDS: KeyFields = KeyFields::Address;

    fn settings(args: IPAddrRewriterArgs) -> Settings {
        args.flows.settings(vec![args.addresses.lifetimes()], true)
    }
}
