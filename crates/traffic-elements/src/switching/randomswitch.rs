//! `RandomSwitch`: selects outputs at random.

use element::prelude::*;

/// Sends each packet to a random output, all with equal probability.
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> s :: RandomSwitch;
/// s[0] -> all :: Counter -> Discard;
/// s[1] -> all;
/// ```
/// ```expect
/// all.count = 5
/// ```
#[derive(Args)]
#[element(
    name = "RandomSwitch",
    group = "switching",
    ports = "1/1-",
    processing = "h/h",
    shards = "independent",
    see = "Switch, RoundRobinSwitch, StrideSwitch, HashSwitch, RandomSample"
)]
pub struct RandomSwitchArgs {}

pub struct RandomSwitch;

impl Filter for RandomSwitch {
    type Args = RandomSwitchArgs;

    fn new(_: RandomSwitchArgs, _: &mut Setup) -> Result<RandomSwitch, SetupError> {
        Ok(RandomSwitch)
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let last = cx.outputs().saturating_sub(1) as u32;
        let output = cx.random_between(0, last);
        Verdict::To(output as usize, packet)
    }
}
