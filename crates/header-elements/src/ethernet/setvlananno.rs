//! `SetVLANAnno`: sets the VLAN annotation.

use element::prelude::*;

use super::vlan::{Control, Identifier, Native, PRIORITY, Priority, Tag, TagArguments, set_annotation};

/// Sets the VLAN_TCI annotation of each packet.
///
/// VLAN_TCI sets the whole tag control information; VLAN_ID and VLAN_PCP set its parts.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> s :: SetVLANAnno(2, 1)
///     -> EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, ANNO) -> c :: Classifier(12/81002002, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// s.vlan_tci = 8194
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "SetVLANAnno",
    aliases = "SetVlanAnno",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "EtherVLANEncap, VLANEncap"
)]
pub struct SetVLANAnnoArgs {
    /// Tag control information.
    #[arg(position)]
    vlan_tci: Option<Control>,
    /// Priority code point.
    #[arg(position, default = "0")]
    vlan_pcp: Priority,
    /// VLAN identifier.
    #[arg(default = "0")]
    vlan_id: Identifier,
}

pub struct SetVLANAnno {
    tag: Tag,
}

impl Filter for SetVLANAnno {
    type Args = SetVLANAnnoArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("config", "The configuration.", |set| set.tag.fixed_config()),
        Handler::read("vlan_tci", "Tag control information.", |set| set.tag.control.to_string()),
        Handler::argument(
            "vlan_tci",
            (None, "VLAN_TCI"),
            "Sets the tag control information.",
            |set, cx, value| {
                // The priority is a separate argument.
                set.tag.control = cx.argument::<Control>(value)?.0 as u16 | set.tag.control & PRIORITY;
                Ok(())
            },
        ),
        Handler::read("vlan_id", "VLAN identifier.", |set| set.tag.identifier().to_string()),
        Handler::argument("vlan_id", (None, "VLAN_ID"), "Sets the VLAN identifier.", |set, cx, value| {
            set.tag.set_identifier(cx, value)
        }),
        Handler::read("vlan_pcp", "Priority code point.", |set| set.tag.priority().to_string()),
        Handler::argument("vlan_pcp", (None, "VLAN_PCP"), "Sets the priority.", |set, cx, value| {
            set.tag.set_priority(cx, value)
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: SetVLANAnnoArgs, setup: &mut Setup) -> Result<SetVLANAnno, SetupError> {
        let SetVLANAnnoArgs { vlan_tci, vlan_pcp, vlan_id } = args;
        let parts = TagArguments { vlan_tci: None, vlan_pcp, vlan_id, native_vlan: Native::NONE };
        let mut tag = Tag::new(&parts, setup)?;
        if let Some(control) = vlan_tci {
            tag.control = tag.control & PRIORITY | control.0 as u16;
        }
        Ok(SetVLANAnno { tag })
    }

    #[inline(always)]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        set_annotation(&mut packet, self.tag.control);
        Verdict::Pass(packet)
    }
}
