//! `BalancedThreadSched`: tasks spread over threads by their cost.

use element::prelude::*;

/// Spreads tasks over the threads by what they cost.
///
/// There is one thread here, which has them all.
/// ```click
/// BalancedThreadSched(100);
/// InfiniteSource(LIMIT 2, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// ```
/// ## Differences
/// A configuration runs on one thread, so there is nothing to spread.
#[derive(Args)]
#[element(name = "BalancedThreadSched", group = "control", ports = "0/0", see = "StaticThreadSched")]
pub struct BalancedThreadSchedArgs {
    /// Milliseconds between two rounds.
    #[arg(position, default = "1000")]
    interval: u32,
    /// Whether the cheapest tasks are placed first.
    #[arg(position, default = "true")]
    increasing: bool,
}

/// The element.
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
