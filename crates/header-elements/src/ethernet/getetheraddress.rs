//! `GetEtherAddress`: copies an address into an annotation.

use element::arguments::{Annotation, Word};
use element::prelude::*;

use super::header::address_offset;

/// Copies an Ethernet address from each packet into an annotation.
///
/// OFFSET is a byte offset, or `src` or `dst` for the addresses of a frame. Packets that are too short go to output 1,
/// or are dropped as `too_short`.
/// ```click
/// InfiniteSource(DATA \<010203040506 0a0b0c0d0e0f>, LIMIT 2, STOP true) -> GetEtherAddress(0, src)
///     -> StoreEtherAddress(OFFSET dst, ANNO 0) -> c :: Classifier(0/0a0b0c0d0e0f, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "GetEtherAddress",
    group = "ethernet",
    ports = "1/1-2",
    order_insensitive,
    shards = "independent",
    see = "StoreEtherAddress, EtherEncap",
    drops = "too_short"
)]
pub struct GetEtherAddressArgs {
    /// First of the six annotation bytes to set.
    #[arg(position)]
    anno: Annotation<6>,
    /// Offset of the address.
    #[arg(position)]
    offset: Word,
}

pub struct GetEtherAddress {
    annotation: usize,
    offset: usize,
}

impl Filter for GetEtherAddress {
    type Args = GetEtherAddressArgs;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: GetEtherAddressArgs, setup: &mut Setup) -> Result<GetEtherAddress, SetupError> {
        Ok(GetEtherAddress { annotation: args.anno.0, offset: address_offset(&args.offset, setup)? })
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let found = packet.data().get(self.offset..).and_then(|rest| rest.first_chunk::<6>()).copied();
        let Some(address) = found else { return Verdict::Divert(packet, Reason::TOO_SHORT) };
        let target = packet.annotations_mut().get_mut(self.annotation..);
        if let Some(target) = target.and_then(|rest| rest.first_chunk_mut()) {
            *target = address;
        }
        Verdict::Pass(packet)
    }
}
