//! `SetTimestamp`: sets the timestamp of packets.

use element::prelude::*;

/// Sets the timestamp of each packet to TIMESTAMP, or to the current time.
///
/// With FIRST, it sets the first timestamp annotation instead.
///
/// ## Differences
/// All packets of one task run carry the same time, because the clock is read once per run.
/// ```click
/// InfiniteSource(LIMIT 2) -> SetTimestamp(2.5) -> t :: TimeSortedSched(STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// t.well_ordered = true
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "SetTimestamp",
    group = "changing",
    order_insensitive,
    see = "TimeSortedSched, Print",
    shards = "independent"
)]
pub struct SetTimestampArgs {
    /// Time to set.
    #[arg(position)]
    timestamp: Option<Timestamp>,
    /// Set the first timestamp annotation.
    #[arg(default = "false")]
    first: bool,
    /// No longer supported.
    #[arg(default = "false")]
    delta: bool,
}

pub struct SetTimestamp {
    time: Option<Timestamp>,
    first: bool,
}

impl Filter for SetTimestamp {
    type Args = SetTimestampArgs;

    fn new(args: SetTimestampArgs, _: &mut Setup) -> Result<SetTimestamp, SetupError> {
        if args.delta {
            let text = "SetTimestamp(DELTA) is deprecated, use SetTimestampDelta(TYPE FIRST)";
            return Err(SetupError::new(text));
        }
        Ok(SetTimestamp { time: args.timestamp.filter(|time| *time >= Timestamp::ZERO), first: args.first })
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let time = self.time.unwrap_or_else(|| cx.now());
        if self.first {
            packet.set_first_timestamp(time);
        } else {
            packet.set_timestamp(time);
        }
        Verdict::Pass(packet)
    }
}
