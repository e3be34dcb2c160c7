//! `EtherVLANEncap`: prepends an Ethernet header with a VLAN tag.

use element::arguments::Word;
use element::prelude::*;
use packet::{EtherType, MacAddr};

use super::header::{LENGTH, TAGGED_LENGTH, ethernet};
use super::vlan::{self, Tag, TagArguments};

/// Adds an Ethernet header with an 802.1Q VLAN tag.
///
/// VLAN_TCI sets the whole tag control information; `ANNO` takes it from the VLAN_TCI annotation. VLAN_ID and VLAN_PCP
/// set its parts. Packets of the VLAN NATIVE_VLAN get a header without a tag. A packet that cannot grow is dropped as
/// `too_long`.
///
/// The addresses and the type can be changed at run time. The tag cannot: a write to one of its handlers appends the
/// value to the text of `config`, in which the type is the third argument instead of the first, so the router refuses
/// it.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> e :: EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, 5)
///     -> c :: Classifier(0/020202020202 6/010101010101 12/810000050800, -);
/// c[0] -> right :: Counter -> StripEtherVLANHeader -> stripped :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// e.vlan_tci = 5
/// e.ethertype = 2048
/// right.byte_count = 128
/// stripped.byte_count = 92
/// wrong.count = 0
/// right.count = 2
/// stripped.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "EtherVLANEncap",
    aliases = "EtherVlanEncap",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "VLANEncap, StripEtherVLANHeader, SetVLANAnno, EtherEncap, ARPQuerier",
    drops = "too_long",
    fates = "changed"
)]
pub struct EtherVLANEncapArgs {
    /// EtherType of the payload.
    #[arg(position)]
    ethertype: u16,
    /// Source address.
    #[arg(position)]
    src: MacAddr,
    /// Destination address.
    #[arg(position)]
    dst: MacAddr,
    #[arg(flatten)]
    tag: TagArguments,
}

pub struct EtherVLANEncap {
    kind: EtherType,
    source: MacAddr,
    destination: MacAddr,
    tag: Tag,
}

impl Filter for EtherVLANEncap {
    type Args = EtherVLANEncapArgs;
    const HANDLERS: &'static [Handler<Self>] = vlan::handlers!(
        Handler::read("config", "The configuration.", |encap| {
            let EtherVLANEncap { kind, source, destination, tag } = encap;
            format!("{source}, {destination}, {}, {}", kind.0, tag.config())
        }),
        Handler::read("src", "Source address.", |encap| encap.source.to_string()),
        Handler::setting("src", "Sets the source address.", |encap, cx, value| {
            encap.source = cx.data(value)?;
            Ok(())
        }),
        Handler::read("dst", "Destination address.", |encap| encap.destination.to_string()),
        Handler::setting("dst", "Sets the destination address.", |encap, cx, value| {
            encap.destination = cx.data(value)?;
            Ok(())
        }),
        Handler::read("ethertype", "EtherType.", |encap| encap.kind.0.to_string()),
        Handler::setting("ethertype", "Sets the type.", |encap, cx, value| {
            encap.kind = EtherType(cx.data(value)?);
            Ok(())
        }),
    );
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: EtherVLANEncapArgs, setup: &mut Setup) -> Result<EtherVLANEncap, SetupError> {
        let tag = Tag::new(&args.tag, setup)?;
        let (kind, source, destination) = (EtherType(args.ethertype), args.src, args.dst);
        Ok(EtherVLANEncap { kind, source, destination, tag })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let done = match self.tag.for_packet(&packet) {
            None => packet.prepend_link_header(&ethernet(self.destination, self.source, self.kind)),
            Some(control) => packet.prepend_link_header(&self.tagged(control)),
        };
        match done {
            Some(()) => Verdict::Pass(packet),
            None => Verdict::Drop(packet, Reason::TOO_LONG),
        }
    }
}

impl EtherVLANEncap {
    /// The error for writes to the tag's arguments: the problems of parsing `config` as arguments, and of the value.
    fn write_error(
        &self,
        _: &Context,
        keyword: &str,
        problem: Option<HandlerError>,
    ) -> Result<(), HandlerError> {
        let mut errors = SetupError::argument("ETHERTYPE", "invalid number");
        errors.merge(SetupError::argument("DST", "parse error"));
        if let Some(problem) = problem {
            errors.merge(SetupError::argument(keyword, problem));
        }
        if self.tag.native.is_none() && keyword != "NATIVE_VLAN" {
            errors.merge(SetupError::argument("NATIVE_VLAN", "out of range, bound 4095"));
        }
        Err(errors.into())
    }

    /// The tagged header.
    #[inline]
    fn tagged(&self, control: u16) -> [u8; TAGGED_LENGTH] {
        let mut header = [0; TAGGED_LENGTH];
        if let Some(front) = header.first_chunk_mut::<LENGTH>() {
            *front = ethernet(self.destination, self.source, EtherType::VLAN);
        }
        let [.., a, b, c, d] = &mut header;
        ([*a, *b], [*c, *d]) = (control.to_be_bytes(), self.kind.0.to_be_bytes());
        header
    }
}
