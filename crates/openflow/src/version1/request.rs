//! Messages of controllers (OpenFlow 1.0, 5.3 to 5.5).

use std::time::Duration;

use flow_table::{Change, Command, EntryFlags, Match, Owner};

use super::number;
use super::{action, matching};
use crate::ErrorCode;
use crate::message::{
    Config, FlowMod, FlowSelection, Message, MultipartRequest, PacketOut, PacketOutAction, PortMod,
};
use crate::wire::{Reader, optional};

const SEND_FLOW_REM: u16 = 1;
const CHECK_OVERLAP: u16 = 2;

/// More parts of a request follow. No request has several.
const MORE: u16 = 1;

/// What a controller sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The message of OpenFlow 1.3 that means the same.
    pub(crate) message: Message,
    /// Whether the change adds an entry if it finds none to modify (3.4 and 4.6).
    pub(crate) adds_if_missing: bool,
}

impl From<Message> for Decoded {
    fn from(message: Message) -> Self {
        Self { message, adds_if_missing: false }
    }
}

/// Decodes what follows the header of a message.
pub(crate) fn decode(message_type: u8, body: &[u8]) -> Result<Decoded, ErrorCode> {
    let mut reader = Reader::new(body, ErrorCode::BRC_BAD_LEN);
    let decoded = match message_type {
        // Hello, errors and echo messages are the same.
        0..=3 => return Message::decode(message_type, body).map(Decoded::from),
        4 => return Err(ErrorCode::BRC_BAD_EXPERIMENTER),
        5 => Message::FeaturesRequest.into(),
        7 => Message::GetConfigRequest.into(),
        9 => {
            let (flags, miss_send_length) = (reader.u16()?, reader.u16()?);
            Message::SetConfig(Config { flags, miss_send_length }).into()
        }
        13 => Message::PacketOut(packet_out(&mut reader)?).into(),
        14 => {
            let (change, adds_if_missing) = flow_mod(&mut reader)?;
            Decoded { message: Message::FlowMod(change), adds_if_missing }
        }
        15 => {
            let (port, address) = (number::widen(reader.u16()?), reader.mac()?);
            let (config, mask, advertise) = (reader.u32()?, reader.u32()?, reader.u32()?);
            reader.skip(4)?;
            Message::PortMod(PortMod { port, address, config, mask, advertise }).into()
        }
        16 => statistics(&mut reader)?.into(),
        18 => Message::BarrierRequest.into(),
        20 => {
            let port = number::widen(reader.u16()?);
            reader.skip(2)?;
            Message::QueueConfigRequest(Some(port)).into()
        }
        _ => return Err(ErrorCode::BRC_BAD_TYPE),
    };
    reader.end()?;
    Ok(decoded)
}

fn read_buffer(reader: &mut Reader<'_>) -> Result<Option<u32>, ErrorCode> {
    reader.u32().map(optional)
}

/// A port, or none.
fn read_port(reader: &mut Reader<'_>) -> Result<Option<u32>, ErrorCode> {
    reader.u16().map(number::widen).map(optional)
}

fn read_timeout(reader: &mut Reader<'_>) -> Result<Option<Duration>, ErrorCode> {
    let seconds = reader.u16()?;
    Ok((seconds != 0).then(|| Duration::from_secs(seconds.into())))
}

fn packet_out(reader: &mut Reader<'_>) -> Result<PacketOut, ErrorCode> {
    let (buffer, in_port, length) = (read_buffer(reader)?, number::widen(reader.u16()?), reader.u16()?);
    let mut part = reader.part(length.into(), ErrorCode::BAC_BAD_LEN)?;
    let (actions, _) = action::read(&mut part, &Match::any())?;
    Ok(PacketOut { buffer, in_port, actions, data: reader.rest().to_vec() })
}

fn flow_mod(reader: &mut Reader<'_>) -> Result<(FlowMod, bool), ErrorCode> {
    let (matching, is_exact) = matching::read(reader)?;
    let cookie = reader.u64()?;
    let number = reader.u16()?;
    let command = match number {
        0 => Command::Add,
        1 => Command::Modify,
        2 => Command::ModifyStrict,
        3 => Command::Delete,
        4 => Command::DeleteStrict,
        _ => return Err(ErrorCode::FMFC_BAD_COMMAND),
    };
    let (idle_timeout, hard_timeout) = (read_timeout(reader)?, read_timeout(reader)?);
    let (priority, buffer, out_port) = (reader.u16()?, read_buffer(reader)?, read_port(reader)?);
    let flags = reader.u16()?;
    if flags & !(SEND_FLOW_REM | CHECK_OVERLAP) != 0 {
        // Such as entries for emergencies.
        return Err(ErrorCode::FMFC_BAD_FLAGS);
    }
    let mut part = reader.part(reader.left(), ErrorCode::BAC_BAD_LEN)?;
    let (actions, lengths) = action::read(&mut part, &matching)?;
    let is_deletion = matches!(command, Command::Delete | Command::DeleteStrict);
    let mut instructions = flow_table::Instructions::default();
    for action in actions {
        match action {
            PacketOutAction::Perform(action) => instructions.apply.push(action),
            PacketOutAction::Table => return Err(ErrorCode::BAC_BAD_OUT_PORT),
        }
    }
    instructions.stated_lengths = crate::action::remembered(lengths);
    let change = Change {
        owner: Owner::default(),
        command,
        table: (!is_deletion).then_some(0),
        matching,
        priority: if is_exact { u16::MAX } else { priority },
        instructions,
        cookie,
        cookie_mask: 0,
        idle_timeout,
        hard_timeout,
        flags: EntryFlags {
            send_removed: flags & SEND_FLOW_REM != 0,
            check_overlap: flags & CHECK_OVERLAP != 0,
            // An entry that is replaced begins with new counters (4.6).
            reset_counts: command == Command::Add,
            ..EntryFlags::default()
        },
        out_port: out_port.filter(|_| is_deletion),
        out_group: None,
    };
    let adds_if_missing = matches!(command, Command::Modify | Command::ModifyStrict);
    Ok((FlowMod { change, buffer }, adds_if_missing))
}

fn statistics(reader: &mut Reader<'_>) -> Result<Message, ErrorCode> {
    let (kind, flags) = (reader.u16()?, reader.u16()?);
    let request = match kind {
        0 => MultipartRequest::Description,
        1 => MultipartRequest::Flow(selection(reader)?),
        2 => MultipartRequest::Aggregate(selection(reader)?),
        3 => MultipartRequest::Table,
        4 => {
            let port = read_port(reader)?;
            reader.skip(6)?;
            MultipartRequest::PortStats(port)
        }
        5 => {
            // All ports are named by another number than in other requests (`OFPP_ALL`).
            let port = reader.u16().map(number::widen)?;
            reader.skip(2)?;
            let queue = optional(reader.u32()?);
            let port = (port != flow_table::port_number::ALL).then_some(port);
            MultipartRequest::Queue { port, queue }
        }
        0xffff => return Err(ErrorCode::BRC_BAD_EXPERIMENTER),
        _ => return Err(ErrorCode::BRC_BAD_MULTIPART),
    };
    Ok(Message::MultipartRequest { request, more: flags & MORE != 0 })
}

fn selection(reader: &mut Reader<'_>) -> Result<FlowSelection, ErrorCode> {
    let (matching, _) = matching::read(reader)?;
    let table = reader.u8()?;
    reader.skip(1)?;
    let out_port = read_port(reader)?;
    Ok(FlowSelection {
        table: (table != 0xff).then_some(table),
        out_port,
        out_group: None,
        cookie: 0,
        cookie_mask: 0,
        matching,
    })
}
