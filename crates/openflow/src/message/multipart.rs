//! Requests and replies in several parts (OpenFlow 1.3.5, 7.3.5).

use flow_table::Match;

use super::flow::{read_table, write_table};
use super::group::ALL_GROUPS;
use super::header::{HEADER, finish, start};
use super::port::Port;
use super::statistics::{
    Aggregate, Description, FlowStats, GroupDescription, GroupFeatures, GroupStats, MeterConfig,
    MeterFeatures, MeterStats, PortStats, QueueStats, TableStats,
};
use super::table_features::TableFeatures;
use crate::fields::{read_match, write_match};
use crate::wire::{Reader, Writer, optional, or_any};
use crate::{ErrorCode, MAX_MESSAGE};

/// More parts follow (`OFPMPF_REQ_MORE`, `OFPMPF_REPLY_MORE`).
pub(crate) const MORE: u16 = 1;

/// The type of a multipart message for a reply in parts.
pub(crate) const MULTIPART_REPLY: u8 = 19;

const DESC: u16 = 0;
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;
const TABLE: u16 = 3;
const PORT_STATS: u16 = 4;
const QUEUE: u16 = 5;
const GROUP: u16 = 6;
const GROUP_DESC: u16 = 7;
const GROUP_FEATURES: u16 = 8;
const METER: u16 = 9;
const METER_CONFIG: u16 = 10;
const METER_FEATURES: u16 = 11;
const TABLE_FEATURES: u16 = 12;
const PORT_DESC: u16 = 13;
const EXPERIMENTER: u16 = 0xffff;

/// The flow entries that a request concerns (`ofp_flow_stats_request`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSelection {
    /// The table; `None` for all.
    pub table: Option<u8>,
    /// Restricts it to entries that output to this port.
    pub out_port: Option<u32>,
    /// Restricts it to entries that use this group.
    pub out_group: Option<u32>,
    /// The cookie.
    pub cookie: u64,
    /// Bits of the cookie that an entry must share with `cookie`.
    pub cookie_mask: u64,
    /// The match that contains those of the entries.
    pub matching: Match,
}

impl FlowSelection {
    /// All flow entries.
    pub fn all() -> Self {
        Self {
            table: None,
            out_port: None,
            out_group: None,
            cookie: 0,
            cookie_mask: 0,
            matching: Match::any(),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let table = read_table(reader)?;
        reader.skip(3)?;
        let (out_port, out_group) = (optional(reader.u32()?), optional(reader.u32()?));
        reader.skip(4)?;
        let (cookie, cookie_mask) = (reader.u64()?, reader.u64()?);
        Ok(Self { table, out_port, out_group, cookie, cookie_mask, matching: read_match(reader)? })
    }

    fn write(&self, writer: &mut Writer) {
        write_table(writer, self.table);
        writer.pad(3).u32(or_any(self.out_port)).u32(or_any(self.out_group)).pad(4);
        writer.u64(self.cookie).u64(self.cookie_mask);
        write_match(writer, &self.matching);
    }
}

/// A request that is answered in parts. `None` stands for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartRequest {
    /// The switch in words.
    Description,
    /// Flow entries.
    Flow(FlowSelection),
    /// Sums over flow entries.
    Aggregate(FlowSelection),
    /// Counters of all tables.
    Table,
    /// Counters of a port.
    PortStats(Option<u32>),
    /// Counters of a queue.
    Queue {
        /// The port.
        port: Option<u32>,
        /// The queue.
        queue: Option<u32>,
    },
    /// Counters of a group.
    Group(Option<u32>),
    /// Definitions of all groups.
    GroupDescription,
    /// What groups can do.
    GroupFeatures,
    /// Counters of a meter.
    Meter(Option<u32>),
    /// The definition of a meter.
    MeterConfig(Option<u32>),
    /// What meters can do.
    MeterFeatures,
    /// The features of all tables, and features to set.
    TableFeatures(Vec<TableFeatures>),
    /// All ports.
    PortDescription,
}

fn of_group(number: u32) -> Option<u32> {
    (number != ALL_GROUPS).then_some(number)
}

/// A number, and padding after it.
fn padded(reader: &mut Reader<'_>) -> Result<u32, ErrorCode> {
    let number = reader.u32()?;
    reader.skip(4)?;
    Ok(number)
}

