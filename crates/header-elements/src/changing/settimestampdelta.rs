//! `SetTimestampDelta`: replaces timestamps by time differences.

use element::arguments::Word;
use element::number_format;
use element::prelude::*;

/// Replaces timestamps by time differences. Timestamps of zero stay unchanged.
///
/// TYPE selects the difference:
///
/// - `RANGE`: since the first timestamp seen;
/// - `NOW`: from the timestamp until now;
/// - `FIRST`: from the packet's first timestamp annotation to its timestamp.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> SetTimestamp(5) -> d :: SetTimestampDelta
///     -> f :: TimeFilter(END 0.1) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// d.first = 5.000000
/// c.count = 3
/// ```
#[derive(Args)]
#[element(name = "SetTimestampDelta", group = "changing", see = "SetTimestamp, AdjustTimestamp, TimeFilter")]
pub struct SetTimestampDeltaArgs {
    /// `RANGE`, `NOW` or `FIRST`.
    #[arg(default = "RANGE")]
    r#type: Word,
}

enum DeltaType {
    Range,
    Now,
    First,
}

pub struct SetTimestampDelta {
    delta_type: DeltaType,
    first: Timestamp,
}

impl Filter for SetTimestampDelta {
    type Args = SetTimestampDeltaArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("first", "First timestamp seen.", |delta| number_format::timestamp(delta.first) + "\n"),
        Handler::action("reset", "Forgets the first timestamp.", |delta, _, _| {
            delta.first = Timestamp::ZERO;
            Ok(())
        }),
    ];

    fn new(args: SetTimestampDeltaArgs, _: &mut Setup) -> Result<SetTimestampDelta, SetupError> {
        let delta_type = match &*args.r#type.0 {
            "RANGE" => DeltaType::Range,
            "NOW" => DeltaType::Now,
            "FIRST" => DeltaType::First,
            _ => return Err(SetupError::new("bad TYPE")),
        };
        Ok(SetTimestampDelta { delta_type, first: Timestamp::ZERO })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let time = packet.timestamp();
        if !time.is_zero() {
            let span = match self.delta_type {
                DeltaType::Range => {
                    if self.first.is_zero() {
                        self.first = time;
                    }
                    time - self.first
                }
                DeltaType::Now => cx.now() - time,
                DeltaType::First => time - packet.first_timestamp(),
            };
            packet.set_timestamp(span);
        }
        Verdict::Pass(packet)
    }
}
