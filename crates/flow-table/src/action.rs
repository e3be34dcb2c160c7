//! Actions and instructions as data, and their checks.

use std::fmt;

use crate::field::{Nature, ones};
use crate::{Field, Match};

/// Actions of one instruction. OpenFlow sets no limit; more than this is an error of the controller.
const MAX_ACTIONS: usize = 256;

/// Where an output action sends a packet (OpenFlow 1.3.5, 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// A port, by number.
    Port(u32),
    /// The port that the packet arrived on (`OFPP_IN_PORT`).
    InPort,
    /// The forwarding of a switch without flow tables (`OFPP_NORMAL`).
    Normal,
    /// All ports of that forwarding but the ingress port (`OFPP_FLOOD`).
    Flood,
    /// All ports but the ingress port (`OFPP_ALL`).
    All,
    /// The controller (`OFPP_CONTROLLER`).
    Controller {
        /// Bytes of the packet to send; 0xffff for all.
        max_length: u16,
    },
    /// The network stack of the switch (`OFPP_LOCAL`).
    Local,
    /// Extension: the instances of a service, by the service's number.
    Service(u32),
    /// Extension: the first service of a chain, by the chain's number.
    Chain(u32),
    /// Extension: nowhere. Counts as dropped by this entry.
    Drop,
}

/// An action (OpenFlow 1.3.5, 5.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends the packet as it is at this moment.
    Output(Output),
    /// Processes the packet by a group (5.6).
    Group(u32),
    /// Sets the queue for the output.
    SetQueue(u32),
    /// Sets a header field.
    SetField(Field, u128),
    /// Sets a header field of packets that have it (OpenFlow 1.0, 3.3); only applied, never written.
    SetIfPresent(Field, u128),
    /// Sets the VLAN number, and pushes a tag if there is none (OpenFlow 1.0, 3.3); only applied.
    TagVlanVid(u16),
    /// Sets the VLAN priority, and pushes a tag if there is none (OpenFlow 1.0, 3.3); only applied.
    TagVlanPcp(u8),
    /// Removes the outer VLAN tag if there is one (OpenFlow 1.0, 3.3); only applied.
    StripVlan,
    /// Pushes a VLAN tag with this Ethernet type, 0x8100 or 0x88a8.
    PushVlan(u16),
    /// Removes the outer VLAN tag.
    PopVlan,
    /// Pushes an MPLS header with this Ethernet type, 0x8847 or 0x8848.
    PushMpls(u16),
    /// Removes the outer MPLS header; the payload has this Ethernet type.
    PopMpls(u16),
    /// Pushes a header of provider backbone bridging with this Ethernet type, 0x88e7 (IEEE 802.1Q-2018, 9.7): addresses and
    /// the service tag.
    PushPbb(u16),
    /// Removes that header, with the tag of its VLAN if there is one.
    PopPbb,
    /// Sets the time to live of the outer MPLS header.
    SetMplsTtl(u8),
    /// Decrements the time to live of the outer MPLS header.
    DecMplsTtl,
    /// Sets the time to live, or hop limit, of the IP header.
    SetIpTtl(u8),
    /// Decrements the time to live, or hop limit, of the IP header.
    DecIpTtl,
    /// Copies the time to live from the next to the outermost header.
    CopyTtlOut,
    /// Copies the time to live from the outermost to the next header.
    CopyTtlIn,
}

/// The instructions of a flow entry (OpenFlow 1.3.5, 5.9), performed in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Instructions {
    /// The meter to apply first.
    pub meter: Option<u32>,
    /// Actions to perform at once, in this order.
    pub apply: Vec<Action>,
    /// Whether to empty the action set.
    pub clear: bool,
    /// Actions to add to the action set.
    pub write: Vec<Action>,
    /// The value and mask of a change of the metadata.
    pub metadata: Option<(u64, u64)>,
    /// The next table.
    pub goto: Option<u8>,
    /// What output actions to other ports than the controller state as a length (7.2.5), which has no meaning there and is only
    /// reported: in the order of those actions in `apply` and then `write`. Missing ones are zero.
    pub stated_lengths: Vec<u16>,
}

