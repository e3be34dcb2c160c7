//! `AdjustTimestamp`: adds a constant to timestamps.

use element::arguments::SignedTime;
use element::number_format;
use element::prelude::*;

/// Adds a constant to the timestamp of each packet. TIME may be negative.
///
/// A timestamp of zero stands for none and stays unchanged, except with ALL. With FIRST, the first timestamp annotation
/// is changed instead. As in Click, the fraction of a negative TIME counts forward: -1.5 is half a second back.
/// ```click
/// InfiniteSource(LIMIT 2, STOP true) -> SetTimestamp(2) -> a :: AdjustTimestamp(-1.5)
///     -> f :: TimeFilter(1.4, 1.6) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// a.time = -0.500000s
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "AdjustTimestamp",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "SetTimestamp, SetTimestampDelta, TimeFilter"
)]
pub struct AdjustTimestampArgs {
    /// Time to add.
    #[arg(position, default = "0")]
    time: SignedTime,
    /// Change the first timestamp annotation.
    #[arg(default = "false")]
    first: bool,
    /// Change timestamps of zero too.
    #[arg(default = "false")]
    all: bool,
}

pub struct AdjustTimestamp {
    args: AdjustTimestampArgs,
}

impl Filter for AdjustTimestamp {
    type Args = AdjustTimestampArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("time", "Time to add.", |adjust| number_format::interval(adjust.args.time.0)),
        Handler::setting("time", "Sets the time to add.", |adjust, cx, value| {
            adjust.args.time = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: AdjustTimestampArgs, _: &mut Setup) -> Result<AdjustTimestamp, SetupError> {
        Ok(AdjustTimestamp { args })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let time = if self.args.first { packet.first_timestamp() } else { packet.timestamp() };
        if self.args.all || !time.is_zero() {
            let time = time.wrapping_add(self.args.time.0);
            if self.args.first {
                packet.set_first_timestamp(time);
            } else {
                packet.set_timestamp(time);
            }
        }
        Verdict::Pass(packet)
    }
}
