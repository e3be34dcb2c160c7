//! Actions in messages (OpenFlow 1.3.5, 7.2.5).

use flow_table::{Action, Output, port_number};

use crate::wire::{Reader, Writer};
use crate::{ErrorCode, fields};

const OUTPUT: u16 = 0;
const COPY_TTL_OUT: u16 = 11;
const COPY_TTL_IN: u16 = 12;
const SET_MPLS_TTL: u16 = 15;
const DEC_MPLS_TTL: u16 = 16;
const PUSH_VLAN: u16 = 17;
const POP_VLAN: u16 = 18;
const PUSH_MPLS: u16 = 19;
const POP_MPLS: u16 = 20;
const SET_QUEUE: u16 = 21;
const GROUP: u16 = 22;
const SET_NW_TTL: u16 = 23;
const DEC_NW_TTL: u16 = 24;
const SET_FIELD: u16 = 25;
const PUSH_PBB: u16 = 26;
const POP_PBB: u16 = 27;
const EXPERIMENTER: u16 = 0xffff;

/// Who defined the actions below: an identifier that is assigned to no organisation, like a locally administered address.
///
/// They are what OpenFlow 1.0 has and 1.3 lacks: actions that do nothing to packets without the header, or push a tag.
const OWN_EXPERIMENTER: u32 = 0x0002_4342;

const TAG_VLAN_VID: u16 = 1;
const TAG_VLAN_PCP: u16 = 2;
const STRIP_VLAN: u16 = 3;
const SET_IF_PRESENT: u16 = 4;

/// The types of all actions that a switch performs.
pub(crate) const TYPES: &[u16] = &[
    OUTPUT,
    COPY_TTL_OUT,
    COPY_TTL_IN,
    SET_MPLS_TTL,
    DEC_MPLS_TTL,
    PUSH_VLAN,
    POP_VLAN,
    PUSH_MPLS,
    POP_MPLS,
    SET_QUEUE,
    GROUP,
    SET_NW_TTL,
    DEC_NW_TTL,
    SET_FIELD,
    PUSH_PBB,
    POP_PBB,
];

/// The largest number of a group (`OFPG_MAX`).
pub(crate) const MAX_GROUP: u32 = 0xffff_ff00;

/// An action of a packet-out message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutAction {
    /// Performs an action.
    Perform(Action),
    /// Sends the packet through the pipeline, from the first table (`OFPP_TABLE`).
    Table,
}

/// Reads actions up to the end of a part of a message, and what those that output to ports state as a length.
pub(crate) fn read_actions(
    reader: &mut Reader<'_>,
    stated_lengths: &mut Vec<u16>,
) -> Result<Vec<Action>, ErrorCode> {
    let mut actions = Vec::new();
    while !reader.is_empty() {
        let mut length = 0;
        match read_action(reader, &mut length)? {
            PacketOutAction::Perform(action) => {
                if states_length(action) {
                    stated_lengths.push(length);
                }
                actions.push(action);
            }
            PacketOutAction::Table => return Err(ErrorCode::BAC_BAD_OUT_PORT),
        }
    }
    Ok(actions)
}

/// The lengths that a switch remembers: none if all are zero.
pub(crate) fn remembered(stated_lengths: Vec<u16>) -> Vec<u16> {
    if stated_lengths.iter().all(|length| *length == 0) { Vec::new() } else { stated_lengths }
}

/// Whether an action has a length that is not its own: all outputs but the controller's.
fn states_length(action: Action) -> bool {
    matches!(action, Action::Output(output) if !matches!(output, Output::Controller { .. } | Output::Drop))
}

/// Reads the actions of a packet-out message.
pub(crate) fn read_packet_out(reader: &mut Reader<'_>) -> Result<Vec<PacketOutAction>, ErrorCode> {
    let mut actions = Vec::new();
    while !reader.is_empty() {
        actions.push(read_action(reader, &mut 0)?);
    }
    Ok(actions)
}

