//! `Unstrip`: restores removed bytes at the front.

use element::prelude::*;

/// Restores LENGTH bytes at the front of each packet that `Strip` removed.
///
/// If fewer bytes were removed, the contents of the others are unspecified. A packet that would exceed the maximum size
/// is dropped as `too_long`.
/// ```click
/// InfiniteSource(DATA \<aabbccdd>, LIMIT 2, STOP true) -> Strip(3) -> Unstrip(2)
///     -> c :: Classifier(0/bbccdd, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// right.byte_count = 6
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "Unstrip",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "Strip, EtherEncap, IPEncap",
    drops = "too_long",
    fates = "changed"
)]
pub struct UnstripArgs {
    /// Bytes to restore.
    #[arg(position)]
    length: u32,
}

pub struct Unstrip {
    length: usize,
}

impl Filter for Unstrip {
    type Args = UnstripArgs;

    fn new(args: UnstripArgs, _: &mut Setup) -> Result<Unstrip, SetupError> {
        Ok(Unstrip { length: args.length as usize })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        packet.unstrip(self.length)
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if packet.unstrip(self.length) || packet.prepend(self.length).is_some() {
            return Verdict::Pass(packet);
        }
        Verdict::Drop(packet, Reason::TOO_LONG)
    }
}
