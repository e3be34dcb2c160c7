//! What multipart replies report (OpenFlow 1.3.5, 7.3.5).

use std::time::Duration;

use flow_table::{Bucket, EntryFlags, GroupType, Instructions, Match, MeterDefinition};

use super::flow::{read_flags, write_flags};
use super::time::{read_duration, read_timeout, write_duration, write_timeout};
use crate::ErrorCode;
use crate::bucket::{
    group_type_number, read_buckets, read_group_type, read_meter, write_bands, write_buckets,
};
use crate::fields::{read_match, write_match};
use crate::instruction::{read_instructions, write_instructions};
use crate::wire::{Reader, Writer};

/// A part of a message whose length, with `before` bytes that are already read, is `length`.
fn sized<'a>(reader: &mut Reader<'a>, length: u16, before: usize) -> Result<Reader<'a>, ErrorCode> {
    let size = usize::from(length).checked_sub(before).ok_or(ErrorCode::BRC_BAD_LEN)?;
    reader.part(size, ErrorCode::BRC_BAD_LEN)
}

/// Packets and bytes of buckets or bands, up to the end of a part of a message.
fn read_counts(reader: &mut Reader<'_>) -> Result<Vec<(u64, u64)>, ErrorCode> {
    let mut counts = Vec::new();
    while !reader.is_empty() {
        counts.push((reader.u64()?, reader.u64()?));
    }
    Ok(counts)
}

fn write_counts(writer: &mut Writer, counts: &[(u64, u64)]) {
    for (packets, bytes) in counts {
        writer.u64(*packets).u64(*bytes);
    }
}

/// A switch in words (`ofp_desc`). The serial number has at most 31 characters, the others 255.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Description {
    /// The manufacturer.
    pub manufacturer: String,
    /// The hardware.
    pub hardware: String,
    /// The software and its version.
    pub software: String,
    /// The serial number.
    pub serial_number: String,
    /// What people call the switch.
    pub datapath: String,
}

impl Description {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        Ok(Self {
            manufacturer: reader.text(256)?,
            hardware: reader.text(256)?,
            software: reader.text(256)?,
            serial_number: reader.text(32)?,
            datapath: reader.text(256)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.text(&self.manufacturer, 256).text(&self.hardware, 256).text(&self.software, 256);
        writer.text(&self.serial_number, 32).text(&self.datapath, 256);
    }
}

/// A flow entry (`ofp_flow_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// Its table.
    pub table: u8,
    /// Time for which it exists.
    pub age: Duration,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout.
    pub idle_timeout: Option<Duration>,
    /// Its hard timeout.
    pub hard_timeout: Option<Duration>,
    /// Its flags.
    pub flags: EntryFlags,
    /// Its cookie.
    pub cookie: u64,
    /// Packets that it matched.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Its match.
    pub matching: Match,
    /// Its instructions.
    pub instructions: Instructions,
}

impl FlowStats {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let length = reader.u16()?;
        let mut body = sized(reader, length, 2)?;
        let table = body.u8()?;
        body.skip(1)?;
        let (age, priority) = (read_duration(&mut body)?, body.u16()?);
        let (idle_timeout, hard_timeout) = (read_timeout(&mut body)?, read_timeout(&mut body)?);
        let flags = read_flags(&mut body)?;
        body.skip(4)?;
        Ok(Self {
            table,
            age,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            cookie: body.u64()?,
            packets: body.u64()?,
            bytes: body.u64()?,
            matching: read_match(&mut body)?,
            instructions: read_instructions(&mut body)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u16(0).u8(self.table).pad(1);
        write_duration(writer, self.age);
        writer.u16(self.priority);
        write_timeout(writer, self.idle_timeout);
        write_timeout(writer, self.hard_timeout);
        write_flags(writer, self.flags);
        writer.pad(4).u64(self.cookie).u64(self.packets).u64(self.bytes);
        write_match(writer, &self.matching);
        write_instructions(writer, &self.instructions);
        writer.set_length(start, start);
    }
}

/// Sums over flow entries (`ofp_aggregate_stats_reply`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Aggregate {
    /// Packets that they matched.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Entries.
    pub flows: u32,
}

