//! `RandomSeed`: seeds the random numbers.

use element::HandlerError;
use element::arguments::{ArgumentError, FromArgument};
use element::prelude::*;

/// Seeds the random numbers of all elements, to make runs reproducible.
///
/// With SEED, all elements draw from one sequence: that of Click built with the GNU C library, so the same seed gives
/// the same choices. The order of draws then matters, so packets pass one by one. Without SEED, each element has a
/// sequence of its own, seeded differently in every run.
///
/// ## Differences
///
/// A `SourceIPHashMapper` does not restart the sequence.
/// ```click
/// r :: RandomSeed(1);
/// InfiniteSource(LIMIT 2000, STOP true) -> s :: RandomSwitch;
/// s[0] -> left :: Counter -> Discard;
/// s[1] -> right :: Counter -> Discard;
/// ```
/// ```expect
/// r.seed = 1
/// left.count = 998
/// right.count = 1002
/// ```
#[derive(Args)]
#[element(name = "RandomSeed", group = "information", ports = "0/0", phase = "names")]
pub struct RandomSeedArgs {
    /// Seed of the common sequence.
    #[arg(position)]
    seed: Option<Seed>,
}

/// A seed, and the text it was written as.
#[derive(Clone)]
struct Seed {
    value: u32,
    text: String,
}

impl FromArgument for Seed {
    const KIND: &'static str = u32::KIND;

    fn from_argument(text: &str, setup: &Setup) -> Result<Seed, ArgumentError> {
        Ok(Seed { value: u32::from_argument(text, setup)?, text: text.to_string() })
    }
}

pub struct RandomSeed {
    seed: Option<Seed>,
}

impl RandomSeed {
    fn apply(&self, cx: &Context) {
        let seed = self.seed.as_ref().map(|seed| seed.value);
        cx.reseed(seed.map_or_else(|| cx.environment().seed(), u64::from));
        if let Some(seed) = seed {
            cx.share_random(seed);
        }
    }

    fn write(&mut self, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
        self.seed = if value.trim().is_empty() { None } else { Some(cx.argument(value)?) };
        self.apply(cx);
        Ok(())
    }
}

impl Element for RandomSeed {
    type Args = RandomSeedArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("seed", "The seed as it was written; empty if none was given.", |element| {
            element.seed.as_ref().map_or_else(String::new, |seed| seed.text.clone())
        }),
        Handler::argument(
            "seed",
            (Some(0), "SEED"),
            "Restarts from this seed; if empty, from a random one.",
            RandomSeed::write,
        ),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: RandomSeedArgs, setup: &mut Setup) -> Result<RandomSeed, SetupError> {
        // A seed may be written later.
        setup.unbatched = true;
        Ok(RandomSeed { seed: args.seed })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.apply(cx);
        Ok(())
    }
}
