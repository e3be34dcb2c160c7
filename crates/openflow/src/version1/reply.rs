//! Messages of the switch (OpenFlow 1.0, 5.3 to 5.5).

use std::time::Duration;

use flow_table::{Field, port_number};

use super::{VERSION, action, error, matching, number, port};
use crate::MAX_MESSAGE;
use crate::message::{Features, FlowRemoved, Message, PacketIn, PacketInReason, Port, TooLong};
use crate::wire::{Writer, or_any};

/// Encodes a message that a switch sends; `None` if this version has no such message.
pub(crate) fn encode(message: &Message, xid: u32) -> Result<Option<Vec<u8>>, TooLong> {
    let mut writer = Writer::default();
    let message_type = match message {
        // Without elements: controllers of this version know none.
        Message::Hello(_) => 0,
        Message::Error { code, data } => {
            let code = error::of(*code);
            writer.u16(code.error_type).u16(code.code).bytes(data);
            1
        }
        Message::EchoRequest(data) => {
            writer.bytes(data);
            2
        }
        Message::EchoReply(data) => {
            writer.bytes(data);
            3
        }
        Message::GetConfigReply(config) => {
            writer.u16(config.flags).u16(config.miss_send_length);
            8
        }
        Message::PacketIn(packet) => {
            packet_in(&mut writer, packet);
            10
        }
        Message::FlowRemoved(removed) => {
            flow_removed(&mut writer, removed);
            11
        }
        Message::PortStatus(status) => {
            writer.u8(status.reason.number()).pad(7);
            if !port::write(&mut writer, &status.port) {
                return Ok(None);
            }
            12
        }
        Message::BarrierReply => 19,
        Message::QueueConfigReply { port, .. } => {
            // No port has queues.
            writer.u16(port.and_then(number::narrow).unwrap_or(number::NONE)).pad(6);
            21
        }
        _ => return Ok(None),
    };
    finish(message_type, xid, &writer.0).map(Some)
}

/// A message with its header.
pub(super) fn finish(message_type: u8, xid: u32, body: &[u8]) -> Result<Vec<u8>, TooLong> {
    let length = body.len() + crate::message::HEADER;
    if length > MAX_MESSAGE {
        return Err(TooLong);
    }
    let mut writer = Writer::default();
    writer.u8(VERSION).u8(message_type).u16(length as u16).u32(xid).bytes(body);
    Ok(writer.0)
}

/// What the switch is, and its ports.
pub(crate) fn features_reply(xid: u32, features: Features, ports: &[Port]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u64(features.datapath).u32(features.buffers).u8(features.tables).pad(3);
    // Statistics of flows, tables and ports have the same bits; there are no others that this version has too.
    writer.u32(features.capabilities & 0b111).u32(action::SUPPORTED);
    for port in ports {
        port::write(&mut writer, port);
    }
    // A switch has far fewer ports than fit a message; the reply without them is better than none.
    finish(6, xid, &writer.0)
        .or_else(|_| finish(6, xid, writer.0.get(..24).unwrap_or_default()))
        .unwrap_or_default()
}

fn packet_in(writer: &mut Writer, packet: &PacketIn) {
    let port = packet.fields.get(Field::InPort).map_or(port_number::ANY, |(port, _)| port as u32);
    writer.u32(or_any(packet.buffer)).u16(packet.total_length);
    writer.u16(number::narrow(port).unwrap_or(number::NONE));
    let reason = match packet.reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action | PacketInReason::InvalidTtl => 1,
    };
    writer.u8(reason).pad(1).bytes(&packet.data);
}

fn flow_removed(writer: &mut Writer, removed: &FlowRemoved) {
    matching::write(writer, &removed.matching);
    writer.u64(removed.cookie).u16(removed.priority);
    // The deletion of a group deletes its entries.
    writer.u8(removed.reason.number().min(2)).pad(1);
    write_duration(writer, removed.age);
    write_timeout(writer, removed.idle_timeout);
    writer.pad(2).u64(removed.packets).u64(removed.bytes);
}

/// Writes seconds and nanoseconds.
pub(super) fn write_duration(writer: &mut Writer, duration: Duration) {
    writer.u32(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)).u32(duration.subsec_nanos());
}

/// Writes a timeout in seconds, rounded up. Zero means none.
pub(super) fn write_timeout(writer: &mut Writer, timeout: Option<Duration>) {
    let seconds = timeout.map_or(0, |timeout| {
        let whole = timeout.as_secs() + u64::from(timeout.subsec_nanos() != 0);
        u16::try_from(whole.max(1)).unwrap_or(u16::MAX)
    });
    writer.u16(seconds);
}
