//! `PullTee`: copies packets on a pull path.

use element::prelude::*;

use super::tee::check_arms;

/// Copies packets on a pull path: answers pulls at output 0 and pushes a copy to each other output.
///
/// Copies share their data until one of them is changed. If N is given, it must equal the number of outputs.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> t :: PullTee -> a :: Counter -> Discard;
/// t[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 3
/// b.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "PullTee",
    group = "switching",
    ports = "1/1-",
    processing = "l/lh",
    shards = "independent",
    see = "Tee, PaintTee",
    fates = "copied"
)]
pub struct PullTeeArgs {
    /// Number of outputs.
    #[arg(position)]
    n: Option<u32>,
}

pub struct PullTee;

impl Element for PullTee {
    type Args = PullTeeArgs;

    fn new(args: PullTeeArgs, setup: &mut Setup) -> Result<PullTee, SetupError> {
        check_arms(args.n, setup)?;
        Ok(PullTee)
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let (before, outputs) = (into.len(), cx.outputs());
        cx.pull(0, most, into);
        for packet in into.iter().skip(before) {
            for output in 1..outputs {
                if let Some(copy) = cx.duplicate(packet) {
                    cx.send(output, copy);
                }
            }
        }
    }
}