impl Aggregate {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let aggregate = Self { packets: reader.u64()?, bytes: reader.u64()?, flows: reader.u32()? };
        reader.skip(4)?;
        Ok(aggregate)
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u64(self.packets).u64(self.bytes).u32(self.flows).pad(4);
    }
}

/// Counters of a table (`ofp_table_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableStats {
    /// The table.
    pub table: u8,
    /// Its entries.
    pub active: u32,
    /// Packets that were looked up.
    pub lookups: u64,
    /// Packets that matched an entry.
    pub matches: u64,
}

impl TableStats {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let table = reader.u8()?;
        reader.skip(3)?;
        Ok(Self { table, active: reader.u32()?, lookups: reader.u64()?, matches: reader.u64()? })
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.u8(self.table).pad(3).u32(self.active).u64(self.lookups).u64(self.matches);
    }
}

/// Counters of a port (`ofp_port_stats`). `u64::MAX` stands for a counter that the port lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortStats {
    /// The port.
    pub port: u32,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets transmitted.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes transmitted.
    pub tx_bytes: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets to transmit that were dropped.
    pub tx_dropped: u64,
    /// Errors at reception, the next three among them.
    pub rx_errors: u64,
    /// Errors at transmission.
    pub tx_errors: u64,
    /// Alignment errors.
    pub rx_frame_errors: u64,
    /// Overruns.
    pub rx_over_errors: u64,
    /// Checksum errors.
    pub rx_crc_errors: u64,
    /// Collisions.
    pub collisions: u64,
    /// Time for which the port exists.
    pub age: Duration,
}

impl PortStats {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let port = reader.u32()?;
        reader.skip(4)?;
        Ok(Self {
            port,
            rx_packets: reader.u64()?,
            tx_packets: reader.u64()?,
            rx_bytes: reader.u64()?,
            tx_bytes: reader.u64()?,
            rx_dropped: reader.u64()?,
            tx_dropped: reader.u64()?,
            rx_errors: reader.u64()?,
            tx_errors: reader.u64()?,
            rx_frame_errors: reader.u64()?,
            rx_over_errors: reader.u64()?,
            rx_crc_errors: reader.u64()?,
            collisions: reader.u64()?,
            age: read_duration(reader)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.port).pad(4).u64(self.rx_packets).u64(self.tx_packets).u64(self.rx_bytes);
        writer.u64(self.tx_bytes).u64(self.rx_dropped).u64(self.tx_dropped).u64(self.rx_errors);
        writer.u64(self.tx_errors).u64(self.rx_frame_errors).u64(self.rx_over_errors);
        writer.u64(self.rx_crc_errors).u64(self.collisions);
        write_duration(writer, self.age);
    }
}

/// Counters of a queue (`ofp_queue_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// The port.
    pub port: u32,
    /// The queue.
    pub queue: u32,
    /// Bytes transmitted.
    pub bytes: u64,
    /// Packets transmitted.
    pub packets: u64,
    /// Packets dropped.
    pub errors: u64,
    /// Time for which the queue exists.
    pub age: Duration,
}

impl QueueStats {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        Ok(Self {
            port: reader.u32()?,
            queue: reader.u32()?,
            bytes: reader.u64()?,
            packets: reader.u64()?,
            errors: reader.u64()?,
            age: read_duration(reader)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.port).u32(self.queue).u64(self.bytes).u64(self.packets).u64(self.errors);
        write_duration(writer, self.age);
    }
}

/// Counters of a group (`ofp_group_stats`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GroupStats {
    /// The group.
    pub group: u32,
    /// Flow entries and groups that lead to it.
    pub references: u32,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Time for which it exists.
    pub age: Duration,
    /// Packets and bytes of each bucket.
    pub buckets: Vec<(u64, u64)>,
}

