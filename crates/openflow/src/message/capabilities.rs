//! What the tables, groups and meters of `flow-table` can do, as replies state it.

use flow_table::{Entry, Field, MAX_BANDS, MAX_GROUPS, MAX_METERS, TABLES};

use super::multipart::FlowSelection;
use super::statistics::{GroupFeatures, MeterFeatures};
use super::table_features::{TableFeatures, TableProperty, TablePropertyType};
use crate::{action, fields, instruction};

/// Weights and liveness of buckets, chains of groups, and checks of chains (`OFPGFC_*`).
const GROUP_CAPABILITIES: u32 = 0b1111;

/// Rates in kilobits and packets, bursts, and counters (`OFPMF_*`).
const METER_CAPABILITIES: u32 = 0b1111;

impl FlowSelection {
    /// Whether it selects an entry.
    #[must_use]
    pub fn selects(&self, entry: &Entry<'_>) -> bool {
        self.table.is_none_or(|table| entry.table == table)
            && (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && self.matching.contains(entry.matching)
            && self.out_port.is_none_or(|port| entry.instructions.has_output(port))
            && self.out_group.is_none_or(|group| entry.instructions.has_group(group))
    }
}

impl TableFeatures {
    /// The features of a table of a [`flow_table::Pipeline`], which holds `max_entries` in all tables.
    #[must_use]
    pub fn of_pipeline(table: u8, max_entries: u32) -> Self {
        let numbers = |types: &[u16]| types.iter().copied().map(u32::from).collect::<Vec<u32>>();
        let fields = |fits: fn(Field) -> bool| {
            let found = Field::ALL.iter().copied().filter(|field| field.number().is_some() && fits(*field));
            found.map(|field| fields::header(field, false)).collect::<Vec<u32>>()
        };
        let masked = |field: &&Field| field.number().is_some();
        let matches =
            Field::ALL.iter().filter(masked).map(|field| fields::header(*field, field.is_maskable()));
        let has_next = usize::from(table) + 1 < TABLES;
        let instructions = numbers(instruction::TYPES).into_iter().filter(|kind| *kind != 1 || has_next);
        let settable = fields(Field::is_settable);
        let mut properties = Vec::new();
        for (property_type, ids) in [
            (TablePropertyType::Instructions, instructions.collect()),
            (TablePropertyType::NextTables, (u32::from(table) + 1..TABLES as u32).collect()),
            (TablePropertyType::WriteActions, numbers(action::TYPES)),
            (TablePropertyType::ApplyActions, numbers(action::TYPES)),
            (TablePropertyType::Match, matches.collect()),
            (TablePropertyType::Wildcards, fields(|_| true)),
            (TablePropertyType::WriteSetField, settable.clone()),
            (TablePropertyType::ApplySetField, settable),
        ] {
            properties.push(TableProperty { property_type, is_for_miss: false, ids });
        }
        let (metadata_match, metadata_write) = (u64::MAX, if has_next { u64::MAX } else { 0 });
        Self {
            table,
            name: format!("table{table}"),
            metadata_match,
            metadata_write,
            config: 0,
            max_entries,
            properties,
        }
    }
}

impl GroupFeatures {
    /// What [`flow_table::Groups`] can do.
    #[must_use]
    pub fn of_groups() -> Self {
        let actions = action::TYPES.iter().fold(0, |bits, number| bits | 1 << number);
        Self {
            types: 0b1111,
            capabilities: GROUP_CAPABILITIES,
            max_groups: [MAX_GROUPS as u32; 4],
            actions: [actions; 4],
        }
    }
}

impl MeterFeatures {
    /// What [`flow_table::Meters`] can do.
    #[must_use]
    pub fn of_meters() -> Self {
        Self {
            max_meters: MAX_METERS as u32,
            band_types: 0b110,
            capabilities: METER_CAPABILITIES,
            max_bands: MAX_BANDS as u8,
            max_color: 0,
        }
    }
}
