//! `NotifierDebug`: reports the notifiers that it found.

use element::Direction;
use element::prelude::*;

/// Passes packets, and reports the notifiers that it found. For tests.
///
/// On a push path these are the notifiers for room downstream, on a pull path those for packets upstream.
/// ```click
/// InfiniteSource(LIMIT 1) -> room :: NotifierDebug -> Queue -> packets :: NotifierDebug -> Discard;
/// DriverManager(wait 1ms, stop);
/// ```
/// ```expect
/// room.signal = full.0/1:1*
/// packets.signal = empty.0/2:0
/// ```
/// ## Differences
/// Notifiers are numbered in the order of their elements. Click numbers them in the order of initialisation, so their
/// bits may differ.
#[derive(Args)]
#[element(
    name = "NotifierDebug",
    group = "testing",
    ports = "1/1",
    processing = "a/a",
    order_insensitive,
    see = "Queue"
)]
pub struct NotifierDebugArgs {}

pub struct NotifierDebug;

impl Filter for NotifierDebug {
    type Args = NotifierDebugArgs;
    const HANDLERS: &'static [Handler<Self>] = &[Handler::read_with(
        "signal",
        "Notifiers found, 32 per word: `NAME.WORD/MASK:VALUE`, with `*` if one of them is active.",
        |_, cx, _| {
            let direction = if cx.is_push_input(0) { Direction::Full } else { Direction::Empty };
            Ok(cx.runtime().describe_signal(cx.element(), 0, direction))
        },
    )];

    fn new(_: NotifierDebugArgs, _: &mut Setup) -> Result<NotifierDebug, SetupError> {
        Ok(NotifierDebug)
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        Verdict::Pass(packet)
    }
}
