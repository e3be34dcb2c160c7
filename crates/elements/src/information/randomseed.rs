//! `RandomSeed`: makes randomness repeatable.

use element::HandlerError;
use element::prelude::*;

/// Starts the random numbers of all elements from SEED, so that a run can be repeated; without it from one that differs.
///
/// ## Differences
///
/// The same seed does not give Click's numbers.
/// ```click
/// r :: RandomSeed(5);
/// InfiniteSource(LIMIT 2, STOP true) -> SetRandIPAddress(10.0.0.0/8) -> Discard;
/// ```
/// ```expect
/// r.seed = 5
/// ```
#[derive(Args)]
#[element(name = "RandomSeed", group = "information", ports = "0/0", phase = "information")]
pub struct RandomSeedArgs {
    /// The seed.
    #[arg(position)]
    seed: Option<u32>,
}

/// The element.
pub struct RandomSeed {
    seed: Option<u32>,
}

impl RandomSeed {
    fn apply(&self, cx: &Context) {
        let seed = self.seed.map_or_else(|| cx.environment().seed(), u64::from);
        cx.runtime().reseed(seed);
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
        Handler::read("seed", "The seed; empty for one that differs.", |element| {
            element.seed.map_or(String::new(), |seed| seed.to_string())
        }),
        Handler::argument(
            "seed",
            (Some(0), "SEED"),
            "Starts from a seed, or from one that differs.",
            RandomSeed::write,
        ),
    ];
    const LIVE: bool = true;

    fn new(args: RandomSeedArgs, _: &mut Setup) -> Result<RandomSeed, SetupError> {
        Ok(RandomSeed { seed: args.seed })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.apply(cx);
        Ok(())
    }
}
