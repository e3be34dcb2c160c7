//! `StoreData`: overwrites bytes of packets.

use element::arguments::Bytes;
use element::prelude::*;

/// Overwrites bytes of each packet with DATA, starting at OFFSET. Data beyond the end of the packet is ignored.
/// ```click
/// InfiniteSource(DATA \<00010203>, LIMIT 2, STOP true) -> StoreData(1, \<aabb>)
///     -> c :: Classifier(0/00aabb03, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "StoreData",
    group = "changing",
    order_insensitive,
    shards = "independent",
    flows = "changes",
    see = "StoreIPAddress, StoreEtherAddress",
    fates = "changed"
)]
pub struct StoreDataArgs {
    /// Offset of the first byte to write.
    #[arg(position)]
    offset: u32,
    /// Bytes to write.
    #[arg(position)]
    data: Bytes,
}

pub struct StoreData {
    offset: usize,
    data: Vec<u8>,
}

impl Filter for StoreData {
    type Args = StoreDataArgs;

    fn new(args: StoreDataArgs, _: &mut Setup) -> Result<StoreData, SetupError> {
        Ok(StoreData { offset: args.offset as usize, data: args.data.0 })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        // If the offset is beyond the end, nothing is written, so shared data need not be copied.
        if self.offset < packet.len()
            && let Some(target) = packet.data_mut().get_mut(self.offset..)
        {
            for (byte, new) in target.iter_mut().zip(&self.data) {
                *byte = *new;
            }
        }
        Verdict::Pass(packet)
    }
}
