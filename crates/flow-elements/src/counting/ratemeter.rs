//! The element behind `Meter` and `BandwidthMeter`.

use core::marker::PhantomData;

use element::arguments::{Bandwidth, Raw};
use element::prelude::*;

use super::rate::Rate;

/// Highest rate that the average can represent.
const MAX_RATE: u32 = u32::MAX >> 10;

/// Selects whether packets or bytes count.
pub trait Measure: 'static {
    type Args: Args;

    /// The rate thresholds.
    fn rates(args: Self::Args) -> Vec<Raw>;

    /// The amount that a batch counts.
    fn amount(batch: &Batch) -> u64;
}

/// Sends all packets to the output for their current rate.
pub struct RateMeter<M: Measure> {
    rate: Rate<10>,
    /// The thresholds in the unit of the average.
    limits: Vec<i64>,
    measure: PhantomData<M>,
}

/// Parses the thresholds in bytes or packets per second; each must exceed the previous one.
fn parse(name: &str, texts: &[Raw], setup: &mut Setup) -> Result<Vec<u32>, SetupError> {
    if texts.is_empty() {
        return Err(SetupError::new(format!("too few arguments to {name}(bandwidth, ...)")));
    }
    let mut rates: Vec<u32> = Vec::new();
    for (index, Raw(text)) in texts.iter().enumerate() {
        let number = index + 1;
        let rate = Bandwidth::from_argument(text, setup)
            .map_err(|_| SetupError::new(format!("argument {number} syntax error")))?;
        let rate = rate.0 as u32;
        if rates.last().is_some_and(|last| rate <= *last) {
            return Err(SetupError::new(format!("rate {number} must be > rate {index}")));
        }
        if text.ends_with(|last: char| last.is_ascii_digit() || last == '.') {
            setup.warn(format!("no units for bandwidth argument {number}, assuming Bps"));
        }
        if rate > MAX_RATE {
            return Err(SetupError::new(format!("rate {number} too large (max {MAX_RATE})")));
        }
        rates.push(rate);
    }
    if rates.len() + 1 != setup.outputs() {
        let needed = setup.outputs().saturating_sub(1);
        return Err(SetupError::new(format!(
            "need {needed} arguments, one less than the number of output ports"
        )));
    }
    Ok(rates)
}

impl<M: Measure> Element for RateMeter<M> {
    type Args = M::Args;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with("rate", "Current rate.", |meter, cx, _| Ok(meter.rate.text(cx.steady()))),
        Handler::read("meters", "The rate thresholds, in order.", |meter| {
            meter.limits.iter().map(|limit| Rate::<10>::unscale(*limit)).collect()
        }),
    ];

    fn new(args: M::Args, setup: &mut Setup) -> Result<RateMeter<M>, SetupError> {
        let rates = parse("BandwidthMeter", &M::rates(args), setup)?;
        let limits = rates.into_iter().map(Rate::<10>::scale).collect();
        Ok(RateMeter { rate: Rate::new(), limits, measure: PhantomData })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        // The average changes between turns only, so all packets of a batch go the same way.
        self.rate.count(cx.steady(), M::amount(&batch));
        let rate = self.rate.scaled();
        let output = self.limits.iter().position(|limit| rate < *limit).unwrap_or(self.limits.len());
        cx.emit(output, batch);
    }
}
