//! `Tee`: copies packets to all outputs.

use element::prelude::*;

/// Copies each packet to all outputs.
///
/// Copies share their data until one of them is changed. If N is given, it must equal the number of outputs.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> t :: Tee(2);
/// t[0] -> a :: Counter -> Discard;
/// t[1] -> b :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 3
/// b.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Tee",
    group = "switching",
    ports = "1/1-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "PullTee, PaintTee, Hub",
    fates = "copied"
)]
pub struct TeeArgs {
    /// Number of outputs.
    #[arg(position)]
    n: Option<u32>,
}

pub struct Tee;

impl Element for Tee {
    type Args = TeeArgs;

    fn new(args: TeeArgs, setup: &mut Setup) -> Result<Tee, SetupError> {
        check_arms(args.n, setup)?;
        Ok(Tee)
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        let last = cx.outputs().saturating_sub(1);
        if last == 0 {
            return cx.emit(0, batch);
        }
        if cx.fills_batches_apart() {
            for output in 0..last {
                let copies = cx.duplicate_all(&batch);
                cx.emit(output, copies);
            }
            return cx.emit(last, batch);
        }
        for packet in batch.drain() {
            for output in 0..last {
                if let Some(copy) = cx.duplicate(&packet) {
                    cx.send(output, copy);
                }
            }
            cx.send(last, packet);
        }
        cx.recycle(batch);
    }
}

/// Refuses a number of arms that is not the number of outputs.
pub(super) fn check_arms(arms: Option<u32>, setup: &Setup) -> Result<(), SetupError> {
    let outputs = setup.outputs();
    match arms {
        Some(arms) if arms as usize != outputs => {
            Err(SetupError::new(format!("{outputs} outputs implies {outputs} arms")))
        }
        _ => Ok(()),
    }
}
