//! Replies with statistics (OpenFlow 1.0, 5.3.5).

use super::reply::{finish, write_duration, write_timeout};
use super::{action, matching, number};
use crate::MAX_MESSAGE;
use crate::message::{FlowStats, HEADER, MultipartReply, PortStats};
use crate::wire::Writer;

const STATS_REPLY: u8 = 17;

/// More parts follow.
const MORE: u16 = 1;

/// Encodes a reply as messages of at most 64 KB. All but the last say that more follow; the last does if `more` is set.
/// Tables hold `max_entries`. What this version does not have is an empty reply.
pub(crate) fn encode_statistics(
    xid: u32,
    reply: &MultipartReply,
    more: bool,
    max_entries: u32,
) -> Vec<Vec<u8>> {
    let (kind, entries) = entries(reply, max_entries);
    let room = MAX_MESSAGE - HEADER - 4;
    let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
    for entry in entries.into_iter().filter(|entry| entry.len() <= room) {
        match parts.last_mut() {
            Some(part) if part.len() + entry.len() <= room => part.extend(entry),
            _ => parts.push(entry),
        }
    }
    let last = parts.len() - 1;
    let encode = |(at, part): (usize, Vec<u8>)| {
        let mut writer = Writer::default();
        writer.u16(kind).u16(if more || at != last { MORE } else { 0 }).bytes(&part);
        finish(STATS_REPLY, xid, &writer.0).ok()
    };
    parts.into_iter().enumerate().filter_map(encode).collect()
}

/// The type of a reply, and its entries.
fn entries(reply: &MultipartReply, max_entries: u32) -> (u16, Vec<Vec<u8>>) {
    let one = |write: &dyn Fn(&mut Writer)| {
        let mut writer = Writer::default();
        write(&mut writer);
        writer.0
    };
    match reply {
        MultipartReply::Description(description) => (0, vec![one(&|writer| description.write(writer))]),
        MultipartReply::Flow(flows) => (1, flows.iter().map(flow).collect()),
        MultipartReply::Aggregate(aggregate) => (2, vec![one(&|writer| aggregate.write(writer))]),
        MultipartReply::Table(tables) => {
            let table = |table: &crate::message::TableStats| {
                one(&|writer| {
                    writer.u8(table.table).pad(3).text(&format!("table{}", table.table), 32);
                    writer.u32(matching::WILDCARDS).u32(max_entries).u32(table.active);
                    writer.u64(table.lookups).u64(table.matches);
                })
            };
            (3, tables.iter().map(table).collect())
        }
        MultipartReply::PortStats(ports) => (4, ports.iter().filter_map(port).collect()),
        // No port has queues.
        MultipartReply::Queue(_) => (5, Vec::new()),
        _ => (0xffff, Vec::new()),
    }
}

fn flow(flow: &FlowStats) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u16(0).u8(flow.table).pad(1);
    matching::write(&mut writer, &flow.matching);
    write_duration(&mut writer, flow.age);
    writer.u16(flow.priority);
    write_timeout(&mut writer, flow.idle_timeout);
    write_timeout(&mut writer, flow.hard_timeout);
    writer.pad(6).u64(flow.cookie).u64(flow.packets).u64(flow.bytes);
    action::write(&mut writer, &flow.instructions);
    writer.set_length(0, 0);
    writer.0
}

fn port(port: &PortStats) -> Option<Vec<u8>> {
    let mut writer = Writer::default();
    writer.u16(number::narrow(port.port)?).pad(6);
    for counter in [
        port.rx_packets,
        port.tx_packets,
        port.rx_bytes,
        port.tx_bytes,
        port.rx_dropped,
        port.tx_dropped,
        port.rx_errors,
        port.tx_errors,
        port.rx_frame_errors,
        port.rx_over_errors,
        port.rx_crc_errors,
        port.collisions,
    ] {
        writer.u64(counter);
    }
    Some(writer.0)
}
