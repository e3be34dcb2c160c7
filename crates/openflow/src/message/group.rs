//! Changes of groups and meters (OpenFlow 1.3.5, 7.3.4.2 and 7.3.4.4).

use flow_table::{Bucket, GroupType, MeterDefinition};

use crate::ErrorCode;
use crate::action::MAX_GROUP;
use crate::bucket::{
    group_type_number, read_buckets, read_group_type, read_meter, write_bands, write_buckets,
};
use crate::wire::{Reader, Writer};

/// All groups (`OFPG_ALL`).
pub(crate) const ALL_GROUPS: u32 = 0xffff_fffc;

/// The largest number of a meter (`OFPM_MAX`).
const MAX_METER: u32 = 0xffff_0000;

/// All meters (`OFPM_ALL`).
pub(crate) const ALL_METERS: u32 = 0xffff_ffff;

const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;

/// A change of the groups (`ofp_group_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupMod {
    /// Adds a group.
    Add {
        /// Its number.
        group: u32,
        /// How it chooses among its buckets.
        group_type: GroupType,
        /// Its buckets.
        buckets: Vec<Bucket>,
    },
    /// Replaces type and buckets of a group.
    Modify {
        /// Its number.
        group: u32,
        /// How it chooses among its buckets.
        group_type: GroupType,
        /// Its buckets.
        buckets: Vec<Bucket>,
    },
    /// Deletes a group, or all groups, and the flow entries that use it.
    Delete(Option<u32>),
}

impl GroupMod {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (command, type_number) = (reader.u16()?, reader.u8()?);
        reader.skip(1)?;
        let group = reader.u32()?;
        if command == DELETE && group == ALL_GROUPS {
            reader.rest();
            return Ok(Self::Delete(None));
        }
        if command > DELETE {
            return Err(ErrorCode::GMFC_BAD_COMMAND);
        }
        if group > MAX_GROUP {
            return Err(ErrorCode::GMFC_INVALID_GROUP);
        }
        if command == DELETE {
            // Type and buckets are ignored (6.5).
            reader.rest();
            return Ok(Self::Delete(Some(group)));
        }
        let group_type = read_group_type(type_number)?;
        let mut part = reader.part(reader.left(), ErrorCode::GMFC_BAD_BUCKET)?;
        let buckets = read_buckets(&mut part)?;
        match command {
            ADD => Ok(Self::Add { group, group_type, buckets }),
            _ => Ok(Self::Modify { group, group_type, buckets }),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let (command, group, group_type, buckets) = match self {
            Self::Add { group, group_type, buckets } => (ADD, *group, *group_type, buckets.as_slice()),
            Self::Modify { group, group_type, buckets } => (MODIFY, *group, *group_type, buckets.as_slice()),
            Self::Delete(group) => (DELETE, group.unwrap_or(ALL_GROUPS), GroupType::All, &[][..]),
        };
        writer.u16(command).u8(group_type_number(group_type)).pad(1).u32(group);
        write_buckets(writer, buckets);
    }
}

/// A change of the meters (`ofp_meter_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeterMod {
    /// Adds a meter with a number.
    Add(u32, MeterDefinition),
    /// Replaces the definition of the meter with a number.
    Modify(u32, MeterDefinition),
    /// Deletes a meter, or all meters, and the flow entries that use it.
    Delete(Option<u32>),
}

impl MeterMod {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (command, flags, meter) = (reader.u16()?, reader.u16()?, reader.u32()?);
        if command == DELETE && meter == ALL_METERS {
            reader.rest();
            return Ok(Self::Delete(None));
        }
        if command > DELETE {
            return Err(ErrorCode::MMFC_BAD_COMMAND);
        }
        // The meters for slow paths and for the controller's connection are optional and do not exist here.
        if meter == 0 || meter > MAX_METER {
            return Err(ErrorCode::MMFC_INVALID_METER);
        }
        if command == DELETE {
            reader.rest();
            return Ok(Self::Delete(Some(meter)));
        }
        let definition = read_meter(flags, reader)?;
        match command {
            ADD => Ok(Self::Add(meter, definition)),
            _ => Ok(Self::Modify(meter, definition)),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let (command, meter, definition) = match self {
            Self::Add(meter, definition) => (ADD, *meter, Some(definition)),
            Self::Modify(meter, definition) => (MODIFY, *meter, Some(definition)),
            Self::Delete(meter) => (DELETE, meter.unwrap_or(ALL_METERS), None),
        };
        writer.u16(command).u16(definition.map_or(0, |definition| definition.flags)).u32(meter);
        write_bands(writer, definition.map_or(&[][..], |definition| &definition.bands));
    }
}