impl GroupStats {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let length = reader.u16()?;
        let mut body = sized(reader, length, 2)?;
        body.skip(2)?;
        let (group, references) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        Ok(Self {
            group,
            references,
            packets: body.u64()?,
            bytes: body.u64()?,
            age: read_duration(&mut body)?,
            buckets: read_counts(&mut body)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u16(0).pad(2).u32(self.group).u32(self.references).pad(4).u64(self.packets).u64(self.bytes);
        write_duration(writer, self.age);
        write_counts(writer, &self.buckets);
        writer.set_length(start, start);
    }
}

/// The definition of a group (`ofp_group_desc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// The group.
    pub group: u32,
    /// How it chooses among its buckets.
    pub group_type: GroupType,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

impl GroupDescription {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let length = reader.u16()?;
        let mut body = sized(reader, length, 2)?;
        let group_type = read_group_type(body.u8()?)?;
        body.skip(1)?;
        Ok(Self { group: body.u32()?, group_type, buckets: read_buckets(&mut body)? })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u16(0).u8(group_type_number(self.group_type)).pad(1).u32(self.group);
        write_buckets(writer, &self.buckets);
        writer.set_length(start, start);
    }
}

/// What groups can do (`ofp_group_features`). Lists are in the order all, select, indirect, fast failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GroupFeatures {
    /// Bit n is set if groups of the type numbered n exist.
    pub types: u32,
    /// Capabilities (`OFPGFC_*`).
    pub capabilities: u32,
    /// Groups of each type that fit.
    pub max_groups: [u32; 4],
    /// Bit n is set if buckets of the type may contain actions of the type numbered n.
    pub actions: [u32; 4],
}

impl GroupFeatures {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (types, capabilities) = (reader.u32()?, reader.u32()?);
        let (mut max_groups, mut actions) = ([0; 4], [0; 4]);
        for number in max_groups.iter_mut().chain(&mut actions) {
            *number = reader.u32()?;
        }
        Ok(Self { types, capabilities, max_groups, actions })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.types).u32(self.capabilities);
        for number in self.max_groups.iter().chain(&self.actions) {
            writer.u32(*number);
        }
    }
}

/// Counters of a meter (`ofp_meter_stats`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MeterStats {
    /// The meter.
    pub meter: u32,
    /// Flow entries that use it.
    pub flows: u32,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Time for which it exists.
    pub age: Duration,
    /// Packets and bytes to which each band applied.
    pub bands: Vec<(u64, u64)>,
}

impl MeterStats {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (meter, length) = (reader.u32()?, reader.u16()?);
        let mut body = sized(reader, length, 6)?;
        body.skip(6)?;
        Ok(Self {
            meter,
            flows: body.u32()?,
            packets: body.u64()?,
            bytes: body.u64()?,
            age: read_duration(&mut body)?,
            bands: read_counts(&mut body)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u32(self.meter).u16(0).pad(6).u32(self.flows).u64(self.packets).u64(self.bytes);
        write_duration(writer, self.age);
        write_counts(writer, &self.bands);
        writer.set_length(start + 4, start);
    }
}

/// The definition of a meter (`ofp_meter_config`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// The meter.
    pub meter: u32,
    /// Its definition.
    pub definition: MeterDefinition,
}

impl MeterConfig {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let length = reader.u16()?;
        let mut body = sized(reader, length, 2)?;
        let (flags, meter) = (body.u16()?, body.u32()?);
        Ok(Self { meter, definition: read_meter(flags, &mut body)? })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let start = writer.len();
        writer.u16(0).u16(self.definition.flags).u32(self.meter);
        write_bands(writer, &self.definition.bands);
        writer.set_length(start, start);
    }
}

/// What meters can do (`ofp_meter_features`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MeterFeatures {
    /// Meters that fit.
    pub max_meters: u32,
    /// Bit n is set if there are bands of the type numbered n.
    pub band_types: u32,
    /// Flags that a meter may have (`OFPMF_*`).
    pub capabilities: u32,
    /// Bands of a meter.
    pub max_bands: u8,
    /// The highest colour.
    pub max_color: u8,
}

impl MeterFeatures {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let features = Self {
            max_meters: reader.u32()?,
            band_types: reader.u32()?,
            capabilities: reader.u32()?,
            max_bands: reader.u8()?,
            max_color: reader.u8()?,
        };
        reader.skip(2)?;
        Ok(features)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u32(self.max_meters).u32(self.band_types).u32(self.capabilities);
        writer.u8(self.max_bands).u8(self.max_color).pad(2);
    }
}
