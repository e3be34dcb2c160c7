//! `RED`: drops packets at random before a queue is full.

use element::arguments::Raw;
use element::prelude::*;

use super::early::{Choice, Early};
use super::probability::Probability;
use super::watched::Watched;

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
/// ```
#[derive(Args)]
#[element(
    name = "RED",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    see = "AdaptiveRED, PI, CoDel, Queue"
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
    /// Names of queues, instead of those nearby.
    queues: Option<Raw>,
    /// How slowly the average follows the length.
    #[arg(default = "4")]
    stability: u32,
    /// Whether the probability rises on above MAX_THRESH, rather than to one at once.
    #[arg(default = "true")]
    gentle: bool,
}

/// The element.
pub struct Red {
    early: Early,
    names: Option<String>,
    watched: Watched,
    drops: u64,
}

impl RedArgs {
    fn choice(&self) -> Choice {
        Choice {
            min_threshold: self.min_thresh,
            max_threshold: self.max_thresh,
            max_p: self.max_p,
            gentle: self.gentle,
            stability: self.stability,
        }
    }
}

impl Red {
    /// Changes the choice; the average stays.
    fn choose(&mut self, choice: Choice) -> Result<(), SetupError> {
        let mut early = Early::new(choice)?;
        early.take_average(&self.early);
        self.early = early;
        Ok(())
    }
}

/// A write handler that changes one part of the choice.
macro_rules! change {
    ($name:literal, $place:literal $keyword:literal, $summary:literal, $field:ident) => {
        Handler::argument($name, (Some($place), $keyword), $summary, |red, cx, value| {
            let mut choice = red.early.choice();
            choice.$field =
                cx.argument(value).map_err(|error| HandlerError::new(format!("{}: {error}", $keyword)))?;
            Ok(red.choose(choice)?)
        })
    };
}

impl Element for Red {
    type Args = RedArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets dropped.", |red| red.drops.to_string()),
        Handler::read("min_thresh", "The lower threshold.", |red| {
            red.early.choice().min_threshold.to_string()
        }),
        change!("min_thresh", 0 "MIN_THRESH", "Sets the lower threshold.", min_threshold),
        Handler::read("max_thresh", "The upper threshold.", |red| {
            red.early.choice().max_threshold.to_string()
        }),
        change!("max_thresh", 1 "MAX_THRESH", "Sets the upper threshold.", max_threshold),
        Handler::read("max_p", "The probability at the upper threshold.", |red| {
            red.early.choice().max_p.text()
        }),
        change!("max_p", 2 "MAX_P", "Sets the probability at the upper threshold.", max_p),
        Handler::read("avg_queue_size", "The average length.", |red| red.early.average().text()),
        Handler::read("stats", "Lengths and drops.", |red| {
            let average = red.early.average().text();
            format!("{} current queue\n{average} avg queue\n{} drops\n", red.watched.length(), red.drops)
        }),
        Handler::read("queues", "The queues that it looks at.", |red| red.watched.names("\n")),
        Handler::read("config", "The arguments as they are.", |red| red.early.choice().text(&red.watched)),
    ];
    const LIVE: bool = true;

    fn new(args: RedArgs, setup: &mut Setup) -> Result<Red, SetupError> {
        // Each packet is judged by the queue as the one before has left it.
        setup.strict = true;
        let early = Early::new(args.choice())?;
        Ok(Red { early, names: args.queues.map(|Raw(names)| names), watched: Watched::default(), drops: 0 })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.watched = Watched::find(cx, self.names.as_deref(), cx.is_push_output(0))?;
        Ok(())
    }

    fn reconfigure(&mut self, args: RedArgs, _: &mut Setup) -> Result<(), SetupError> {
        self.choose(args.choice())
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for packet in batch.drain() {
            if self.early.should_drop(self.watched.length(), cx.steady(), || cx.random()) {
                self.drops += 1;
                super::discard(cx, packet);
            } else {
                cx.send(0, packet);
            }
        }
        cx.recycle(batch);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let mut left = most;
        while left > 0 {
            let Some(packet) = cx.pull_one(0) else { return };
            if self.early.should_drop(self.watched.length(), cx.steady(), || cx.random()) {
                self.drops += 1;
                super::discard(cx, packet);
            } else {
                into.push(packet);
                left -= 1;
            }
        }
    }

    fn inherit(&mut self, old: &mut Red, _: &mut Context) {
        self.early.take_average(&old.early);
    }
}
