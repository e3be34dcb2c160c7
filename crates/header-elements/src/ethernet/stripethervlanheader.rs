//! `StripEtherVLANHeader`: removes the Ethernet header and its VLAN tag.

use element::prelude::*;
use packet::EtherType;

use super::header::{LENGTH, TAGGED_LENGTH, read_u16};
use super::vlan::set_annotation;
use crate::changing::strip;

/// Removes the Ethernet header and any 802.1Q tag of each packet, and sets the VLAN_TCI annotation.
///
/// Packets without a tag belong to the VLAN NATIVE_VLAN. If that is negative, they go to output 1, or are dropped as
/// `no_tag`.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, 5)
///     -> StripEtherVLANHeader(-1) -> VLANEncap(ANNO) -> tagged :: Counter -> Discard;
/// ```
/// ```expect
/// tagged.count = 2
/// tagged.byte_count = 100
/// ```
#[derive(Args)]
#[element(
    name = "StripEtherVLANHeader",
    aliases = "StripEtherVlanHeader",
    group = "ethernet",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    logs,
    see = "EtherVLANEncap, VLANDecap, Strip",
    drops = "no_tag",
    fates = "changed"
)]
pub struct StripEtherVLANHeaderArgs {
    /// VLAN of untagged packets; negative for none.
    #[arg(position, default = "0")]
    native_vlan: i32,
}

pub struct StripEtherVLANHeader {
    native: Option<u16>,
}

impl Filter for StripEtherVLANHeader {
    type Args = StripEtherVLANHeaderArgs;
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: StripEtherVLANHeaderArgs, _: &mut Setup) -> Result<StripEtherVLANHeader, SetupError> {
        if args.native_vlan > 0xfff {
            return Err(SetupError::new("bad NATIVE_VLAN"));
        }
        Ok(StripEtherVLANHeader { native: u16::try_from(args.native_vlan).ok() })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let announced = read_u16(packet.data(), 12) == Some(EtherType::VLAN.0);
        let control = if announced { read_u16(packet.data(), 14) } else { None };
        match (control, self.native) {
            (Some(control), _) => {
                set_annotation(&mut packet, control);
                strip(cx, &mut packet, TAGGED_LENGTH);
            }
            (None, Some(native)) => {
                set_annotation(&mut packet, native);
                strip(cx, &mut packet, LENGTH);
            }
            (None, None) => return Verdict::Divert(packet, Reason::NO_TAG),
        }
        Verdict::Pass(packet)
    }
}
