//! `RED`: random early detection.

use element::arguments::Raw;
use element::prelude::*;

use super::early::RedParameters;
use super::earlydrop::{EarlyDrop, RedVariant, WatchArguments, handlers};
use element::arguments::Probability;

/// Random early detection (RED): drops packets at random before queues are full, so that TCP senders slow down in time.
///
/// The drop probability depends on the average queue length:
///
/// - up to MIN_THRESH, nothing is dropped;
/// - from MIN_THRESH to MAX_THRESH, the probability rises to MAX_P;
/// - above MAX_THRESH, it rises to one at twice MAX_THRESH (GENTLE), or is one at once.
///
/// The average is an EWMA with weight 2^-STABILITY. By default RED watches the nearest queues: downstream on a push
/// path, upstream on a pull path. Dropped packets go to output 1 if it exists.
///
/// STABILITY 0 turns the average off. The thresholds then apply to the current length, and as in Click, the probability
/// does not depend on how far the length is above them:
///
/// - up to MAX_THRESH, nothing is dropped;
/// - from there to twice MAX_THRESH, with GENTLE, packets are dropped with probability 2 MAX_P - 1, which is none if
///   MAX_P is at most 0.5;
/// - above, all packets are dropped.
/// ```click
/// InfiniteSource(LIMIT 200, STOP true) -> r :: RED(5, 20, 0.5, STABILITY 0) -> q :: Queue(100) -> Idle;
/// ```
/// ```expect
/// r.queues = q
/// r.min_thresh = 5
/// q.drops = 0
/// r.losses = early_drop 159
/// q.length = 41
/// ```
#[derive(Args)]
#[element(
    name = "RED",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    pulls_again,
    see = "AdaptiveRED, PI, CoDel, Queue",
    drops = "early_drop"
)]
pub struct RedArgs {
    /// Average queue length up to which nothing is dropped.
    #[arg(position)]
    min_thresh: u32,
    /// Average queue length at which the drop probability reaches MAX_P.
    #[arg(position)]
    max_thresh: u32,
    /// Drop probability at MAX_THRESH.
    #[arg(position)]
    max_p: Probability<16>,
    #[arg(flatten)]
    watch: WatchArguments,
    /// Above MAX_THRESH: raise the probability gradually to one (true), or jump to one (false).
    #[arg(default = "true")]
    gentle: bool,
}

pub type Red = EarlyDrop<RedArgs>;

/// A write handler that changes one parameter.
macro_rules! change {
    ($name:literal, $position:literal $keyword:literal, $summary:literal, $field:ident) => {
        Handler::argument($name, (Some($position), $keyword), $summary, |red, cx, value| {
            let mut parameters = red.early.parameters();
            parameters.$field = cx.keyword($keyword, value)?;
            Ok(red.set_parameters(parameters)?)
        })
    };
}

impl RedVariant for RedArgs {
    const HANDLERS: &'static [Handler<Red>] = handlers![
        "The arguments as they are.",
        change!("min_thresh", 0 "MIN_THRESH", "Sets the lower threshold.", min_threshold),
        change!("max_thresh", 1 "MAX_THRESH", "Sets the upper threshold.", max_threshold),
        change!("max_p", 2 "MAX_P", "Sets the drop probability at the upper threshold.", max_p),
    ];

    fn parameters(self) -> (RedParameters, Option<Raw>) {
        let parameters = RedParameters {
            min_threshold: self.min_thresh,
            max_threshold: self.max_thresh,
            max_p: self.max_p,
            gentle: self.gentle,
            stability: self.watch.stability,
        };
        (parameters, self.watch.queues)
    }
}