impl MultipartRequest {
    /// Reads a request, and whether more parts follow.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(Self, bool), ErrorCode> {
        let (kind, flags) = (reader.u16()?, reader.u16()?);
        reader.skip(4)?;
        let request = match kind {
            DESC => Self::Description,
            FLOW => Self::Flow(FlowSelection::read(reader)?),
            AGGREGATE => Self::Aggregate(FlowSelection::read(reader)?),
            TABLE => Self::Table,
            PORT_STATS => Self::PortStats(optional(padded(reader)?)),
            QUEUE => Self::Queue { port: optional(reader.u32()?), queue: optional(reader.u32()?) },
            GROUP => Self::Group(of_group(padded(reader)?)),
            GROUP_DESC => Self::GroupDescription,
            GROUP_FEATURES => Self::GroupFeatures,
            METER => Self::Meter(optional(padded(reader)?)),
            METER_CONFIG => Self::MeterConfig(optional(padded(reader)?)),
            METER_FEATURES => Self::MeterFeatures,
            TABLE_FEATURES => {
                let mut part = reader.part(reader.left(), ErrorCode::TFFC_BAD_LEN)?;
                Self::TableFeatures(list(&mut part, TableFeatures::read)?)
            }
            PORT_DESC => Self::PortDescription,
            EXPERIMENTER => return Err(ErrorCode::BRC_BAD_EXPERIMENTER),
            _ => return Err(ErrorCode::BRC_BAD_MULTIPART),
        };
        Ok((request, flags & MORE != 0))
    }

    pub(crate) fn write(&self, writer: &mut Writer, more: bool) {
        let kind = match self {
            Self::Description => DESC,
            Self::Flow(_) => FLOW,
            Self::Aggregate(_) => AGGREGATE,
            Self::Table => TABLE,
            Self::PortStats(_) => PORT_STATS,
            Self::Queue { .. } => QUEUE,
            Self::Group(_) => GROUP,
            Self::GroupDescription => GROUP_DESC,
            Self::GroupFeatures => GROUP_FEATURES,
            Self::Meter(_) => METER,
            Self::MeterConfig(_) => METER_CONFIG,
            Self::MeterFeatures => METER_FEATURES,
            Self::TableFeatures(_) => TABLE_FEATURES,
            Self::PortDescription => PORT_DESC,
        };
        writer.u16(kind).u16(if more { MORE } else { 0 }).pad(4);
        match self {
            Self::Flow(selection) | Self::Aggregate(selection) => selection.write(writer),
            Self::PortStats(number) | Self::Meter(number) | Self::MeterConfig(number) => {
                writer.u32(or_any(*number)).pad(4);
            }
            Self::Queue { port, queue } => {
                writer.u32(or_any(*port)).u32(or_any(*queue));
            }
            Self::Group(group) => {
                writer.u32(group.unwrap_or(ALL_GROUPS)).pad(4);
            }
            Self::TableFeatures(tables) => tables.iter().for_each(|table| table.write(writer)),
            _ => {}
        }
    }
}

/// A reply, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartReply {
    /// The switch in words.
    Description(Description),
    /// Flow entries.
    Flow(Vec<FlowStats>),
    /// Sums over flow entries.
    Aggregate(Aggregate),
    /// Counters of tables.
    Table(Vec<TableStats>),
    /// Counters of ports.
    PortStats(Vec<PortStats>),
    /// Counters of queues.
    Queue(Vec<QueueStats>),
    /// Counters of groups.
    Group(Vec<GroupStats>),
    /// Definitions of groups.
    GroupDescription(Vec<GroupDescription>),
    /// What groups can do.
    GroupFeatures(GroupFeatures),
    /// Counters of meters.
    Meter(Vec<MeterStats>),
    /// Definitions of meters.
    MeterConfig(Vec<MeterConfig>),
    /// What meters can do.
    MeterFeatures(MeterFeatures),
    /// Features of tables.
    TableFeatures(Vec<TableFeatures>),
    /// Ports.
    PortDescription(Vec<Port>),
}

/// Entries up to the end of a message.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<T, ErrorCode>,
) -> Result<Vec<T>, ErrorCode> {
    let mut entries = Vec::new();
    while !reader.is_empty() {
        entries.push(read(reader)?);
    }
    Ok(entries)
}

