//! `RED`: drops packets at random before a queue is full.

use element::arguments::Raw;
use element::prelude::*;

use super::early::Choice;
use super::earlydrop::{EarlyDrop, Kind, WatchArguments, handlers};
use super::probability::Probability;

/// Drops packets at random, the more often the longer the nearby queues are on average (random early detection).
///
/// Up to an average of MIN_THRESH nothing is dropped; from there to MAX_THRESH the probability rises to MAX_P, and over
/// another MAX_THRESH to one (GENTLE) or at once. The queues are the nearest downstream where packets are pushed, or
/// upstream where they are pulled, or those named. What is dropped goes to output 1 if that exists. The average follows
/// the length by one part in two to the STABILITY for each packet; with 0 it is the length.
/// ```click
/// InfiniteSource(LIMIT 200, STOP true) -> r :: RED(5, 20, 0.5, STABILITY 0) -> q :: Queue(100) -> Idle;
/// ```
/// ```expect
/// r.queues = q
/// r.min_thresh = 5
/// q.drops = 0
/// r.losses = early_drop 159
/// ```
#[derive(Args)]
#[element(
    name = "RED",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    see = "AdaptiveRED, PI, CoDel, Queue",
    drops = "early_drop"
)]
pub struct RedArgs {
    /// Average length up to which nothing is dropped.
    #[arg(position)]
    min_thresh: u32,
    /// Average length at which packets are dropped with the probability MAX_P.
    #[arg(position)]
    max_thresh: u32,
    /// That probability.
    #[arg(position)]
    max_p: Probability<16>,
    #[arg(flatten)]
    watch: WatchArguments,
    /// Whether the probability rises on above MAX_THRESH, rather than to one at once.
    #[arg(default = "true")]
    gentle: bool,
}

/// The element.
pub type Red = EarlyDrop<RedArgs>;

/// A write handler that changes one part of the choice.
macro_rules! change {
    ($name:literal, $place:literal $keyword:literal, $summary:literal, $field:ident) => {
        Handler::argument($name, (Some($place), $keyword), $summary, |red, cx, value| {
            let mut choice = red.early.choice();
            choice.$field = cx.keyword($keyword, value)?;
            Ok(red.choose(choice)?)
        })
    };
}

impl Kind for RedArgs {
    const HANDLERS: &'static [Handler<Red>] = handlers![
        "The arguments as they are.",
        change!("min_thresh", 0 "MIN_THRESH", "Sets the lower threshold.", min_threshold),
        change!("max_thresh", 1 "MAX_THRESH", "Sets the upper threshold.", max_threshold),
        change!("max_p", 2 "MAX_P", "Sets the probability at the upper threshold.", max_p),
    ];

    fn choice(self) -> (Choice, Option<Raw>) {
        let choice = Choice {
            min_threshold: self.min_thresh,
            max_threshold: self.max_thresh,
            max_p: self.max_p,
            gentle: self.gentle,
            stability: self.watch.stability,
        };
        (choice, self.watch.queues)
    }
}
