//! Features of tables (OpenFlow 1.3.5, 7.3.5.5).

use crate::ErrorCode;
use crate::wire::{Reader, Writer};

/// What a property of a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TablePropertyType {
    /// Types of instructions.
    Instructions,
    /// Tables that goto instructions may name.
    NextTables,
    /// Types of actions to write.
    WriteActions,
    /// Types of actions to apply.
    ApplyActions,
    /// Headers of fields that a match may have.
    Match,
    /// Headers of fields that a match may omit.
    Wildcards,
    /// Headers of fields that a written action may set.
    WriteSetField,
    /// Headers of fields that an applied action may set.
    ApplySetField,
}

impl TablePropertyType {
    fn of_number(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Instructions,
            2 => Self::NextTables,
            4 => Self::WriteActions,
            6 => Self::ApplyActions,
            8 => Self::Match,
            10 => Self::Wildcards,
            12 => Self::WriteSetField,
            14 => Self::ApplySetField,
            _ => return None,
        })
    }

    fn number(self) -> u16 {
        match self {
            Self::Instructions => 0,
            Self::NextTables => 2,
            Self::WriteActions => 4,
            Self::ApplyActions => 6,
            Self::Match => 8,
            Self::Wildcards => 10,
            Self::WriteSetField => 12,
            Self::ApplySetField => 14,
        }
    }

    /// Bytes of an entry, and whether it ends with its own length.
    fn size(self) -> (usize, bool) {
        match self {
            Self::NextTables => (1, false),
            Self::Instructions | Self::WriteActions | Self::ApplyActions => (4, true),
            _ => (4, false),
        }
    }
}

/// A property of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableProperty {
    /// What it lists.
    pub property_type: TablePropertyType,
    /// Whether it applies to the table-miss entry only.
    pub is_for_miss: bool,
    /// The numbers that it lists.
    pub ids: Vec<u32>,
}

impl TableProperty {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (number, length) = (reader.u16()?, usize::from(reader.u16()?));
        let size = length.checked_sub(4).ok_or(ErrorCode::TFFC_BAD_LEN)?;
        let mut body = reader.part(size, ErrorCode::TFFC_BAD_LEN)?;
        reader.skip(length.next_multiple_of(8) - length)?;
        let property_type = TablePropertyType::of_number(number & !1).ok_or(ErrorCode::TFFC_BAD_TYPE)?;
        let is_for_miss = number & 1 == 1;
        if is_for_miss && matches!(property_type, TablePropertyType::Match | TablePropertyType::Wildcards) {
            return Err(ErrorCode::TFFC_BAD_TYPE);
        }
        let mut ids = Vec::new();
        let (size, has_length) = property_type.size();
        while !body.is_empty() {
            let id = body.number(size)? as u32;
            ids.push(if has_length { id >> 16 } else { id });
        }
        Ok(Self { property_type, is_for_miss, ids })
    }

    fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u16(self.property_type.number() | u16::from(self.is_for_miss)).u16(0);
        let (size, has_length) = self.property_type.size();
        for id in &self.ids {
            let id = if has_length { id << 16 | 4 } else { *id };
            writer.number(id.into(), size);
        }
        writer.set_length(start + 2, start);
        writer.align(start);
    }
}

/// The features of a table (`ofp_table_features`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// The table.
    pub table: u8,
    /// Its name, of at most 31 characters.
    pub name: String,
    /// Bits of the metadata that a match may have.
    pub metadata_match: u64,
    /// Bits of the metadata that an instruction may write.
    pub metadata_write: u64,
    /// Its configuration.
    pub config: u32,
    /// Entries that fit.
    pub max_entries: u32,
    /// Its properties.
    pub properties: Vec<TableProperty>,
}

impl TableFeatures {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let length = usize::from(reader.u16()?);
        let size = length.checked_sub(2).ok_or(ErrorCode::TFFC_BAD_LEN)?;
        let mut body = reader.part(size, ErrorCode::TFFC_BAD_LEN)?;
        let table = body.u8()?;
        body.skip(5)?;
        let mut features = Self {
            table,
            name: body.text(32)?,
            metadata_match: body.u64()?,
            metadata_write: body.u64()?,
            config: body.u32()?,
            max_entries: body.u32()?,
            properties: Vec::new(),
        };
        while !body.is_empty() {
            features.properties.push(TableProperty::read(&mut body)?);
        }
        Ok(features)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u16(0).u8(self.table).pad(5).text(&self.name, 32);
        writer.u64(self.metadata_match).u64(self.metadata_write).u32(self.config).u32(self.max_entries);
        self.properties.iter().for_each(|property| property.write(writer));
        writer.set_length(start, start);
    }
}
