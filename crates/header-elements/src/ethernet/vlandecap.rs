//! `VLANDecap`: removes the VLAN tag of frames.

use element::prelude::*;
use packet::EtherType;

use super::header::{LENGTH, read_u16};
use super::vlan::set_annotation;

/// Removes the 802.1Q tag from Ethernet frames that have one.
///
/// With ANNO, it sets the VLAN_TCI annotation to the tag control information, or to 0 for untagged frames.
/// ```click
/// InfiniteSource(DATA \<020202020202 010101010101 8100 2005 0800 aabb>, LIMIT 2, STOP true) -> VLANDecap
///     -> c :: Classifier(0/020202020202010101010101 12/0800aabb, -);
/// c[0] -> right :: Counter -> VLANEncap(ANNO) -> tagged :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.byte_count = 32
/// tagged.byte_count = 40
/// wrong.count = 0
/// right.count = 2
/// tagged.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "VLANDecap",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "VLANEncap, StripEtherVLANHeader",
    fates = "changed"
)]
pub struct VLANDecapArgs {
    /// Set the annotation.
    #[arg(position, default = "true")]
    anno: bool,
    /// EtherType of tagged frames.
    #[arg(default = "0x8100")]
    ethertype: u16,
}

pub struct VLANDecap {
    annotate: bool,
    kind: EtherType,
}

impl Filter for VLANDecap {
    type Args = VLANDecapArgs;

    fn new(args: VLANDecapArgs, _: &mut Setup) -> Result<VLANDecap, SetupError> {
        Ok(VLANDecap { annotate: args.anno, kind: EtherType(args.ethertype) })
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let announced = read_u16(packet.data(), 12) == Some(self.kind.0);
        let control = if announced { read_u16(packet.data(), 14) } else { None };
        if control.is_some() {
            if let Some(bytes) = packet.data_mut().first_chunk_mut::<16>() {
                bytes.copy_within(..12, 4);
            }
            packet.strip(4);
        }
        packet.set_mac_header(0, LENGTH);
        if self.annotate {
            set_annotation(&mut packet, control.unwrap_or(0));
        }
        Verdict::Pass(packet)
    }
}