impl Instructions {
    /// The instructions that perform these actions at once.
    #[must_use]
    pub fn apply(actions: impl Into<Vec<Action>>) -> Self {
        Self { apply: actions.into(), ..Self::default() }
    }

    /// The instruction to send packets to an output.
    #[must_use]
    pub fn output(output: Output) -> Self {
        Self::apply([Action::Output(output)])
    }

    /// Whether an action outputs to this port. Numbers of reserved ports are those of [`crate::port_number`].
    #[must_use]
    pub fn has_output(&self, port: u32) -> bool {
        self.actions()
            .any(|action| matches!(action, Action::Output(output) if output.port_number() == Some(port)))
    }

    /// Whether an action sends packets to this group.
    #[must_use]
    pub fn has_group(&self, group: u32) -> bool {
        self.actions().any(|action| *action == Action::Group(group))
    }

    fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write)
    }

    /// Memory outside of this structure, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let lengths = self.stated_lengths.len() * size_of::<u16>();
        (self.apply.len() + self.write.len()) * size_of::<Action>() + lengths
    }

    /// Checks the actions for an entry with this match.
    pub(crate) fn check(&self, matching: &Match) -> Result<(), ActionError> {
        for actions in [&self.apply, &self.write] {
            if actions.len() > MAX_ACTIONS {
                return Err(ActionError::TooMany);
            }
            let mut headers = Some(matching.nature());
            for action in actions {
                headers = action.check(headers)?;
            }
        }
        if self.write.iter().any(Action::is_only_applied) {
            return Err(ActionError::OnlyApplied);
        }
        Ok(())
    }
}

/// The reason why an action is refused (`OFPET_BAD_ACTION`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActionError {
    /// More than 256 actions (`OFPBAC_TOO_MANY`).
    TooMany,
    /// The field cannot be set (`OFPBAC_BAD_SET_TYPE`).
    NotSettable(Field),
    /// The value has more bits than the field (`OFPBAC_BAD_SET_ARGUMENT`).
    TooWide(Field),
    /// The match does not ensure that packets have the field (`OFPBAC_MATCH_INCONSISTENT`).
    MissingField(Field),
    /// The match does not ensure that packets have the header to remove (`OFPBAC_MATCH_INCONSISTENT`).
    MissingHeader,
    /// The Ethernet type is not one of the header to push (`OFPBAC_BAD_ARGUMENT`).
    BadEthernetType(u16),
    /// An action of OpenFlow 1.0 is in an action set or a bucket (`OFPBAC_BAD_EXP_TYPE`).
    OnlyApplied,
}

impl fmt::Display for ActionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(formatter, "more than {MAX_ACTIONS} actions"),
            Self::NotSettable(field) => write!(formatter, "{field:?} can't be set"),
            Self::TooWide(field) => {
                write!(formatter, "the value for {field:?} has more than {} bits", field.bits())
            }
            Self::MissingField(field) => {
                write!(formatter, "the match admits packets without {field:?}, which an action sets")
            }
            Self::MissingHeader => {
                formatter.write_str("the match admits packets without the header that an action removes")
            }
            Self::BadEthernetType(number) => {
                write!(formatter, "{number:#06x} is not an Ethernet type of the header to push")
            }
            Self::OnlyApplied => {
                formatter.write_str("an action set can't have actions of OpenFlow 1.0: apply them")
            }
        }
    }
}

impl std::error::Error for ActionError {}

