//! `RandomSample`: samples packets at random.

use element::arguments::ArgumentError;
use element::prelude::*;

use element::arguments::Probability;

/// Fractional bits of a probability.
const BITS: u32 = 28;

/// Samples packets at random: each packet passes with probability P.
///
/// Packets that do not pass go to output 1, or are dropped as `not_sampled`. Give either the probability that a packet
/// passes (P or SAMPLE) or the probability that it does not (DROP).
/// ```click
/// InfiniteSource(LIMIT 10, STOP true) -> s :: RandomSample(DROP 1);
/// s[0] -> sampled :: Counter -> Discard;
/// s[1] -> others :: Counter -> Discard;
/// ```
/// ```expect
/// sampled.count = 0
/// others.count = 10
/// s.drops = 10
/// ```
#[derive(Args)]
#[element(
    name = "RandomSample",
    group = "shaping",
    ports = "1/1-2",
    processing = "a/ah",
    shards = "sum",
    sums = "drops",
    see = "RED",
    drops = "not_sampled"
)]
pub struct RandomSampleArgs {
    /// Probability that a packet passes.
    #[arg(position)]
    p: Option<SamplingProbability>,
    /// The same as P.
    sample: Option<SamplingProbability>,
    /// Probability that a packet does not pass.
    drop: Option<SamplingProbability>,
    /// If false, all packets pass.
    #[arg(default = "true")]
    active: bool,
}

/// A probability whose range is checked together with the other arguments, as in Click.
#[derive(Clone, Copy)]
struct SamplingProbability(Probability<BITS>);

impl FromArgument for SamplingProbability {
    const KIND: &'static str = Probability::<BITS>::KIND;

    fn from_argument(text: &str, setup: &Setup) -> Result<SamplingProbability, ArgumentError> {
        let bounds = |problem| match problem {
            ArgumentError::SemanticWithKeyword(_) => ArgumentError::semantic(BAD_PROBABILITY),
            other => other,
        };
        Probability::from_argument(text, setup).map(SamplingProbability).map_err(bounds)
    }
}

/// Error for a missing probability or one above 1.
const BAD_PROBABILITY: &str = "sampling probability must be between 0 and 1";

pub struct RandomSample {
    probability: Probability<BITS>,
    active: bool,
    drops: u64,
}

/// Parses a probability from a handler's value.
fn probability(cx: &Context, value: &str) -> Result<Probability<BITS>, HandlerError> {
    cx.argument(value).map_err(|_| HandlerError::new("Must be given a number between 0.0 and 1.0"))
}

impl Filter for RandomSample {
    type Args = RandomSampleArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("sampling_prob", "Probability that a packet passes.", |sample| {
            sample.probability.text()
        }),
        Handler::setting(
            "sampling_prob",
            "Sets the probability that a packet passes.",
            |sample, cx, value| {
                sample.probability = probability(cx, value)?;
                Ok(())
            },
        ),
        Handler::read("drop_prob", "Probability that a packet does not pass.", |sample| {
            sample.probability.complement().text()
        }),
        Handler::setting(
            "drop_prob",
            "Sets the probability that a packet does not pass.",
            |sample, cx, value| {
                sample.probability = probability(cx, value)?.complement();
                Ok(())
            },
        ),
        Handler::read("active", "Whether it samples.", |sample| sample.active.to_string()),
        Handler::setting(
            "active",
            "Turns sampling on or off; when off, all packets pass.",
            |sample, cx, value| {
                sample.active = cx.data(value)?;
                Ok(())
            },
        ),
        Handler::read("drops", "Packets that did not pass.", |sample| sample.drops.to_string()),
        Handler::read("config", "The probability, and whether it samples.", |sample| {
            format!("SAMPLE {}, ACTIVE {}", sample.probability.text(), sample.active)
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: RandomSampleArgs, _: &mut Setup) -> Result<RandomSample, SetupError> {
        let sample = args.sample.or(args.p);
        let probability = match (args.drop, sample) {
            (Some(_), Some(_)) if args.sample.is_some() => {
                return Err(SetupError::new("give at most one of SAMPLE and DROP"));
            }
            (Some(SamplingProbability(drop)), _) => drop.complement(),
            (None, Some(SamplingProbability(sample))) => sample,
            (None, None) => return Err(SetupError::new(BAD_PROBABILITY)),
        };
        Ok(RandomSample { probability, active: args.active, drops: 0 })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let mask = Probability::<BITS>::ONE.0 - 1;
        if !self.active || (cx.random() & mask) < self.probability.0 {
            return Verdict::Pass(packet);
        }
        self.drops += 1;
        Verdict::Divert(packet, Reason::NOT_SAMPLED)
    }
}
