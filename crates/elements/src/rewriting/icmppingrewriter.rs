//! `ICMPPingRewriter`: rewrites ICMP echo messages by flow.

use element::prelude::*;

use super::arguments::{FlowArguments, untracked};
use super::handlers::{first_table, handlers};
use super::rewriter::{Kind, Rewriter, Settings};
use super::translate::Shape;

/// Rewrites the addresses and identifiers of ICMP echo requests, and of the replies to them.
///
/// It is an `IPRewriter` (which see) for pings: the source port of a pattern is the identifier. A reply to no request
/// is dropped as `not_rewritable`, as is everything else, unless its input says `pass`.
///
/// ## Differences
///
/// A chosen identifier is one that no other request to the same destination has; Click may give one to two hosts and
/// forget the first. Of several flows that may go, and have the same millisecond to go, it is not said which goes
/// first. The lines of a table stand in another order. A specification that names no element is found out when the
/// router starts.
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
    see = "IPRewriter, ICMPRewriter, ICMPPingResponder",
    drops = "no_mapping, no_free_mapping, not_rewritable, too_many_flows"
)]
pub(crate) struct ICMPPingRewriterArgs {
    /// How long a flow lives.
    #[arg(default = "5m")]
    timeout: Timestamp,
    /// How long after a packet a flow is kept in any case.
    #[arg(default = "5")]
    guarantee: Timestamp,
    /// Whether the destination annotation becomes the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    #[arg(flatten)]
    flows: FlowArguments,
}

/// What makes a rewriter an ICMPPingRewriter.
pub(crate) struct ICMPPingRewriterKind;

/// The element.
pub(crate) type ICMPPingRewriter = Rewriter<ICMPPingRewriterKind>;

impl Kind for ICMPPingRewriterKind {
    type Args = ICMPPingRewriterArgs;
    const HANDLERS: &'static [Handler<Rewriter<Self>>] = handlers![
        Handler::read_with("table", "The flows, a line for each direction.", first_table),
        Handler::read_with("mappings", "An older name of `table`.", first_table),
    ];
    const SHAPE: Shape = Shape::Ping;

    fn settings(args: ICMPPingRewriterArgs) -> Settings {
        args.flows.settings(vec![untracked(args.timeout, args.guarantee)], args.dst_anno)
    }
}
