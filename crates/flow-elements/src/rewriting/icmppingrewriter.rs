//! `ICMPPingRewriter`: rewrites ICMP echo messages by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, untracked};
use super::handlers::{first_table, handlers};
use super::rewriter::{Rewriter, RewriterClass, Settings};
use super::translate::KeyFields;

/// Rewrites the addresses and identifiers of ICMP echo requests and their replies.
///
/// It works like `IPRewriter`, with the identifier in place of the source port. Replies without a request, and all
/// other packets, are dropped as `not_rewritable`, unless their input says `pass`.
///
/// ## Differences
///
/// A chosen identifier is unique among requests to the same destination; Click may assign one to two hosts and forget
/// the first. Flows that expire in the same millisecond are evicted in unspecified order. Tables list flows in a
/// different order. A specification that names no element is reported when the router starts.
///
/// ```click
/// ICMPPingSource(10.0.0.1, 5.0.0.5, LIMIT 3, INTERVAL 0.1, STOP true)
///     -> rw :: ICMPPingRewriter(pattern 1.0.0.1 2000-3000# - - 0 1, drop);
/// rw[0] -> ICMPPingResponder -> [1]rw;
/// rw[1] -> CheckIPHeader -> CheckICMPHeader -> back :: IPClassifier(dst host 10.0.0.1, -);
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
    name = "ICMPPingRewriter",
    group = "rewriting",
    ports = "1-/1-",
    processing = "h/h",
    mixes_inputs,
    upkeep,
    see = "IPRewriter, ICMPRewriter, ICMPPingResponder",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows",
    fates = "changed"
)]
pub(crate) struct ICMPPingRewriterArgs {
    /// Lifetime of a flow.
    #[arg(default = "5m")]
    timeout: Timestamp,
    /// Time after each packet for which a flow cannot be evicted.
    #[arg(default = "5")]
    guarantee: Timestamp,
    /// Set the destination annotation to the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// The [`Rewriter`] parameters of `ICMPPingRewriter`.
pub(crate) struct ICMPPingRewriterClass;

pub(crate) type ICMPPingRewriter = Rewriter<ICMPPingRewriterClass>;

impl RewriterClass for ICMPPingRewriterClass {
    type Args = ICMPPingRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, one line per direction.", first_table),
        Handler::read_with("mappings", "Older name of `table`.", first_table),
    ];
    const KEY_FIELDS: KeyFields = KeyFields::Ping;

    fn settings(args: ICMPPingRewriterArgs) -> Settings {
        args.flows.settings(vec![untracked(args.timeout, args.guarantee)], args.dst_anno)
    }
}