impl Action {
    /// Checks the action on packets of a nature; `None` if an earlier action revealed unknown headers. Returns the
    /// nature afterwards.
    fn check(&self, headers: Option<Nature>) -> Result<Option<Nature>, ActionError> {
        match *self {
            Self::SetField(field, value) => {
                if !field.is_settable() {
                    return Err(ActionError::NotSettable(field));
                }
                if value & !ones(field.bits()) != 0 {
                    return Err(ActionError::TooWide(field));
                }
                let is_there = |nature: Nature| match field {
                    Field::VlanVid => nature.vlan,
                    _ => field.belongs(nature),
                };
                if !headers.is_none_or(is_there) {
                    return Err(ActionError::MissingField(field));
                }
                Ok(match field {
                    // Another header follows, of which nothing is known; it may be a VLAN tag.
                    Field::EthType | Field::IpProto => None,
                    Field::Icmpv6Type => {
                        headers.map(|nature| Nature { icmp_type: Some(value as u8), ..nature })
                    }
                    _ => headers,
                })
            }
            Self::SetIfPresent(field, _) if !field.is_settable() => Err(ActionError::NotSettable(field)),
            Self::SetIfPresent(field, value) if value & !ones(field.bits()) != 0 => {
                Err(ActionError::TooWide(field))
            }
            Self::SetIfPresent(Field::EthType | Field::IpProto | Field::Icmpv6Type, _) | Self::StripVlan => {
                Ok(None)
            }
            Self::TagVlanVid(vid) if vid > 0xfff => Err(ActionError::TooWide(Field::VlanVid)),
            Self::TagVlanPcp(pcp) if pcp > 7 => Err(ActionError::TooWide(Field::VlanPcp)),
            Self::TagVlanVid(_) | Self::TagVlanPcp(_) => {
                Ok(headers.map(|nature| Nature { vlan: true, ..nature }))
            }
            Self::PushVlan(eth_type) => match eth_type {
                0x8100 | 0x88a8 => Ok(headers.map(|nature| Nature { vlan: true, ..nature })),
                _ => Err(ActionError::BadEthernetType(eth_type)),
            },
            Self::PushMpls(eth_type) => match eth_type {
                0x8847 | 0x8848 => Ok(headers.map(|nature| Nature {
                    eth_type: Some(eth_type),
                    protocol: None,
                    icmp_type: None,
                    ..nature
                })),
                _ => Err(ActionError::BadEthernetType(eth_type)),
            },
            Self::PushPbb(eth_type) => match eth_type {
                0x88e7 => Ok(headers.map(|_| Nature {
                    vlan: false,
                    eth_type: Some(eth_type),
                    protocol: None,
                    icmp_type: None,
                })),
                _ => Err(ActionError::BadEthernetType(eth_type)),
            },
            Self::PopPbb if headers.is_some_and(|nature| nature.eth_type != Some(0x88e7)) => {
                Err(ActionError::MissingHeader)
            }
            Self::PopVlan if headers.is_some_and(|nature| !nature.vlan) => Err(ActionError::MissingHeader),
            Self::PopMpls(_)
                if headers.is_some_and(|nature| !matches!(nature.eth_type, Some(0x8847 | 0x8848))) =>
            {
                Err(ActionError::MissingHeader)
            }
            Self::PopVlan | Self::PopMpls(_) | Self::PopPbb => Ok(None),
            _ => Ok(headers),
        }
    }

    /// Checks actions on packets of which nothing is known.
    ///
    /// # Errors
    /// The action that no packet can be given.
    pub fn check_all(actions: &[Action]) -> Result<(), ActionError> {
        if actions.len() > MAX_ACTIONS {
            return Err(ActionError::TooMany);
        }
        actions.iter().try_fold(None, |headers, action| action.check(headers)).map(drop)
    }

    /// Whether the headers afterwards are not known from the key.
    pub(crate) fn reveals(&self) -> bool {
        match self {
            Self::PopVlan | Self::PopMpls(_) | Self::PopPbb | Self::StripVlan => true,
            Self::SetField(field, _) | Self::SetIfPresent(field, _) => {
                field.names_a_header() || *field == Field::Icmpv6Type
            }
            _ => false,
        }
    }

    /// Whether it can't be in an action set, whose actions have an order by their types.
    pub(crate) fn is_only_applied(&self) -> bool {
        matches!(self, Self::SetIfPresent(..) | Self::TagVlanVid(_) | Self::TagVlanPcp(_) | Self::StripVlan)
    }
}

/// A step that a switch performs on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Counts the packet in a meter, which may drop it (OpenFlow 1.3.5, 5.7).
    Meter(u32),
    /// Performs an action.
    Action(Action),
}
