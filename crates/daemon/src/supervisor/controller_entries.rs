//! What OpenFlow controllers have added to a switch, for users.
//!
//! The fabric has the entries, and answers requests about them in the form in which controllers get the answers. Here they become
//! text.

use super::state::Supervisor;
use crate::error::OperationError;
use api::{
    ControllerBand, ControllerBucket, ControllerEntries, ControllerEntriesQuery, ControllerEntry,
    ControllerGroup, ControllerMeter, SwitchName,
};
use flow_expression::{band_texts, bucket_text, condition_text, instruction_texts};
use flow_table::{Field, GroupType, NOT_COUNTED};
use openflow::message::{
    FlowSelection, FlowStats, GroupStats, HEADER, Message, MeterStats, MultipartReply, MultipartRequest,
};
use protocol::fabric::{ControllerReportReply, FabricError, orders};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;

/// Entries, groups and meters of a page, before the last part that the fabric adds.
const PAGE: usize = 512;

/// Parts of a page: those of a table whose entries are all of users are empty.
const PARTS_OF_PAGE: usize = 16;

/// A page begins at a part of a report. The report is in the upper half of the number, the part in the lower one.
const PART_BITS: u32 = 32;

/// The type of a multipart reply (`OFPT_MULTIPART_REPLY`).
const REPLY: u8 = 19;

/// The reports, in their order.
fn report(number: u64) -> Option<MultipartRequest> {
    Some(match number {
        0 => MultipartRequest::Flow(FlowSelection::all()),
        1 => MultipartRequest::GroupDescription,
        2 => MultipartRequest::MeterConfig(None),
        _ => return None,
    })
}

/// What is counted of what a report lists.
fn counters_of(report: &MultipartRequest) -> Option<MultipartRequest> {
    match report {
        MultipartRequest::GroupDescription => Some(MultipartRequest::Group(None)),
        MultipartRequest::MeterConfig(_) => Some(MultipartRequest::Meter(None)),
        _ => None,
    }
}

/// The counters of a group or a meter: packets, bytes, and the same of each bucket or band.
type Counters = (u64, u64, Vec<(u64, u64)>);

impl Supervisor {
    /// A page of the flow entries, groups and meters that controllers have added to a switch.
    pub fn controller_entries(
        &self,
        switch: &SwitchName,
        query: ControllerEntriesQuery,
    ) -> Result<ControllerEntries, OperationError> {
        let stored = self.steering_switch(switch)?;
        let mut page = ControllerEntries::default();
        if stored.definition.controllers.is_empty() {
            return Ok(page);
        }
        let names = self.openflow_names(switch)?;
        let port = |number: u32| names.get(&number).cloned().unwrap_or_else(|| number.to_string());
        let mut from = query.from.unwrap_or(0);
        for _ in 0..PARTS_OF_PAGE {
            let (number, part) = (from >> PART_BITS, from & u64::from(u32::MAX));
            let Some(request) = report(number) else { return Ok(page) };
            // The parts with the counters begin at the same groups and meters.
            let counters = counters_of(&request);
            let (replies, next) = self.controller_report(switch, request, part)?;
            let counters = match counters {
                Some(request) => counters_by_number(self.controller_report(switch, request, part)?.0),
                None => BTreeMap::new(),
            };
            from = match next {
                Some(next) => number << PART_BITS | next,
                None => (number + 1) << PART_BITS,
            };
            for reply in replies {
                add(&mut page, reply, &counters, &port);
            }
            if page.entries.len() + page.groups.len() + page.meters.len() >= PAGE {
                break;
            }
        }
        page.next = report(from >> PART_BITS).map(|_| from);
        Ok(page)
    }