/// Reads an action. `stated_length` becomes that of an output.
fn read_action(reader: &mut Reader<'_>, stated_length: &mut u16) -> Result<PacketOutAction, ErrorCode> {
    let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
    if length < 8 || !length.is_multiple_of(8) {
        return Err(ErrorCode::BAC_BAD_LEN);
    }
    let mut body = reader.part(length - 4, ErrorCode::BAC_BAD_LEN)?;
    let action = match kind {
        OUTPUT => {
            let (port, max_length) = (body.u32()?, body.u16()?);
            body.skip(6)?;
            *stated_length = max_length;
            if port == port_number::TABLE {
                body.end()?;
                return Ok(PacketOutAction::Table);
            }
            Action::Output(Output::from_port_number(port, max_length).ok_or(ErrorCode::BAC_BAD_OUT_PORT)?)
        }
        COPY_TTL_OUT => padded(&mut body, Action::CopyTtlOut, 4)?,
        COPY_TTL_IN => padded(&mut body, Action::CopyTtlIn, 4)?,
        DEC_MPLS_TTL => padded(&mut body, Action::DecMplsTtl, 4)?,
        POP_VLAN => padded(&mut body, Action::PopVlan, 4)?,
        DEC_NW_TTL => padded(&mut body, Action::DecIpTtl, 4)?,
        SET_MPLS_TTL => {
            let action = Action::SetMplsTtl(body.u8()?);
            padded(&mut body, action, 3)?
        }
        SET_NW_TTL => {
            let action = Action::SetIpTtl(body.u8()?);
            padded(&mut body, action, 3)?
        }
        PUSH_VLAN => {
            let action = Action::PushVlan(body.u16()?);
            padded(&mut body, action, 2)?
        }
        PUSH_MPLS => {
            let action = Action::PushMpls(body.u16()?);
            padded(&mut body, action, 2)?
        }
        POP_MPLS => {
            let action = Action::PopMpls(body.u16()?);
            padded(&mut body, action, 2)?
        }
        PUSH_PBB => {
            let action = Action::PushPbb(body.u16()?);
            padded(&mut body, action, 2)?
        }
        POP_PBB => padded(&mut body, Action::PopPbb, 4)?,
        SET_QUEUE => Action::SetQueue(body.u32()?),
        GROUP => match body.u32()? {
            group @ 0..=MAX_GROUP => Action::Group(group),
            _ => return Err(ErrorCode::BAC_BAD_OUT_GROUP),
        },
        SET_FIELD => {
            let before = body.left() + 4;
            let (field, value) = fields::read_set_field(&mut body)?;
            // Only what aligns the action may follow.
            let used = before - body.left();
            if used.next_multiple_of(8) != before {
                return Err(ErrorCode::BAC_BAD_SET_LEN);
            }
            body.rest();
            Action::SetField(field, value)
        }
        EXPERIMENTER => return read_own(&mut body).map(PacketOutAction::Perform),
        _ => return Err(ErrorCode::BAC_BAD_TYPE),
    };
    body.end()?;
    Ok(PacketOutAction::Perform(action))
}

/// Reads an action of our own.
fn read_own(body: &mut Reader<'_>) -> Result<Action, ErrorCode> {
    if body.u32()? != OWN_EXPERIMENTER {
        return Err(ErrorCode::BAC_BAD_EXPERIMENTER);
    }
    let (kind, argument) = (body.u16()?, body.u16()?);
    let action = match kind {
        TAG_VLAN_VID => padded(body, Action::TagVlanVid(argument), 4)?,
        TAG_VLAN_PCP => {
            let pcp = u8::try_from(argument).map_err(|_| ErrorCode::BAC_BAD_ARGUMENT)?;
            padded(body, Action::TagVlanPcp(pcp), 4)?
        }
        STRIP_VLAN => padded(body, Action::StripVlan, 4)?,
        SET_IF_PRESENT => {
            let (field, value) = fields::read_set_field(body)?;
            if body.left() >= 8 {
                return Err(ErrorCode::BAC_BAD_SET_LEN);
            }
            body.rest();
            Action::SetIfPresent(field, value)
        }
        _ => return Err(ErrorCode::BAC_BAD_EXP_TYPE),
    };
    body.end()?;
    Ok(action)
}

