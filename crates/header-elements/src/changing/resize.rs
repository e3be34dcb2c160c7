//! `Resize`: adds or removes bytes at both ends of packets.

use element::prelude::*;

/// Adds HEAD bytes to the front and TAIL bytes to the end of each packet; negative numbers remove bytes.
///
/// Bytes added to the front are those that were removed there before; otherwise their values are unspecified. Bytes
/// added to the end are zero. A packet that would exceed the maximum size is dropped as `too_long`.
///
/// ## Differences
/// Bytes added to the end are zero; in Click they are the previous contents of the buffer.
/// ```click
/// InfiniteSource(DATA ABCD, LIMIT 1, STOP true) -> Resize(HEAD -2) -> a :: Counter
///     -> r :: Resize(+4, -2) -> b :: Counter -> Resize(HEAD -8) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// r.head = 4
/// r.tail = -2
/// a.byte_count = 2
/// b.byte_count = 4
/// c.byte_count = 0
/// a.count = 1
/// b.count = 1
/// c.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "Resize",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "Strip, Unstrip, Truncate",
    drops = "too_long",
    fates = "changed"
)]
pub struct ResizeArgs {
    /// Bytes to add to the front.
    #[arg(position, default = "0")]
    head: i32,
    /// Bytes to add to the end.
    #[arg(position, default = "0")]
    tail: i32,
}

pub struct Resize {
    args: ResizeArgs,
}

impl Filter for Resize {
    type Args = ResizeArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("head", "Bytes added to the front.", |resize| resize.args.head.to_string()),
        Handler::setting("head", "Sets the bytes added to the front.", |resize, cx, value| {
            resize.args.head = cx.data(value)?;
            Ok(())
        }),
        Handler::read("tail", "Bytes added to the end.", |resize| resize.args.tail.to_string()),
        Handler::setting("tail", "Sets the bytes added to the end.", |resize, cx, value| {
            resize.args.tail = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ResizeArgs, _: &mut Setup) -> Result<Resize, SetupError> {
        Ok(Resize { args })
    }

    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if resize(&mut packet, self.args.head, self.args.tail).is_none() {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        Verdict::Pass(packet)
    }
}

/// Moves the front, then the end; `None` if the packet can't grow that much.
fn resize(packet: &mut Packet, head: i32, tail: i32) -> Option<()> {
    let (front, back) = (head.unsigned_abs() as usize, tail.unsigned_abs() as usize);
    if head < 0 {
        packet.strip(front);
    } else if head > 0 && !packet.unstrip(front) {
        packet.prepend(front)?;
    }
    if tail < 0 {
        packet.truncate_by(back);
    } else if tail > 0 {
        packet.append(back)?;
    }
    Some(())
}