impl MultipartReply {
    /// Reads a part of a reply, and whether more parts follow.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(Self, bool), ErrorCode> {
        let (kind, flags) = (reader.u16()?, reader.u16()?);
        reader.skip(4)?;
        let reply = match kind {
            DESC => Self::Description(Description::read(reader)?),
            FLOW => Self::Flow(list(reader, FlowStats::read)?),
            AGGREGATE => Self::Aggregate(Aggregate::read(reader)?),
            TABLE => Self::Table(list(reader, TableStats::read)?),
            PORT_STATS => Self::PortStats(list(reader, PortStats::read)?),
            QUEUE => Self::Queue(list(reader, QueueStats::read)?),
            GROUP => Self::Group(list(reader, GroupStats::read)?),
            GROUP_DESC => Self::GroupDescription(list(reader, GroupDescription::read)?),
            GROUP_FEATURES => Self::GroupFeatures(GroupFeatures::read(reader)?),
            METER => Self::Meter(list(reader, MeterStats::read)?),
            METER_CONFIG => Self::MeterConfig(list(reader, MeterConfig::read)?),
            METER_FEATURES => Self::MeterFeatures(MeterFeatures::read(reader)?),
            TABLE_FEATURES => Self::TableFeatures(list(reader, TableFeatures::read)?),
            PORT_DESC => Self::PortDescription(list(reader, Port::read)?),
            EXPERIMENTER => return Err(ErrorCode::BRC_BAD_EXPERIMENTER),
            _ => return Err(ErrorCode::BRC_BAD_MULTIPART),
        };
        Ok((reply, flags & MORE != 0))
    }

    fn kind(&self) -> u16 {
        match self {
            Self::Description(_) => DESC,
            Self::Flow(_) => FLOW,
            Self::Aggregate(_) => AGGREGATE,
            Self::Table(_) => TABLE,
            Self::PortStats(_) => PORT_STATS,
            Self::Queue(_) => QUEUE,
            Self::Group(_) => GROUP,
            Self::GroupDescription(_) => GROUP_DESC,
            Self::GroupFeatures(_) => GROUP_FEATURES,
            Self::Meter(_) => METER,
            Self::MeterConfig(_) => METER_CONFIG,
            Self::MeterFeatures(_) => METER_FEATURES,
            Self::TableFeatures(_) => TABLE_FEATURES,
            Self::PortDescription(_) => PORT_DESC,
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer, more: bool) {
        self.write_head(writer, more);
        self.write_entries(writer, |_| {});
    }

    fn write_head(&self, writer: &mut Writer, more: bool) {
        writer.u16(self.kind()).u16(if more { MORE } else { 0 }).pad(4);
    }

    /// Writes the entries, and calls `after` with the length after each.
    fn write_entries(&self, writer: &mut Writer, mut after: impl FnMut(usize)) {
        fn each<T>(
            entries: &[T],
            writer: &mut Writer,
            after: &mut impl FnMut(usize),
            write: impl Fn(&T, &mut Writer),
        ) {
            for entry in entries {
                write(entry, writer);
                after(writer.len());
            }
        }
        let after = &mut after;
        match self {
            Self::Description(description) => description.write(writer),
            Self::Aggregate(aggregate) => aggregate.write(writer),
            Self::GroupFeatures(features) => features.write(writer),
            Self::MeterFeatures(features) => features.write(writer),
            Self::Flow(entries) => each(entries, writer, after, FlowStats::write),
            Self::Table(entries) => each(entries, writer, after, |entry, writer| entry.write(writer)),
            Self::PortStats(entries) => each(entries, writer, after, PortStats::write),
            Self::Queue(entries) => each(entries, writer, after, QueueStats::write),
            Self::Group(entries) => each(entries, writer, after, GroupStats::write),
            Self::GroupDescription(entries) => each(entries, writer, after, GroupDescription::write),
            Self::Meter(entries) => each(entries, writer, after, MeterStats::write),
            Self::MeterConfig(entries) => each(entries, writer, after, MeterConfig::write),
            Self::TableFeatures(entries) => each(entries, writer, after, TableFeatures::write),
            Self::PortDescription(entries) => each(entries, writer, after, Port::write),
        }
    }
}

impl MultipartReply {
    /// Adds the entries of another part of the same reply. Of replies that are one structure, the first part is whole.
    pub fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Flow(all), Self::Flow(more)) => all.extend(more),
            (Self::Table(all), Self::Table(more)) => all.extend(more),
            (Self::PortStats(all), Self::PortStats(more)) => all.extend(more),
            (Self::Queue(all), Self::Queue(more)) => all.extend(more),
            (Self::Group(all), Self::Group(more)) => all.extend(more),
            (Self::GroupDescription(all), Self::GroupDescription(more)) => all.extend(more),
            (Self::Meter(all), Self::Meter(more)) => all.extend(more),
            (Self::MeterConfig(all), Self::MeterConfig(more)) => all.extend(more),
            (Self::TableFeatures(all), Self::TableFeatures(more)) => all.extend(more),
            (Self::PortDescription(all), Self::PortDescription(more)) => all.extend(more),
            _ => {}
        }
    }
}

/// Encodes a reply as messages of at most 64 KB. All but the last say that more follow; the last does if `more` is set.
///
/// An entry that fits no message is left out. No entry of a switch is so long: a message made it.
#[must_use]
pub fn encode_multipart(xid: u32, reply: &MultipartReply, more: bool) -> Vec<Vec<u8>> {
    let (mut entries, mut ends) = (Writer::default(), Vec::new());
    reply.write_entries(&mut entries, |end| ends.push(end));
    if ends.last() != Some(&entries.len()) {
        ends.push(entries.len());
    }
    let room = MAX_MESSAGE - HEADER - 8;
    // The ranges of the parts.
    let (mut parts, mut from, mut to) = (Vec::new(), 0, 0);
    for end in ends {
        if end - from > room {
            parts.push(from..to);
            from = to;
        }
        if end - from > room {
            from = end;
        }
        to = end;
    }
    parts.push(from..to);
    let last = parts.len() - 1;
    let encode = |(at, range): (usize, std::ops::Range<usize>)| {
        let mut writer = start(MULTIPART_REPLY, xid);
        reply.write_head(&mut writer, more || at != last);
        writer.bytes(entries.0.get(range).unwrap_or_default());
        finish(writer)
    };
    parts.into_iter().enumerate().map(encode).collect()
}