fn padded(body: &mut Reader<'_>, action: Action, padding: usize) -> Result<Action, ErrorCode> {
    body.skip(padding)?;
    Ok(action)
}

/// Writes actions. Those that output to ports take their lengths from the front of `stated_lengths`.
pub(crate) fn write_actions(
    writer: &mut Writer,
    actions: &[Action],
    stated_lengths: &mut impl Iterator<Item = u16>,
) {
    for action in actions {
        let length = if states_length(*action) { stated_lengths.next().unwrap_or(0) } else { 0 };
        write_action(writer, *action, length);
    }
}

pub(crate) fn write_packet_out(writer: &mut Writer, actions: &[PacketOutAction]) {
    for action in actions {
        match action {
            PacketOutAction::Perform(action) => write_action(writer, *action, 0),
            PacketOutAction::Table => write_output(writer, port_number::TABLE, 0),
        }
    }
}

fn write_own(writer: &mut Writer, kind: u16, argument: u16) {
    writer.u16(EXPERIMENTER).u16(16).u32(OWN_EXPERIMENTER).u16(kind).u16(argument).pad(4);
}

fn write_output(writer: &mut Writer, port: u32, max_length: u16) {
    writer.u16(OUTPUT).u16(16).u32(port).u16(max_length).pad(6);
}

/// Writes an action. Dropping is no action of the specification: an entry drops by having no output.
fn write_action(writer: &mut Writer, action: Action, stated_length: u16) {
    let mut plain = |kind: u16| {
        writer.u16(kind).u16(8).pad(4);
    };
    match action {
        Action::Output(output) => {
            let max_length = match output {
                Output::Controller { max_length } => max_length,
                _ => stated_length,
            };
            if let Some(port) = output.port_number() {
                write_output(writer, port, max_length);
            }
        }
        Action::TagVlanVid(vid) => write_own(writer, TAG_VLAN_VID, vid),
        Action::TagVlanPcp(pcp) => write_own(writer, TAG_VLAN_PCP, pcp.into()),
        Action::StripVlan => write_own(writer, STRIP_VLAN, 0),
        Action::SetIfPresent(field, value) => {
            let start = writer.len();
            writer.u16(EXPERIMENTER).u16(0).u32(OWN_EXPERIMENTER).u16(SET_IF_PRESENT).u16(0);
            fields::write_set_field(writer, field, value);
            writer.align(start).set_length(start + 2, start);
        }
        Action::CopyTtlOut => plain(COPY_TTL_OUT),
        Action::CopyTtlIn => plain(COPY_TTL_IN),
        Action::DecMplsTtl => plain(DEC_MPLS_TTL),
        Action::PopVlan => plain(POP_VLAN),
        Action::DecIpTtl => plain(DEC_NW_TTL),
        Action::SetMplsTtl(ttl) => {
            writer.u16(SET_MPLS_TTL).u16(8).u8(ttl).pad(3);
        }
        Action::SetIpTtl(ttl) => {
            writer.u16(SET_NW_TTL).u16(8).u8(ttl).pad(3);
        }
        Action::PushVlan(eth_type) => {
            writer.u16(PUSH_VLAN).u16(8).u16(eth_type).pad(2);
        }
        Action::PushMpls(eth_type) => {
            writer.u16(PUSH_MPLS).u16(8).u16(eth_type).pad(2);
        }
        Action::PopMpls(eth_type) => {
            writer.u16(POP_MPLS).u16(8).u16(eth_type).pad(2);
        }
        Action::PushPbb(eth_type) => {
            writer.u16(PUSH_PBB).u16(8).u16(eth_type).pad(2);
        }
        Action::PopPbb => plain(POP_PBB),
        Action::SetQueue(queue) => {
            writer.u16(SET_QUEUE).u16(8).u32(queue);
        }
        Action::Group(group) => {
            writer.u16(GROUP).u16(8).u32(group);
        }
        Action::SetField(field, value) => {
            let start = writer.len();
            writer.u16(SET_FIELD).u16(0);
            fields::write_set_field(writer, field, value);
            writer.align(start).set_length(start + 2, start);
        }
    }
}
