//! Groups' buckets and meters' bands in messages (OpenFlow 1.3.5, 7.3.4.2 and 7.3.4.4).

use flow_table::{Band, BandType, Bucket, GroupType, MeterDefinition, port_number};

use crate::ErrorCode;
use crate::action::{MAX_GROUP, read_actions, remembered, write_actions};
use crate::wire::{Reader, Writer, optional, or_any};

/// No group (`OFPG_ANY`).
const ANY_GROUP: u32 = 0xffff_ffff;

const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;

pub(crate) fn read_group_type(number: u8) -> Result<GroupType, ErrorCode> {
    match number {
        0 => Ok(GroupType::All),
        1 => Ok(GroupType::Select),
        2 => Ok(GroupType::Indirect),
        3 => Ok(GroupType::FastFailover),
        _ => Err(ErrorCode::GMFC_BAD_TYPE),
    }
}

pub(crate) fn group_type_number(group_type: GroupType) -> u8 {
    match group_type {
        GroupType::All => 0,
        GroupType::Select => 1,
        GroupType::Indirect => 2,
        GroupType::FastFailover => 3,
    }
}

/// Reads buckets up to the end of a part of a message.
pub(crate) fn read_buckets(reader: &mut Reader<'_>) -> Result<Vec<Bucket>, ErrorCode> {
    let mut buckets = Vec::new();
    while !reader.is_empty() {
        let length = usize::from(reader.u16()?);
        if length < 16 || !length.is_multiple_of(8) {
            return Err(ErrorCode::GMFC_BAD_BUCKET);
        }
        let mut body = reader.part(length - 2, ErrorCode::GMFC_BAD_BUCKET)?;
        let weight = body.u16()?;
        let (watch_port, watch_group) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        let is_port = watch_port == port_number::ANY || watch_port <= port_number::MAX;
        if !is_port || (watch_group != ANY_GROUP && watch_group > MAX_GROUP) {
            return Err(ErrorCode::GMFC_BAD_WATCH);
        }
        let mut actions = body.part(body.left(), ErrorCode::BAC_BAD_LEN)?;
        let mut lengths = Vec::new();
        buckets.push(Bucket {
            weight,
            watch_port: optional(watch_port),
            watch_group: optional(watch_group),
            actions: read_actions(&mut actions, &mut lengths)?,
            stated_lengths: remembered(lengths),
        });
    }
    Ok(buckets)
}

pub(crate) fn write_buckets(writer: &mut Writer, buckets: &[Bucket]) {
    for bucket in buckets {
        let start = writer.len();
        writer
            .u16(0)
            .u16(bucket.weight)
            .u32(or_any(bucket.watch_port))
            .u32(or_any(bucket.watch_group))
            .pad(4);
        write_actions(writer, &bucket.actions, &mut bucket.stated_lengths.iter().copied());
        writer.set_length(start, start);
    }
}

/// Reads the flags and bands of a meter, up to the end of a part of a message.
pub(crate) fn read_meter(flags: u16, reader: &mut Reader<'_>) -> Result<MeterDefinition, ErrorCode> {
    const UNITS: u16 = MeterDefinition::KILOBITS | MeterDefinition::PACKETS;
    if flags & !(UNITS | MeterDefinition::BURST | MeterDefinition::STATS) != 0 || flags & UNITS == UNITS {
        return Err(ErrorCode::MMFC_BAD_FLAGS);
    }
    let mut bands = Vec::new();
    while !reader.is_empty() {
        let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
        let mut body =
            reader.part(length.checked_sub(4).ok_or(ErrorCode::BRC_BAD_LEN)?, ErrorCode::BRC_BAD_LEN)?;
        let (rate, burst) = (body.u32()?, body.u32()?);
        let band_type = match kind {
            DROP => {
                body.skip(4)?;
                BandType::Drop
            }
            DSCP_REMARK => {
                let levels = body.u8()?;
                body.skip(3)?;
                BandType::DscpRemark(levels)
            }
            _ => return Err(ErrorCode::MMFC_BAD_BAND),
        };
        body.end()?;
        let has_burst = flags & MeterDefinition::BURST != 0;
        bands.push(Band { band_type, rate, burst: if has_burst { burst } else { 0 } });
    }
    Ok(MeterDefinition { flags, bands })
}

pub(crate) fn write_bands(writer: &mut Writer, bands: &[Band]) {
    for band in bands {
        let (kind, levels) = match band.band_type {
            BandType::Drop => (DROP, 0),
            BandType::DscpRemark(levels) => (DSCP_REMARK, levels),
        };
        writer.u16(kind).u16(16).u32(band.rate).u32(band.burst).u8(levels).pad(3);
    }
}
