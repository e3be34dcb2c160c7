//! Changes and removals of flow entries (OpenFlow 1.3.5, 7.3.4.1 and 7.4.2).

use std::time::Duration;

use flow_table::{Change, Command, EntryFlags, Match, Owner, RemovalReason};

use super::packet::{read_buffer, write_buffer};
use super::time::{read_duration, read_timeout, write_duration, write_timeout};
use crate::ErrorCode;
use crate::fields::{read_match, write_match};
use crate::instruction::{read_instructions, write_instructions};
use crate::wire::{Reader, Writer, optional, or_any};

/// All tables (`OFPTT_ALL`).
const ALL_TABLES: u8 = 0xff;

const SEND_FLOW_REM: u16 = 1;
const CHECK_OVERLAP: u16 = 2;
const RESET_COUNTS: u16 = 4;
const NO_PKT_COUNTS: u16 = 8;
const NO_BYT_COUNTS: u16 = 16;

pub(crate) fn read_table(reader: &mut Reader<'_>) -> Result<Option<u8>, ErrorCode> {
    let table = reader.u8()?;
    Ok((table != ALL_TABLES).then_some(table))
}

pub(crate) fn write_table(writer: &mut Writer, table: Option<u8>) {
    writer.u8(table.unwrap_or(ALL_TABLES));
}

pub(crate) fn read_flags(reader: &mut Reader<'_>) -> Result<EntryFlags, ErrorCode> {
    let flags = reader.u16()?;
    if flags & !(SEND_FLOW_REM | CHECK_OVERLAP | RESET_COUNTS | NO_PKT_COUNTS | NO_BYT_COUNTS) != 0 {
        return Err(ErrorCode::FMFC_BAD_FLAGS);
    }
    Ok(EntryFlags {
        send_removed: flags & SEND_FLOW_REM != 0,
        check_overlap: flags & CHECK_OVERLAP != 0,
        reset_counts: flags & RESET_COUNTS != 0,
        no_packet_counts: flags & NO_PKT_COUNTS != 0,
        no_byte_counts: flags & NO_BYT_COUNTS != 0,
    })
}

pub(crate) fn write_flags(writer: &mut Writer, flags: EntryFlags) {
    let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
    writer.u16(
        bit(flags.send_removed, SEND_FLOW_REM)
            | bit(flags.check_overlap, CHECK_OVERLAP)
            | bit(flags.reset_counts, RESET_COUNTS)
            | bit(flags.no_packet_counts, NO_PKT_COUNTS)
            | bit(flags.no_byte_counts, NO_BYT_COUNTS),
    );
}

/// A change of the flow entries (`ofp_flow_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// The change.
    pub change: Change,
    /// The buffer of a packet to process afterwards.
    pub buffer: Option<u32>,
}

impl FlowMod {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (cookie, cookie_mask, table) = (reader.u64()?, reader.u64()?, read_table(reader)?);
        let command = match reader.u8()? {
            0 => Command::Add,
            1 => Command::Modify,
            2 => Command::ModifyStrict,
            3 => Command::Delete,
            4 => Command::DeleteStrict,
            _ => return Err(ErrorCode::FMFC_BAD_COMMAND),
        };
        let (idle_timeout, hard_timeout) = (read_timeout(reader)?, read_timeout(reader)?);
        let (priority, buffer) = (reader.u16()?, read_buffer(reader)?);
        let (out_port, out_group) = (optional(reader.u32()?), optional(reader.u32()?));
        let flags = read_flags(reader)?;
        reader.skip(2)?;
        let matching = read_match(reader)?;
        let mut part = reader.part(reader.left(), ErrorCode::BIC_BAD_LEN)?;
        let instructions = read_instructions(&mut part)?;
        let change = Change {
            owner: Owner::default(),
            command,
            table,
            matching,
            priority,
            instructions,
            cookie,
            cookie_mask,
            idle_timeout,
            hard_timeout,
            flags,
            out_port,
            out_group,
        };
        Ok(Self { change, buffer })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let change = &self.change;
        writer.u64(change.cookie).u64(change.cookie_mask);
        write_table(writer, change.table);
        writer.u8(match change.command {
            Command::Add => 0,
            Command::Modify => 1,
            Command::ModifyStrict => 2,
            Command::Delete => 3,
            Command::DeleteStrict => 4,
        });
        write_timeout(writer, change.idle_timeout);
        write_timeout(writer, change.hard_timeout);
        writer.u16(change.priority);
        write_buffer(writer, self.buffer);
        writer.u32(or_any(change.out_port)).u32(or_any(change.out_group));
        write_flags(writer, change.flags);
        writer.pad(2);
        write_match(writer, &change.matching);
        write_instructions(writer, &change.instructions);
    }
}

/// Why an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowRemovedReason {
    /// It had no packet for its idle timeout.
    IdleTimeout,
    /// Its hard timeout passed.
    HardTimeout,
    /// A change deleted it.
    Delete,
    /// Its group was deleted.
    GroupDelete,
}

impl FlowRemovedReason {
    /// The number (`OFPRR_*`).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::IdleTimeout => 0,
            Self::HardTimeout => 1,
            Self::Delete => 2,
            Self::GroupDelete => 3,
        }
    }
}

impl From<RemovalReason> for FlowRemovedReason {
    fn from(reason: RemovalReason) -> Self {
        match reason {
            RemovalReason::IdleTimeout => Self::IdleTimeout,
            RemovalReason::HardTimeout => Self::HardTimeout,
            RemovalReason::Delete => Self::Delete,
            RemovalReason::GroupDelete => Self::GroupDelete,
        }
    }
}

/// An entry that was removed (`ofp_flow_removed`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it was removed.
    pub reason: FlowRemovedReason,
    /// Its table.
    pub table: u8,
    /// Time for which it existed.
    pub age: Duration,
    /// Its idle timeout.
    pub idle_timeout: Option<Duration>,
    /// Its hard timeout.
    pub hard_timeout: Option<Duration>,
    /// Packets that it matched.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Its match.
    pub matching: Match,
}

impl From<&flow_table::FlowRemoved> for FlowRemoved {
    fn from(removed: &flow_table::FlowRemoved) -> Self {
        Self {
            cookie: removed.cookie,
            priority: removed.priority,
            reason: removed.reason.into(),
            table: removed.table,
            age: removed.age,
            idle_timeout: removed.idle_timeout,
            hard_timeout: removed.hard_timeout,
            packets: removed.packets,
            bytes: removed.bytes,
            matching: removed.matching,
        }
    }
}

impl FlowRemoved {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (cookie, priority) = (reader.u64()?, reader.u16()?);
        let reason = match reader.u8()? {
            0 => FlowRemovedReason::IdleTimeout,
            1 => FlowRemovedReason::HardTimeout,
            2 => FlowRemovedReason::Delete,
            3 => FlowRemovedReason::GroupDelete,
            _ => return Err(ErrorCode::BRC_BAD_TYPE),
        };
        Ok(Self {
            cookie,
            priority,
            reason,
            table: reader.u8()?,
            age: read_duration(reader)?,
            idle_timeout: read_timeout(reader)?,
            hard_timeout: read_timeout(reader)?,
            packets: reader.u64()?,
            bytes: reader.u64()?,
            matching: read_match(reader)?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u64(self.cookie).u16(self.priority).u8(self.reason.number()).u8(self.table);
        write_duration(writer, self.age);
        write_timeout(writer, self.idle_timeout);
        write_timeout(writer, self.hard_timeout);
        writer.u64(self.packets).u64(self.bytes);
        write_match(writer, &self.matching);
    }
}
