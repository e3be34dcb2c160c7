//! `BalancedThreadSched`: spreads tasks over threads by cost.

use element::prelude::*;

/// Balances tasks over the threads by their cost. There is one thread, so it has no effect.
///
/// ```click
/// BalancedThreadSched(100);
/// InfiniteSource(LIMIT 2, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// ```
/// ## Differences
/// A configuration runs on one thread.
#[derive(Args)]
#[element(name = "BalancedThreadSched", group = "control", ports = "0/0", see = "StaticThreadSched")]
pub struct BalancedThreadSchedArgs {
    /// Milliseconds between adjustments.
    #[arg(position, default = "1000")]
    interval: u32,
    /// Assign the cheapest tasks first.
    #[arg(position, default = "true")]
    increasing: bool,
}

pub struct BalancedThreadSched;

impl Element for BalancedThreadSched {
    type Args = BalancedThreadSchedArgs;

    fn new(args: BalancedThreadSchedArgs, setup: &mut Setup) -> Result<BalancedThreadSched, SetupError> {
        if setup.checking {
            let BalancedThreadSchedArgs { interval, increasing } = args;
            setup.warn(format_args!(
                "without effect on one thread (every {interval} ms, increasing {increasing})"
            ));
        }
        Ok(BalancedThreadSched)
    }
}
