//! `AdjustTimestamp`: moves the time of packets.

use element::arguments::SignedTime;
use element::number_format;
use element::prelude::*;

/// Adds TIME, which may be negative, to the timestamp of each packet.
///
/// A timestamp of zero means that there is none, and stays, but with ALL. With FIRST true the first timestamp
/// annotation is changed instead. A fraction counts forward even in a negative TIME, as in Click: -1.5 is half a
/// second back.
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
    see = "SetTimestamp, SetTimestampDelta, TimeFilter"
)]
pub struct AdjustTimestampArgs {
    /// The span to add.
    #[arg(position, default = "0")]
    time: SignedTime,
    /// Whether the first timestamp annotation is meant.
    #[arg(default = "false")]
    first: bool,
    /// Whether timestamps of zero are changed too.
    #[arg(default = "false")]
    all: bool,
}

/// The element.
pub struct AdjustTimestamp {
    args: AdjustTimestampArgs,
}

impl Filter for AdjustTimestamp {
    type Args = AdjustTimestampArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("time", "The span that is added.", |adjust| {
            number_format::interval(adjust.args.time.0)
        }),
        Handler::write("time", "Sets the span that is added.", |adjust, cx, value| {
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
