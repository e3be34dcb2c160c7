//! `VLANEncap`: inserts a VLAN tag into frames.

use element::arguments::Word;
use element::prelude::*;
use packet::EtherType;

use super::header::{LENGTH, TAGGED_LENGTH};
use super::vlan::{self, Tag, TagArguments};

/// Inserts an 802.1Q tag into each Ethernet frame.
///
/// VLAN_TCI sets the whole tag control information; `ANNO` takes it from the VLAN_TCI annotation. VLAN_ID and VLAN_PCP
/// set its parts. Frames of the VLAN NATIVE_VLAN get no tag.
///
/// ## Differences
/// In a packet too short for both addresses, missing bytes count as zero. The network header annotation is set behind
/// the tag; Click sets it 8 bytes into the frame. `config` and `native_vlan` print NATIVE_VLAN -1 as given, not as
/// 65535. `ethertype` prints ETHERTYPE; Click's is empty.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
///     -> v :: VLANEncap(VLAN_ID 5, VLAN_PCP 1) -> c :: Classifier(12/8100200508, -);
/// c[0] -> tagged :: Counter -> VLANDecap -> plain :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// v.vlan_tci = 8197
/// tagged.byte_count = 128
/// plain.byte_count = 120
/// wrong.count = 0
/// plain.count = 2
/// tagged.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "VLANEncap",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "EtherVLANEncap, VLANDecap, SetVLANAnno",
    drops = "too_long",
    fates = "changed"
)]
pub struct VLANEncapArgs {
    #[arg(flatten)]
    tag: TagArguments,
    /// EtherType of tagged frames.
    #[arg(default = "0x8100")]
    ethertype: u16,
}

pub struct VLANEncap {
    tag: Tag,
    kind: EtherType,
}

impl VLANEncap {
    /// The error for writes to an argument.
    fn write_error(&self, cx: &Context, _: &str, _: Option<HandlerError>) -> Result<(), HandlerError> {
        Err(HandlerError::new(format_args!("cannot reconfigure {} :: VLANEncap live", cx.name())))
    }
}

impl Filter for VLANEncap {
    type Args = VLANEncapArgs;
    const HANDLERS: &'static [Handler<Self>] = vlan::handlers!(
        Handler::read("config", "The configuration.", |encap| encap.tag.config()),
        Handler::read("ethertype", "EtherType of tagged frames.", |encap| encap.kind.0.to_string()),
        Handler::setting("ethertype", "Refused.", |encap, cx, _| encap.write_error(cx, "ETHERTYPE", None)),
    );

    fn new(args: VLANEncapArgs, setup: &mut Setup) -> Result<VLANEncap, SetupError> {
        Ok(VLANEncap { tag: Tag::new(&args.tag, setup)?, kind: EtherType(args.ethertype) })
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(control) = self.tag.for_packet(&packet) else {
            packet.set_mac_header(0, LENGTH);
            return Verdict::Pass(packet);
        };
        if packet.prepend(4).is_none() {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        match packet.data_mut().first_chunk_mut::<16>() {
            Some(bytes) => {
                bytes.copy_within(4.., 0);
                let [.., a, b, c, d] = bytes;
                ([*a, *b], [*c, *d]) = (self.kind.0.to_be_bytes(), control.to_be_bytes());
            }
            None => tag_short(packet.data_mut(), self.kind.0, control),
        }
        packet.set_mac_header(0, TAGGED_LENGTH);
        Verdict::Pass(packet)
    }
}

/// Inserts a tag after the addresses of a frame that ends inside the addresses or the tag; it has four bytes of
/// headroom.
#[cold]
fn tag_short(frame: &mut [u8], kind: u16, control: u16) {
    let mut whole = [0; 16];
    let addresses = frame.get(4..).unwrap_or_default();
    whole.iter_mut().zip(addresses).for_each(|(to, from)| *to = *from);
    let tag = kind.to_be_bytes().into_iter().chain(control.to_be_bytes());
    whole.iter_mut().skip(12).zip(tag).for_each(|(to, from)| *to = from);
    frame.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
}
