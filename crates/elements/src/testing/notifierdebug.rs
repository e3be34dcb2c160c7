//! `NotifierDebug`: shows the signal at its place.

use element::Direction;
use element::prelude::*;

/// Passes packets on, and tells the signal that there is at its place.
///
/// Where packets are pushed, that is whether there is room downstream; where they are pulled, whether there may be some
/// upstream.
/// ```click
/// InfiniteSource(LIMIT 1) -> room :: NotifierDebug -> Queue -> packets :: NotifierDebug -> Discard;
/// DriverManager(wait 1ms, stop);
/// ```
/// ```expect
/// room.signal = full.0/1:1*
/// packets.signal = empty.0/2:0
/// ```
/// ## Differences
/// Click numbers the notifiers as it comes to initialise them; here they have the order of their elements. So other
/// bits may stand for them.
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

/// The element.
pub struct NotifierDebug;

impl Filter for NotifierDebug {
    type Args = NotifierDebugArgs;
    const HANDLERS: &'static [Handler<Self>] = &[Handler::read_with(
        "signal",
        "The notifiers that were found, 32 a word: `NAME.WORD/MASK:VALUE`, with `*` if one of them is active.",
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
