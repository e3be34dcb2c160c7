//! Actions (OpenFlow 1.0, 5.2.4). Those on headers that a packet lacks do nothing.

use flow_table::{Action, Field, Instructions, Match, Output, port_number};

use super::number;
use crate::ErrorCode;
use crate::message::PacketOutAction;
use crate::wire::{Reader, Writer};

const OUTPUT: u16 = 0;
const SET_VLAN_VID: u16 = 1;
const SET_VLAN_PCP: u16 = 2;
const STRIP_VLAN: u16 = 3;
const SET_DL_SRC: u16 = 4;
const SET_DL_DST: u16 = 5;
const SET_NW_SRC: u16 = 6;
const SET_NW_DST: u16 = 7;
const SET_NW_TOS: u16 = 8;
const SET_TP_SRC: u16 = 9;
const SET_TP_DST: u16 = 10;
const ENQUEUE: u16 = 11;
const VENDOR: u16 = 0xffff;

/// The actions, as bits: all but those of vendors.
pub(super) const SUPPORTED: u32 = (1 << (ENQUEUE + 1)) - 1;

/// There is a tag, in a VLAN number of OpenFlow 1.3.
const VLAN_PRESENT: u128 = 0x1000;

/// Reads actions up to the end of a part of a message, and what outputs to ports state as a length.
///
/// They become actions of OpenFlow 1.3 where these mean the same for all packets of the match.
pub(super) fn read(
    reader: &mut Reader<'_>,
    matching: &Match,
) -> Result<(Vec<PacketOutAction>, Vec<u16>), ErrorCode> {
    let (mut actions, mut lengths) = (Vec::new(), Vec::new());
    let mut is_tagged = is_tagged(matching);
    while !reader.is_empty() {
        let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
        if length < 8 || !length.is_multiple_of(8) {
            return Err(ErrorCode::BAC_BAD_LEN);
        }
        let mut body = reader.part(length - 4, ErrorCode::BAC_BAD_LEN)?;
        let mut perform = |action: Action| actions.push(PacketOutAction::Perform(action));
        match kind {
            OUTPUT => {
                let (port, max_length) = (number::widen(body.u16()?), body.u16()?);
                if port == port_number::TABLE {
                    actions.push(PacketOutAction::Table);
                } else {
                    let output = Output::from_port_number(port, max_length);
                    let output = output.ok_or(ErrorCode::BAC_BAD_OUT_PORT)?;
                    if !matches!(output, Output::Controller { .. }) {
                        lengths.push(max_length);
                    }
                    perform(Action::Output(output));
                }
            }
            SET_VLAN_VID => {
                let vid = body.u16()?;
                body.skip(2)?;
                if vid > 0xfff {
                    return Err(ErrorCode::BAC_BAD_ARGUMENT);
                }
                let set = Action::SetField(Field::VlanVid, VLAN_PRESENT | u128::from(vid));
                tag(&mut is_tagged, set, Action::TagVlanVid(vid)).for_each(perform);
            }
            SET_VLAN_PCP => {
                let pcp = body.u8()?;
                body.skip(3)?;
                if pcp > 7 {
                    return Err(ErrorCode::BAC_BAD_ARGUMENT);
                }
                let set = Action::SetField(Field::VlanPcp, pcp.into());
                tag(&mut is_tagged, set, Action::TagVlanPcp(pcp)).for_each(perform);
            }
            STRIP_VLAN => {
                body.skip(4)?;
                perform(if is_tagged == Some(true) { Action::PopVlan } else { Action::StripVlan });
                // Another tag may follow.
                is_tagged = is_tagged.filter(|is_tagged| !is_tagged);
            }
            SET_DL_SRC | SET_DL_DST => {
                let field = if kind == SET_DL_SRC { Field::EthSrc } else { Field::EthDst };
                perform(Action::SetField(field, body.number(6)?));
                body.skip(6)?;
            }
            SET_NW_SRC | SET_NW_DST => {
                let field = if kind == SET_NW_SRC { Field::Ipv4Src } else { Field::Ipv4Dst };
                perform(set(matching, field, body.u32()?.into()));
            }
            SET_NW_TOS => {
                let dscp = body.u8()? >> 2;
                body.skip(3)?;
                perform(set(matching, Field::IpDscp, dscp.into()));
            }
            SET_TP_SRC | SET_TP_DST => {
                let port = u128::from(body.u16()?);
                body.skip(2)?;
                let fields = match kind {
                    SET_TP_SRC => [Field::TcpSrc, Field::UdpSrc],
                    _ => [Field::TcpDst, Field::UdpDst],
                };
                let protocol = matching.get(Field::IpProto).map(|(protocol, _)| protocol);
                for (field, of) in fields.into_iter().zip([6, 17]) {
                    if protocol.is_none_or(|protocol| protocol == of) {
                        perform(set(matching, field, port));
                    }
                }
            }
            ENQUEUE => {
                let port = number::widen(body.u16()?);
                body.skip(6)?;
                let queue = body.u32()?;
                let output = match Output::from_port_number(port, 0) {
                    Some(output @ (Output::Port(_) | Output::InPort)) => output,
                    _ => return Err(ErrorCode::BAC_BAD_OUT_PORT),
                };
                perform(Action::SetQueue(queue));
                perform(Action::Output(output));
                lengths.push(0);
            }
            VENDOR => return Err(ErrorCode::BAC_BAD_EXPERIMENTER),
            _ => return Err(ErrorCode::BAC_BAD_TYPE),
        }
        body.end()?;
    }
    Ok((actions, lengths))
}

