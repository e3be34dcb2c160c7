//! The match structure with fixed fields (OpenFlow 1.0, 5.2.3).

use flow_table::{Field, Match};

use super::number;
use crate::ErrorCode;
use crate::wire::{Reader, Writer};

const IN_PORT: u32 = 1;
const DL_VLAN: u32 = 1 << 1;
const DL_SRC: u32 = 1 << 2;
const DL_DST: u32 = 1 << 3;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
/// The number of lower bits of an address that are ignored: six bits here, and six bits after them.
const NW_SRC_SHIFT: u32 = 8;
const NW_DST_SHIFT: u32 = 14;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;
/// All bits.
const ALL: u32 = (1 << 22) - 1;

/// All fields that can be ignored, as a table states them.
pub(super) const WILDCARDS: u32 = ALL;

/// No VLAN tag (`OFP_VLAN_NONE`).
const VLAN_NONE: u16 = 0xffff;
/// There is a tag, in a match of OpenFlow 1.3.
const VLAN_PRESENT: u128 = 0x1000;

const IP4: u16 = 0x0800;
const ARP: u16 = 0x0806;
/// The version does not mention IPv6, whose packets have some of the fields; other switches match these too.
const IP6: u16 = 0x86dd;

/// Reads a match, and whether it ignores no field: such entries come before all others (3.4). Fields that the packets of the
/// match don't have are ignored.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<(Match, bool), ErrorCode> {
    let wildcards = reader.u32()? & ALL;
    let in_port = reader.u16()?;
    let (source, destination) = (reader.number(6)?, reader.number(6)?);
    let (vlan, priority) = (reader.u16()?, reader.u8()?);
    reader.skip(1)?;
    let (eth_type, tos, protocol) = (reader.u16()?, reader.u8()?, reader.u8()?);
    reader.skip(2)?;
    let addresses = [reader.u32()?, reader.u32()?];
    let ports = [reader.u16()?, reader.u16()?];
    let is_set = |bit: u32| wildcards & bit == 0;
    let mut fields: Vec<(Field, u128, u128)> = Vec::new();
    let mut add = |is_set: bool, field: Field, value: u128| {
        if is_set {
            fields.push((field, value & field.ones(), field.ones()));
        }
    };
    add(is_set(IN_PORT), Field::InPort, number::widen(in_port).into());
    add(is_set(DL_DST), Field::EthDst, destination);
    add(is_set(DL_SRC), Field::EthSrc, source);
    let has_no_tag = is_set(DL_VLAN) && vlan == VLAN_NONE;
    let number = if has_no_tag { 0 } else { VLAN_PRESENT | u128::from(vlan & 0xfff) };
    add(is_set(DL_VLAN), Field::VlanVid, number);
    add(is_set(DL_TYPE), Field::EthType, eth_type.into());
    if is_set(DL_VLAN_PCP) && !has_no_tag {
        if !is_set(DL_VLAN) {
            fields.push((Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT));
        }
        fields.push((Field::VlanPcp, u128::from(priority & 7), Field::VlanPcp.ones()));
    }
    let eth_type = if is_set(DL_TYPE) { eth_type } else { 0 };
    let nets = match eth_type {
        IP4 => Some([Field::Ipv4Src, Field::Ipv4Dst]),
        ARP => Some([Field::ArpSpa, Field::ArpTpa]),
        _ => None,
    };
    let mut add = |is_set: bool, field: Field, value: u128| {
        if is_set {
            fields.push((field, value & field.ones(), field.ones()));
        }
    };
    match eth_type {
        IP4 | IP6 => {
            add(is_set(NW_TOS), Field::IpDscp, u128::from(tos >> 2));
            add(is_set(NW_PROTO), Field::IpProto, protocol.into());
        }
        ARP => add(is_set(NW_PROTO), Field::ArpOp, protocol.into()),
        _ => {}
    }
    if let Some(found) = transport(eth_type, is_set(NW_PROTO).then_some(protocol)) {
        for ((field, port), bit) in found.into_iter().zip(ports).zip([TP_SRC, TP_DST]) {
            add(is_set(bit), field, port.into());
        }
    }
    for (at, shift) in [NW_SRC_SHIFT, NW_DST_SHIFT].into_iter().enumerate() {
        let mask = u32::MAX.checked_shl(wildcards >> shift & 63).unwrap_or(0);
        if let (Some(nets), true) = (nets, mask != 0) {
            fields.push((nets[at], u128::from(addresses[at] & mask), mask.into()));
        }
    }
    // Those that others depend on come first.
    fields.sort_by_key(|(field, ..)| *field);
    let matching = fields
        .into_iter()
        .try_fold(Match::any(), |matching, (field, value, mask)| matching.with_masked(field, value, mask));
    // Each field has its prerequisites.
    Ok((matching.map_err(|_| ErrorCode::BRC_BAD_LEN)?, wildcards == 0))
}

