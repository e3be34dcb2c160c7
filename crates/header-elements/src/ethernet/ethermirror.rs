//! `EtherMirror`: swaps the Ethernet addresses of frames.

use element::prelude::*;

/// Swaps the source and destination address of each Ethernet frame.
///
/// ## Differences
/// In a packet too short for both addresses, missing bytes count as zero; Click reads whatever follows the packet.
///
/// ```click
/// InfiniteSource(DATA \<010101010101 020202020202 0800>, LIMIT 2, STOP true) -> EtherMirror
///     -> c :: Classifier(0/020202020202 6/010101010101 12/0800, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "EtherMirror",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "EtherRewrite, IPMirror",
    fates = "changed"
)]
pub struct EtherMirrorArgs {}

pub struct EtherMirror;

impl Filter for EtherMirror {
    type Args = EtherMirrorArgs;

    fn new(_: EtherMirrorArgs, _: &mut Setup) -> Result<EtherMirror, SetupError> {
        Ok(EtherMirror)
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        match packet.data_mut().first_chunk_mut::<12>() {
            // A rotation by half the length, during which both addresses stay in registers.
            Some([a, b, c, d, e, f, g, h, i, j, k, l]) => {
                core::mem::swap(a, g);
                core::mem::swap(b, h);
                core::mem::swap(c, i);
                core::mem::swap(d, j);
                core::mem::swap(e, k);
                core::mem::swap(f, l);
            }
            None => mirror_short(packet.data_mut()),
        }
        true
    }
}

/// Swaps the addresses of a frame that ends inside them.
#[cold]
fn mirror_short(frame: &mut [u8]) {
    let mut whole = [0; 12];
    whole.iter_mut().zip(&*frame).for_each(|(to, from)| *to = *from);
    whole.rotate_left(6);
    frame.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
}
