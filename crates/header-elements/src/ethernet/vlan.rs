//! VLAN tags: arguments and annotations, shared by the elements of this group.

use element::arguments::{ArgumentError, Word};
use element::prelude::*;
use packet::annotation::VLAN_TCI;

/// The bits of the VLAN identifier in the tag control information.
pub(super) const IDENTIFIER: u16 = 0x0fff;
/// The bits of the priority in the tag control information.
pub(super) const PRIORITY: u16 = 0xe000;
/// The lowest bit of the priority.
const PRIORITY_SHIFT: u32 = 13;

/// An integer from `LOW` to `HIGH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounded<const LOW: i32, const HIGH: i32>(pub i32);

impl<const LOW: i32, const HIGH: i32> FromArgument for Bounded<LOW, HIGH> {
    const KIND: &'static str = "integer";

    fn from_argument(text: &str, setup: &Setup) -> Result<Self, ArgumentError> {
        match i32::from_argument(text, setup)? {
            value if value < LOW => Err(ArgumentError::OutOfRange(LOW.to_string())),
            value if value > HIGH => Err(ArgumentError::OutOfRange(HIGH.to_string())),
            value => Ok(Bounded(value)),
        }
    }
}

/// Tag control information as a number.
pub(super) type Control = Bounded<0, 0xffff>;
/// A priority.
pub(super) type Priority = Bounded<0, 7>;
/// A VLAN identifier.
pub(super) type Identifier = Bounded<0, 0xfff>;
/// A VLAN identifier, or -1 for none.
pub(super) type Native = Bounded<-1, 0xfff>;

impl Native {
    /// No native VLAN.
    pub(super) const NONE: Native = Bounded(-1);
}

/// The arguments for the tag that packets get.
#[derive(ArgumentGroup)]
pub(super) struct TagArguments {
    /// The tag control information, or ANNO.
    #[arg(position)]
    pub(super) vlan_tci: Option<Word>,
    /// The priority.
    #[arg(position, default = "0")]
    pub(super) vlan_pcp: Priority,
    /// The VLAN identifier.
    #[arg(default = "0")]
    pub(super) vlan_id: Identifier,
    /// The VLAN whose packets get no tag; -1 for none.
    #[arg(default = "0")]
    pub(super) native_vlan: Native,
}

/// The tag that packets get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The tag control information, used unless the annotation replaces it.
    pub(super) control: u16,
    /// Whether the annotation replaces it.
    pub(super) annotated: bool,
    /// The VLAN identifier of packets that get no tag.
    pub(super) native: Option<u16>,
}

impl Tag {
    /// Creates the tag from the arguments; VLAN_TCI is a number or `ANNO`.
    pub(super) fn new(args: &TagArguments, setup: &Setup) -> Result<Tag, SetupError> {
        let mut tag = Tag {
            control: combine(args.vlan_id.0, args.vlan_pcp),
            annotated: false,
            native: u16::try_from(args.native_vlan.0).ok(),
        };
        match &args.vlan_tci {
            Some(word) if word.0 == "ANNO" => tag.annotated = true,
            Some(word) => {
                let control = Control::from_argument(&word.0, setup);
                let control = control.map_err(|problem| SetupError::argument("VLAN_TCI", problem))?;
                tag.control = combine(control.0, args.vlan_pcp);
            }
            None => {}
        }
        Ok(tag)
    }

    /// The tag for a packet; `None` if it gets none.
    #[inline]
    pub(super) fn for_packet(&self, packet: &Packet) -> Option<u16> {
        let control = if self.annotated { annotation(packet) } else { self.control };
        (Some(control & IDENTIFIER) != self.native).then_some(control)
    }

    /// The tag's arguments as text.
    pub(super) fn config(&self) -> String {
        let mut text = if self.annotated { "ANNO".to_string() } else { self.fixed_config() };
        if self.native != Some(0) {
            text.push_str(", NATIVE_VLAN ");
            text.push_str(&self.native_text());
        }
        text
    }

    /// The VLAN_TCI argument as text.
    pub(super) fn fixed_config(&self) -> String {
        format!("VLAN_ID {}, VLAN_PCP {}", self.identifier(), self.priority())
    }

    /// The value of the `vlan_tci` handler.
    pub(super) fn control_text(&self) -> String {
        if self.annotated { "ANNO".to_string() } else { self.control.to_string() }
    }

    /// The value of the `vlan_id` handler: empty if the annotation decides.
    pub(super) fn identifier_text(&self) -> String {
        if self.annotated { String::new() } else { self.identifier().to_string() }
    }

    /// The value of the `vlan_pcp` handler: empty if the annotation decides.
    pub(super) fn priority_text(&self) -> String {
        if self.annotated { String::new() } else { self.priority().to_string() }
    }

    /// The value of the `native_vlan` handler: empty for 0, the default.
    pub(super) fn native_text(&self) -> String {
        match self.native {
            Some(0) => String::new(),
            native => native.map_or_else(|| "-1".to_string(), |native| native.to_string()),
        }
    }

    pub(super) fn identifier(&self) -> u16 {
        self.control & IDENTIFIER
    }

    pub(super) fn priority(&self) -> u16 {
        self.control >> PRIORITY_SHIFT
    }

    pub(super) fn set_identifier(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let identifier: Identifier = cx.argument(value)?;
        self.control = combine(identifier.0, Bounded(self.priority().into()));
        Ok(())
    }

    pub(super) fn set_priority(&mut self, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let priority: Priority = cx.argument(value)?;
        self.control = combine(self.identifier().into(), priority);
        Ok(())
    }
}

fn combine(control: i32, priority: Priority) -> u16 {
    control as u16 | (priority.0 as u16) << PRIORITY_SHIFT
}

/// The tag control information in the annotation.
#[inline]
pub(super) fn annotation(packet: &Packet) -> u16 {
    u16::from_be(packet.annotation_u16(VLAN_TCI.offset.into()))
}

/// Sets the annotation.
#[inline]
pub(super) fn set_annotation(packet: &mut Packet, control: u16) {
    packet.set_annotation_u16(VLAN_TCI.offset.into(), control.to_be());
}

/// The handlers of an element that tags packets: its own, then those of its `tag`. Writes to the latter fail with the
/// error of the element's function `write_error`, which gets the keyword and the problem of the value.
macro_rules! handlers {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            Handler::read("vlan_tci", "Tag control information, or ANNO.", |encap| {
                encap.tag.control_text()
            }),
            Handler::setting("vlan_tci", "Refused.", |encap, cx, value| {
                encap.write_error(cx, "VLAN_TCI", cx.argument::<Word>(value).err())
            }),
            Handler::read("vlan_id", "VLAN identifier.", |encap| encap.tag.identifier_text()),
            Handler::setting("vlan_id", "Refused.", |encap, cx, value| {
                encap.write_error(cx, "VLAN_ID", cx.argument::<vlan::Identifier>(value).err())
            }),
            Handler::read("vlan_pcp", "Priority code point.", |encap| encap.tag.priority_text()),
            Handler::setting("vlan_pcp", "Refused.", |encap, cx, value| {
                encap.write_error(cx, "VLAN_PCP", cx.argument::<vlan::Priority>(value).err())
            }),
            Handler::read("native_vlan", "VLAN whose packets are sent without a tag.", |encap| encap.tag.native_text()),
            Handler::setting("native_vlan", "Refused.", |encap, cx, value| {
                encap.write_error(cx, "NATIVE_VLAN", cx.argument::<vlan::Native>(value).err())
            }),
        ]
    };
}
pub(super) use handlers;