/// The fields of the ports, or of type and code.
fn transport(eth_type: u16, protocol: Option<u8>) -> Option<[Field; 2]> {
    match (eth_type, protocol) {
        (IP4 | IP6, Some(6)) => Some([Field::TcpSrc, Field::TcpDst]),
        (IP4 | IP6, Some(17)) => Some([Field::UdpSrc, Field::UdpDst]),
        (IP4, Some(1)) => Some([Field::Icmpv4Type, Field::Icmpv4Code]),
        (IP6, Some(58)) => Some([Field::Icmpv6Type, Field::Icmpv6Code]),
        _ => None,
    }
}

/// Writes a match. Fields that it can't express are left out.
pub(super) fn write(writer: &mut Writer, matching: &Match) {
    let exact =
        |field: Field| matching.get(field).filter(|(_, mask)| *mask == field.ones()).map(|(value, _)| value);
    let mut wildcards = ALL & !(63 << NW_SRC_SHIFT) & !(63 << NW_DST_SHIFT);
    let mut take = |field: Field, bit: u32| {
        let value = exact(field);
        if value.is_some() {
            wildcards &= !bit;
        }
        value.unwrap_or(0)
    };
    let in_port = take(Field::InPort, IN_PORT);
    let (source, destination) = (take(Field::EthSrc, DL_SRC), take(Field::EthDst, DL_DST));
    let vlan = take(Field::VlanVid, DL_VLAN);
    let priority = take(Field::VlanPcp, DL_VLAN_PCP);
    let eth_type = take(Field::EthType, DL_TYPE) as u16;
    let (tos, protocol) = match eth_type {
        ARP => (0, take(Field::ArpOp, NW_PROTO)),
        _ => (take(Field::IpDscp, NW_TOS) << 2, take(Field::IpProto, NW_PROTO)),
    };
    let ports = transport(eth_type, u8::try_from(protocol).ok());
    let ports = ports.map_or([0, 0], |[source, destination]| {
        [take(source, TP_SRC) as u16, take(destination, TP_DST) as u16]
    });
    let has_tag = wildcards & DL_VLAN == 0;
    let nets = match eth_type {
        ARP => [Field::ArpSpa, Field::ArpTpa],
        _ => [Field::Ipv4Src, Field::Ipv4Dst],
    };
    let mut addresses = [0u32; 2];
    for ((field, shift), address) in nets.into_iter().zip([NW_SRC_SHIFT, NW_DST_SHIFT]).zip(&mut addresses) {
        let (value, mask) = matching.get(field).unwrap_or((0, 0));
        // Masks that are no prefixes ignore more.
        let ignored = 32 - (mask as u32).leading_ones();
        wildcards |= ignored << shift;
        *address = value as u32 & u32::MAX.checked_shl(ignored).unwrap_or(0);
    }
    writer.u32(wildcards).u16(number::narrow(in_port as u32).unwrap_or(number::NONE));
    writer.number(source, 6).number(destination, 6);
    writer.u16(if has_tag && vlan == 0 { VLAN_NONE } else { vlan as u16 & 0xfff });
    writer.u8(priority as u8).pad(1).u16(eth_type).u8(tos as u8).u8(protocol as u8).pad(2);
    writer.u32(addresses[0]).u32(addresses[1]).u16(ports[0]).u16(ports[1]);
}
