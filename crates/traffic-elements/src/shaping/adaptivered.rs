//! `AdaptiveRED`: random early detection that tunes its probability.

use element::arguments::Raw;
use element::prelude::*;

use super::early::{RandomEarlyDetection, RedParameters};
use super::earlydrop::{EarlyDrop, RedVariant, WatchArguments, handlers};
use element::arguments::Probability;

/// Lowest target queue length.
const MIN_TARGET: u32 = 10;
/// 0.01 in the fixed point of probabilities.
const ONE_HUNDREDTH: u32 = 655;
/// 0.9 in the same fixed point.
const NINE_TENTHS: u32 = 58_982;
/// 0.5 in the same fixed point.
const ONE_HALF: u32 = 0x8000;

/// Adaptive random early detection: RED that tunes itself to keep queues near TARGET packets.
///
/// Works like `RED` with thresholds of half of TARGET and one and a half times TARGET. Every half second it raises
/// MAX_P if the average queue length is close to the upper threshold, and lowers MAX_P if it is close to the lower one.
/// ```click
/// InfiniteSource(LIMIT 200, STOP true) -> r :: AdaptiveRED(20, 0.5, STABILITY 0) -> q :: Queue(100) -> Idle;
/// ```
/// ```expect
/// r.queues = q
/// r.min_thresh = 10
/// r.max_thresh = 30
/// q.drops = 0
/// r.losses = early_drop 139
/// q.length = 61
/// ```
#[derive(Args)]
#[element(
    name = "AdaptiveRED",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    pulls_again,
    upkeep,
    see = "RED, PI, CoDel",
    drops = "early_drop"
)]
pub struct AdaptiveRedArgs {
    /// Queue length to aim for.
    #[arg(position)]
    target: u32,
    /// Initial value of MAX_P.
    #[arg(position)]
    max_p: Probability<16>,
    #[arg(flatten)]
    watch: WatchArguments,
}

pub type AdaptiveRed = EarlyDrop<AdaptiveRedArgs>;

impl RedVariant for AdaptiveRedArgs {
    const HANDLERS: &'static [Handler<AdaptiveRed>] = handlers!["The equivalent arguments of RED."];
    const INTERVAL: Option<Timestamp> = Some(Timestamp::from_millis(500));

    fn parameters(self) -> (RedParameters, Option<Raw>) {
        let target = self.target.max(MIN_TARGET);
        let parameters = RedParameters {
            min_threshold: target / 2,
            max_threshold: target.saturating_add(target / 2),
            max_p: self.max_p,
            gentle: true,
            stability: self.watch.stability,
        };
        (parameters, self.watch.queues)
    }

    fn adapt(early: &mut RandomEarlyDetection, length: usize) {
        let parameters = early.parameters();
        let average = if parameters.stability == 0 { length as u32 } else { early.average().rounded() };
        let part = (parameters.max_threshold - parameters.min_threshold) / 2;
        let Probability(max_p) = parameters.max_p;
        if average < parameters.min_threshold + part && max_p > ONE_HUNDREDTH {
            early.set_max_p(((u64::from(max_p) * u64::from(NINE_TENTHS)) >> 16) as u32);
        } else if average > parameters.max_threshold - part && max_p < ONE_HALF {
            early.set_max_p(max_p + ONE_HUNDREDTH.min(max_p / 4));
        }
    }
}