    /// A part of a report, and where the next one begins.
    fn controller_report(
        &self,
        switch: &SwitchName,
        request: MultipartRequest,
        from: u64,
    ) -> Result<(Vec<MultipartReply>, Option<u64>), OperationError> {
        let message = Message::MultipartRequest { request, more: false };
        // It has a few bytes.
        let mut bytes = message.encode(0).unwrap_or_default();
        let request = ByteBuf::from(bytes.split_off(HEADER.min(bytes.len())));
        let order = orders::ControllerReport { switch: switch.clone(), request, from };
        let ControllerReportReply { bodies, next } = self.0.fabrics.ask(order)?;
        let decode = |body: &ByteBuf| match Message::decode(REPLY, body) {
            Ok(Message::MultipartReply { reply, .. }) => Ok(reply),
            _ => Err(FabricError::Protocol("a report for controllers is malformed".into())),
        };
        Ok((bodies.iter().map(decode).collect::<Result<_, _>>()?, next))
    }

    /// The names of what controllers know as ports.
    fn openflow_names(&self, switch: &SwitchName) -> Result<BTreeMap<u32, String>, OperationError> {
        let numbers = self.ask_port_numbers(switch)?;
        Ok(numbers.into_iter().map(|(port, number)| (number.into(), port.to_string())).collect())
    }
}

/// The counters of groups or meters, by number.
fn counters_by_number(replies: Vec<MultipartReply>) -> BTreeMap<u32, Counters> {
    let of_reply = |reply| match reply {
        MultipartReply::Group(groups) => {
            let counters = |group: GroupStats| (group.group, (group.packets, group.bytes, group.buckets));
            groups.into_iter().map(counters).collect()
        }
        MultipartReply::Meter(meters) => {
            let counters = |meter: MeterStats| (meter.meter, (meter.packets, meter.bytes, meter.bands));
            meters.into_iter().map(counters).collect()
        }
        _ => Vec::new(),
    };
    sorting::collect(replies.into_iter().flat_map(of_reply))
}

/// Adds what a message of the fabric reports. A group or meter without counters was removed meanwhile.
fn add(
    page: &mut ControllerEntries,
    reply: MultipartReply,
    counters: &BTreeMap<u32, Counters>,
    port: &dyn Fn(u32) -> String,
) {
    match reply {
        MultipartReply::Flow(entries) => page.entries.extend(entries.iter().map(|found| entry(found, port))),
        MultipartReply::GroupDescription(groups) => page.groups.extend(groups.iter().filter_map(|group| {
            let (packets, bytes, counts) = counters.get(&group.group)?;
            let bucket = |(bucket, &(packets, bytes))| {
                let definition = bucket_text(bucket, port);
                ControllerBucket { definition, packets, bytes }
            };
            let group_type = match group.group_type {
                GroupType::All => "all",
                GroupType::Select => "select",
                GroupType::Indirect => "indirect",
                GroupType::FastFailover => "fast_failover",
            };
            Some(ControllerGroup {
                number: group.group,
                group_type: group_type.into(),
                packets: *packets,
                bytes: *bytes,
                buckets: group.buckets.iter().zip(counts).map(bucket).collect(),
            })
        })),
        MultipartReply::MeterConfig(meters) => page.meters.extend(meters.iter().filter_map(|meter| {
            let (packets, bytes, counts) = counters.get(&meter.meter)?;
            let band = |(definition, &(packets, bytes))| ControllerBand { definition, packets, bytes };
            Some(ControllerMeter {
                number: meter.meter,
                packets: *packets,
                bytes: *bytes,
                bands: band_texts(&meter.definition).into_iter().zip(counts).map(band).collect(),
            })
        })),
        _ => {}
    }
}

fn entry(found: &FlowStats, port: &dyn Fn(u32) -> String) -> ControllerEntry {
    let kept = |count: u64| (count != NOT_COUNTED).then_some(count);
    ControllerEntry {
        table: found.table,
        priority: found.priority,
        condition: condition_text(&found.matching),
        in_port: found.matching.get(Field::InPort).map(|(number, _)| port(number as u32)),
        instructions: instruction_texts(&found.instructions, port),
        packets: kept(found.packets),
        bytes: kept(found.bytes),
        age_seconds: found.age.as_secs(),
        idle_seconds: found.idle_timeout.map(|time| time.as_secs()),
        timeout_seconds: found.hard_timeout.map(|time| time.as_secs()),
        cookie: format!("{:#x}", found.cookie),
    }
}