/// Whether packets of the match have a VLAN tag; `None` if some may.
fn is_tagged(matching: &Match) -> Option<bool> {
    let (number, mask) = matching.get(Field::VlanVid)?;
    (mask & VLAN_PRESENT != 0).then_some(number & VLAN_PRESENT != 0)
}

/// Sets a field of the VLAN tag, by `set`, and pushes one if there is none; by `unknown`, which does both, if that is not known.
fn tag(is_tagged: &mut Option<bool>, set: Action, unknown: Action) -> impl Iterator<Item = Action> {
    let (push, set) = match is_tagged.replace(true) {
        Some(true) => (None, set),
        Some(false) => (Some(Action::PushVlan(0x8100)), set),
        None => (None, unknown),
    };
    push.into_iter().chain([set])
}

/// Sets a field, of all packets of the match or of those that have it.
fn set(matching: &Match, field: Field, value: u128) -> Action {
    let is = |field: Field, wanted: u128| {
        matching.get(field).is_some_and(|(value, mask)| value == wanted && mask == field.ones())
    };
    let is_there = match field {
        Field::Ipv4Src | Field::Ipv4Dst => is(Field::EthType, 0x0800),
        _ => is(Field::EthType, 0x0800) || is(Field::EthType, 0x86dd),
    };
    let is_there = is_there
        && match field {
            Field::TcpSrc | Field::TcpDst => is(Field::IpProto, 6),
            Field::UdpSrc | Field::UdpDst => is(Field::IpProto, 17),
            _ => true,
        };
    if is_there { Action::SetField(field, value) } else { Action::SetIfPresent(field, value) }
}

/// Writes the actions of an entry. Those that this version can't express are left out.
pub(super) fn write(writer: &mut Writer, instructions: &Instructions) {
    let mut lengths = instructions.stated_lengths.iter().copied();
    let (mut queue, mut last_port) = (None, None);
    for action in instructions.apply.iter().chain(&instructions.write) {
        let is_second = last_port.take();
        match *action {
            Action::Output(output) => {
                let max_length = match output {
                    Output::Controller { max_length } => max_length,
                    Output::Drop => continue,
                    _ => lengths.next().unwrap_or(0),
                };
                let Some(port) = output.port_number().and_then(number::narrow) else { continue };
                match queue.filter(|_| matches!(output, Output::Port(_) | Output::InPort)) {
                    Some(queue) => writer.u16(ENQUEUE).u16(16).u16(port).pad(6).u32(queue),
                    None => writer.u16(OUTPUT).u16(8).u16(port).u16(max_length),
                };
            }
            Action::SetQueue(number) => queue = Some(number),
            Action::TagVlanVid(vid) => {
                writer.u16(SET_VLAN_VID).u16(8).u16(vid).pad(2);
            }
            Action::TagVlanPcp(pcp) => {
                writer.u16(SET_VLAN_PCP).u16(8).u8(pcp).pad(3);
            }
            Action::StripVlan | Action::PopVlan => {
                writer.u16(STRIP_VLAN).u16(8).pad(4);
            }
            Action::SetField(field, value) | Action::SetIfPresent(field, value) => {
                let direction = match field {
                    Field::TcpSrc | Field::UdpSrc => Some(SET_TP_SRC),
                    Field::TcpDst | Field::UdpDst => Some(SET_TP_DST),
                    _ => None,
                };
                if let Some(kind) = direction {
                    // An action on ports of whatever protocol became one for each.
                    if is_second != Some((kind, value)) {
                        writer.u16(kind).u16(8).u16(value as u16).pad(2);
                        last_port = Some((kind, value));
                    }
                    continue;
                }
                match field {
                    Field::EthSrc => writer.u16(SET_DL_SRC).u16(16).number(value, 6).pad(6),
                    Field::EthDst => writer.u16(SET_DL_DST).u16(16).number(value, 6).pad(6),
                    Field::Ipv4Src => writer.u16(SET_NW_SRC).u16(8).u32(value as u32),
                    Field::Ipv4Dst => writer.u16(SET_NW_DST).u16(8).u32(value as u32),
                    Field::IpDscp => writer.u16(SET_NW_TOS).u16(8).u8((value as u8) << 2).pad(3),
                    Field::VlanVid => writer.u16(SET_VLAN_VID).u16(8).u16(value as u16 & 0xfff).pad(2),
                    Field::VlanPcp => writer.u16(SET_VLAN_PCP).u16(8).u8(value as u8).pad(3),
                    _ => continue,
                };
            }
            _ => {}
        }
    }
}
