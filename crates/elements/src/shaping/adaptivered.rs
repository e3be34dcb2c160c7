//! `AdaptiveRED`: random early detection that sets its own probability.

use element::arguments::Raw;
use element::prelude::*;

use super::early::{Choice, Early};
use super::probability::Probability;
use super::watched::Watched;

/// Time between two looks at the average.
const INTERVAL: Timestamp = Timestamp::from_millis(500);
/// The least target.
const LEAST_TARGET: u32 = 10;
/// In the fixed point of probabilities.
const ONE_HUNDREDTH: u32 = 655;
/// In the same.
const NINE_TENTHS: u32 = 58_982;
/// In the same.
const ONE_HALF: u32 = 0x8000;

/// Drops packets at random so that the nearby queues stay about TARGET long (adaptive random early detection).
///
/// It is `RED` with half of TARGET as the lower and one and a half of it as the upper threshold. Every half second MAX_P
/// grows when the average is near the upper threshold, and shrinks when it is near the lower one.
/// ```click
/// InfiniteSource(LIMIT 200, STOP true) -> r :: AdaptiveRED(20, 0.5, STABILITY 0) -> q :: Queue(100) -> Idle;
/// ```
/// ```expect
/// r.queues = q
/// r.min_thresh = 10
/// r.max_thresh = 30
/// q.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "AdaptiveRED",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    see = "RED, PI, CoDel"
)]
pub struct AdaptiveRedArgs {
    /// The length that is aimed at.
    #[arg(position)]
    target: u32,
    /// The probability to begin with.
    #[arg(position)]
    max_p: Probability<16>,
    /// Names of queues, instead of those nearby.
    queues: Option<Raw>,
    /// How slowly the average follows the length.
    #[arg(default = "4")]
    stability: u32,
}

/// The element.
pub struct AdaptiveRed {
    early: Early,
    names: Option<String>,
    watched: Watched,
    drops: u64,
    next: Timestamp,
}

impl AdaptiveRedArgs {
    fn choice(&self) -> Choice {
        let target = self.target.max(LEAST_TARGET);
        Choice {
            min_threshold: target / 2,
            max_threshold: target.saturating_add(target / 2),
            max_p: self.max_p,
            gentle: true,
            stability: self.stability,
        }
    }
}

impl AdaptiveRed {
    fn adapt(&mut self) {
        let choice = self.early.choice();
        let average =
            if choice.stability == 0 { self.watched.length() as u32 } else { self.early.average().rounded() };
        let part = (choice.max_threshold - choice.min_threshold) / 2;
        let Probability(max_p) = choice.max_p;
        if average < choice.min_threshold + part && max_p > ONE_HUNDREDTH {
            self.early.set_max_p(((u64::from(max_p) * u64::from(NINE_TENTHS)) >> 16) as u32);
        } else if average > choice.max_threshold - part && max_p < ONE_HALF {
            self.early.set_max_p(max_p + ONE_HUNDREDTH.min(max_p / 4));
        }
    }
}

impl Element for AdaptiveRed {
    type Args = AdaptiveRedArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets dropped.", |red| red.drops.to_string()),
        Handler::read("min_thresh", "The lower threshold.", |red| {
            red.early.choice().min_threshold.to_string()
        }),
        Handler::read("max_thresh", "The upper threshold.", |red| {
            red.early.choice().max_threshold.to_string()
        }),
        Handler::read("max_p", "The probability at the upper threshold.", |red| {
            red.early.choice().max_p.text()
        }),
        Handler::read("avg_queue_size", "The average length.", |red| red.early.average().text()),
        Handler::read("stats", "Lengths and drops.", |red| {
            let average = red.early.average().text();
            format!("{} current queue\n{average} avg queue\n{} drops\n", red.watched.length(), red.drops)
        }),
        Handler::read("queues", "The queues that it looks at.", |red| red.watched.names("\n")),
        Handler::read("config", "What RED would be given.", |red| red.early.choice().text(&red.watched)),
    ];
    const LIVE: bool = true;

    fn new(args: AdaptiveRedArgs, setup: &mut Setup) -> Result<AdaptiveRed, SetupError> {
        // Each packet is judged by the queue as the one before has left it.
        setup.strict = true;
        let early = Early::new(args.choice())?;
        let names = args.queues.map(|Raw(names)| names);
        Ok(AdaptiveRed { early, names, watched: Watched::default(), drops: 0, next: Timestamp::ZERO })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.watched = Watched::find(cx, self.names.as_deref(), cx.is_push_output(0))?;
        self.next = cx.steady() + INTERVAL;
        cx.set_timer(0, self.next);
        Ok(())
    }

    fn reconfigure(&mut self, args: AdaptiveRedArgs, _: &mut Setup) -> Result<(), SetupError> {
        let mut early = Early::new(args.choice())?;
        early.take_average(&self.early);
        self.early = early;
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.adapt();
        self.next += INTERVAL;
        cx.set_timer(0, self.next);
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

    fn inherit(&mut self, old: &mut AdaptiveRed, _: &mut Context) {
        self.early.take_average(&old.early);
    }
}
