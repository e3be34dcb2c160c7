//! `StoreEtherAddress`: writes an address into packets.

use element::arguments::{Annotation, Word};
use element::prelude::*;
use packet::MacAddr;

use super::header::address_offset;

/// Writes an Ethernet address into each packet.
///
/// OFFSET is a byte offset, or `src` or `dst` for the addresses of a frame. ANNO takes the address from an annotation
/// instead of ADDR. Packets that are too short go to output 1, or are dropped as `too_short`.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> s :: StoreEtherAddress(1:2:3:4:5:6, src)
///     -> c :: Classifier(6/010203040506, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// s.addr = 01-02-03-04-05-06
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "StoreEtherAddress",
    group = "ethernet",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    see = "EtherEncap, GetEtherAddress",
    drops = "too_short",
    fates = "changed"
)]
pub struct StoreEtherAddressArgs {
    /// Address to write.
    #[arg(position)]
    addr: Option<MacAddr>,
    /// Offset to write at.
    #[arg(position)]
    offset: Word,
    /// Annotation that holds the address.
    anno: Option<Annotation<6>>,
}

pub struct StoreEtherAddress {
    address: MacAddr,
    annotation: Option<usize>,
    offset: usize,
}

impl Filter for StoreEtherAddress {
    type Args = StoreEtherAddressArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("addr", "Address to write.", |store| store.address.to_string()),
        Handler::setting("addr", "Sets the address to write.", |store, cx, value| {
            store.address = cx.data(value)?;
            Ok(())
        }),
    ];

    fn new(args: StoreEtherAddressArgs, setup: &mut Setup) -> Result<StoreEtherAddress, SetupError> {
        if args.addr.is_some() == args.anno.is_some() {
            return Err(SetupError::new("must specify exactly one of ADDR/ANNO"));
        }
        let offset = address_offset(&args.offset, setup)?;
        let annotation = args.anno.map(|annotation| annotation.0);
        Ok(StoreEtherAddress { address: args.addr.unwrap_or_default(), annotation, offset })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        if self.annotation.is_some() || self.offset + 6 > packet.len() {
            return false;
        }
        let target = packet.data_mut().get_mut(self.offset..).and_then(|rest| rest.first_chunk_mut());
        target.map(|target| *target = self.address.0).is_some()
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let address = match self.annotation {
            None => self.address.0,
            Some(offset) => {
                let bytes = packet.annotations().get(offset..).and_then(|rest| rest.first_chunk());
                bytes.copied().unwrap_or_default()
            }
        };
        if self.offset + address.len() > packet.len() {
            return Verdict::Divert(packet, Reason::TOO_SHORT);
        }
        let target = packet.data_mut().get_mut(self.offset..).and_then(|rest| rest.first_chunk_mut());
        if let Some(target) = target {
            *target = address;
        }
        Verdict::Pass(packet)
    }
}
