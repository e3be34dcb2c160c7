//! Match fields as TLVs (OpenFlow 1.3.5, 7.2.2 and 7.2.3).

use flow_table::{Field, Match, MatchError};

use crate::ErrorCode;
use crate::wire::{Reader, Writer};

/// The fields of the specification (`OFPXMC_OPENFLOW_BASIC`).
const BASIC: u16 = 0x8000;

/// Extensions of Open vSwitch (`OFPXMC_NXM_1`).
const NXM_1: u16 = 0x0001;

/// `NXM_NX_IP_FRAG`, which has the same bits as [`Field::IpFragment`].
const IP_FRAG: u8 = 26;

/// The type of a match whose fields are TLVs (`OFPMT_OXM`).
const OXM: u16 = 1;

/// Bit 12 of a VLAN number: there is a tag (`OFPVID_PRESENT`).
const VLAN_PRESENT: u128 = 0x1000;

/// Bytes of a field.
fn size(field: Field) -> usize {
    match field.bits() {
        17..24 => 4,
        bits => bits.div_ceil(8) as usize,
    }
}

fn class_and_number(field: Field) -> (u16, u8) {
    field.number().map_or((NXM_1, IP_FRAG), |number| (BASIC, number))
}

fn of_class_and_number(class: u16, number: u8) -> Option<Field> {
    match (class, number) {
        (BASIC, number) => Field::from_number(number),
        (NXM_1, IP_FRAG) => Some(Field::IpFragment),
        _ => None,
    }
}

/// The header of a field: class, number, whether a mask follows, size.
pub(crate) fn header(field: Field, has_mask: bool) -> u32 {
    let (class, number) = class_and_number(field);
    let length = size(field) * if has_mask { 2 } else { 1 };
    u32::from(class) << 16 | u32::from(number) << 9 | u32::from(has_mask) << 8 | length as u32
}

/// The codes of a fault, which differ between matches and set-field actions.
struct Codes {
    unknown: ErrorCode,
    length: ErrorCode,
}

/// A field, its value, and its mask if it has one.
fn read(reader: &mut Reader<'_>, codes: &Codes) -> Result<(Field, u128, Option<u128>), ErrorCode> {
    let header = reader.u32()?;
    let (class, number) = ((header >> 16) as u16, (header >> 9) as u8 & 0x7f);
    let has_mask = header & 0x100 != 0;
    let payload = reader.part(header as usize & 0xff, codes.length);
    let mut payload = payload.map_err(|_| codes.length)?;
    let field = of_class_and_number(class, number).ok_or(codes.unknown)?;
    if has_mask && !field.is_maskable() {
        return Err(ErrorCode::BMC_BAD_MASK);
    }
    let value = payload.number(size(field))?;
    let mask = if has_mask { Some(payload.number(size(field))?) } else { None };
    payload.end()?;
    Ok((field, value, mask))
}

fn write(writer: &mut Writer, field: Field, value: u128, mask: Option<u128>) {
    writer.u32(header(field, mask.is_some())).number(value, size(field));
    if let Some(mask) = mask {
        writer.number(mask, size(field));
    }
}

/// Reads a match with its header and padding.
pub(crate) fn read_match(reader: &mut Reader<'_>) -> Result<Match, ErrorCode> {
    let (match_type, length) = (reader.u16()?, usize::from(reader.u16()?));
    if match_type != OXM {
        return Err(ErrorCode::BMC_BAD_TYPE);
    }
    let fields = length.checked_sub(4).ok_or(ErrorCode::BMC_BAD_LEN)?;
    if length.next_multiple_of(8) - 4 > reader.left() {
        return Err(ErrorCode::BMC_BAD_LEN);
    }
    let mut part = reader.part(fields, ErrorCode::BMC_BAD_LEN)?;
    reader.skip(length.next_multiple_of(8) - length)?;
    let codes = Codes { unknown: ErrorCode::BMC_BAD_FIELD, length: ErrorCode::BMC_BAD_LEN };
    let mut matching = Match::any();
    while !part.is_empty() {
        let (field, value, mask) = read(&mut part, &codes)?;
        let mask = mask.unwrap_or(field.ones());
        // A packet without a tag has no number of a VLAN.
        if field == Field::VlanVid && value != 0 && value & VLAN_PRESENT == 0 && mask & VLAN_PRESENT != 0 {
            return Err(ErrorCode::BMC_BAD_VALUE);
        }
        matching = matching.with_masked(field, value, mask).map_err(match_error)?;
    }
    Ok(matching)
}

/// Writes a match with its header and padding.
pub(crate) fn write_match(writer: &mut Writer, matching: &Match) {
    let start = writer.len();
    writer.u16(OXM).u16(0);
    for (field, value, mask) in matching.fields() {
        let is_exact = mask == field.ones();
        write(writer, field, value, (!is_exact).then_some(mask));
    }
    writer.set_length(start + 2, start);
    writer.align(start);
}

/// Reads the field and value of a set-field action.
pub(crate) fn read_set_field(reader: &mut Reader<'_>) -> Result<(Field, u128), ErrorCode> {
    let codes = Codes { unknown: ErrorCode::BAC_BAD_SET_TYPE, length: ErrorCode::BAC_BAD_SET_LEN };
    let (field, value, mask) = read(reader, &codes).map_err(|code| match code {
        ErrorCode::BMC_BAD_MASK => ErrorCode::BAC_BAD_SET_TYPE,
        code => code,
    })?;
    if mask.is_some() || !field.is_settable() {
        return Err(ErrorCode::BAC_BAD_SET_TYPE);
    }
    if value > field.ones() {
        return Err(ErrorCode::BAC_BAD_SET_ARGUMENT);
    }
    Ok((field, value))
}

pub(crate) fn write_set_field(writer: &mut Writer, field: Field, value: u128) {
    write(writer, field, value, None);
}

/// The code of a field that a match refuses.
fn match_error(error: MatchError) -> ErrorCode {
    match error {
        MatchError::TooWide(_) => ErrorCode::BMC_BAD_VALUE,
        MatchError::OutsideMask(_) => ErrorCode::BMC_BAD_WILDCARDS,
        MatchError::Duplicate(_) => ErrorCode::BMC_DUP_FIELD,
        MatchError::Prerequisite(_) => ErrorCode::BMC_BAD_PREREQ,
        // The enumeration may grow.
        _ => ErrorCode::BMC_BAD_FIELD,
    }
}
