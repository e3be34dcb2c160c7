//! `CheckLength`: separates packets by their length.

use element::prelude::*;

/// Passes packets of at most LENGTH bytes. Longer ones go to output 1, or are dropped as `too_long`.
///
/// ## Differences
///
/// EXTRA_LENGTH is one of FastClick.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> check :: CheckLength(59);
/// check[0] -> short :: Counter -> Discard;
/// check[1] -> long :: Counter -> Discard;
/// ```
/// ```expect
/// short.count = 0
/// long.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckLength",
    group = "changing",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    see = "Truncate, Pad",
    drops = "too_long"
)]
pub struct CheckLengthArgs {
    /// Maximum packet length in bytes.
    #[arg(position)]
    length: u32,
    /// Add the extra length annotation, for example bytes that a dump cut off.
    #[arg(default = "false")]
    extra_length: bool,
}

pub struct CheckLength {
    args: CheckLengthArgs,
}

impl Filter for CheckLength {
    type Args = CheckLengthArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("length", "Maximum packet length.", |check| check.args.length.to_string()),
        Handler::setting("length", "Sets the maximum packet length.", |check, cx, value| {
            check.args.length = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: CheckLengthArgs, _: &mut Setup) -> Result<CheckLength, SetupError> {
        Ok(CheckLength { args })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let extra = if self.args.extra_length { packet.extra_length() } else { 0 };
        (packet.len() as u32).wrapping_add(extra) <= self.args.length
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if self.pass(&mut packet) {
            return Verdict::Pass(packet);
        }
        Verdict::Divert(packet, Reason::TOO_LONG)
    }
}
