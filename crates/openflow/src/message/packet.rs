//! Messages that carry packets (OpenFlow 1.3.5, 7.3.7 and 7.4.1).

use flow_table::{Match, port_number};

use crate::ErrorCode;
use crate::action::{PacketOutAction, read_packet_out, write_packet_out};
use crate::fields::{read_match, write_match};
use crate::wire::{Reader, Writer};

/// No buffer (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = 0xffff_ffff;

pub(crate) fn read_buffer(reader: &mut Reader<'_>) -> Result<Option<u32>, ErrorCode> {
    let buffer = reader.u32()?;
    Ok((buffer != NO_BUFFER).then_some(buffer))
}

pub(crate) fn write_buffer(writer: &mut Writer, buffer: Option<u32>) {
    writer.u32(buffer.unwrap_or(NO_BUFFER));
}

/// Why a packet is sent to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketInReason {
    /// A table-miss entry sent it.
    NoMatch,
    /// An output action of another entry or a group sent it.
    Action,
    /// Its time to live is to be decremented and is zero or one.
    InvalidTtl,
}

impl PacketInReason {
    /// The number (`OFPR_*`).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::NoMatch => 0,
            Self::Action => 1,
            Self::InvalidTtl => 2,
        }
    }
}

/// A packet for the controller (`ofp_packet_in`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn {
    /// The buffer in which the switch keeps the packet.
    pub buffer: Option<u32>,
    /// Length of the packet. The message may contain less.
    pub total_length: u16,
    /// Why it is sent.
    pub reason: PacketInReason,
    /// The table whose entry sent it.
    pub table: u8,
    /// The cookie of that entry.
    pub cookie: u64,
    /// The ingress port, and the metadata and tunnel number if they are not zero.
    pub fields: Match,
    /// The packet, or its beginning.
    pub data: Vec<u8>,
}

impl PacketIn {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (buffer, total_length) = (read_buffer(reader)?, reader.u16()?);
        let reason = match reader.u8()? {
            0 => PacketInReason::NoMatch,
            1 => PacketInReason::Action,
            2 => PacketInReason::InvalidTtl,
            _ => return Err(ErrorCode::BRC_BAD_TYPE),
        };
        let (table, cookie, fields) = (reader.u8()?, reader.u64()?, read_match(reader)?);
        reader.skip(2)?;
        Ok(Self { buffer, total_length, reason, table, cookie, fields, data: reader.rest().to_vec() })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        write_buffer(writer, self.buffer);
        writer.u16(self.total_length).u8(self.reason.number()).u8(self.table).u64(self.cookie);
        write_match(writer, &self.fields);
        writer.pad(2).bytes(&self.data);
    }
}

/// A packet from the controller (`ofp_packet_out`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The buffer with the packet; without it the packet is in `data`.
    pub buffer: Option<u32>,
    /// The ingress port, or [`port_number::CONTROLLER`] or [`port_number::ANY`].
    pub in_port: u32,
    /// What to do with the packet.
    pub actions: Vec<PacketOutAction>,
    /// The packet.
    pub data: Vec<u8>,
}

impl PacketOut {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ErrorCode> {
        let (buffer, in_port, length) = (read_buffer(reader)?, reader.u32()?, reader.u16()?);
        reader.skip(6)?;
        let mut part = reader.part(length.into(), ErrorCode::BAC_BAD_LEN)?;
        if !matches!(
            in_port,
            0..=port_number::MAX | port_number::LOCAL | port_number::CONTROLLER | port_number::ANY
        ) {
            return Err(ErrorCode::BRC_BAD_PORT);
        }
        let actions = read_packet_out(&mut part)?;
        let data = reader.rest().to_vec();
        Ok(Self { buffer, in_port, actions, data })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        write_buffer(writer, self.buffer);
        writer.u32(self.in_port);
        let at = writer.len();
        writer.u16(0).pad(6);
        let start = writer.len();
        write_packet_out(writer, &self.actions);
        writer.set_length(at, start);
        writer.bytes(&self.data);
    }
}
