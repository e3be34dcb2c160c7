//! What OpenFlow controllers have added to a switch, for users.
//!
//! The fabric has the entries, and answers requests about them in the form in which controllers get the answers. Here they become
//! text.

use super::state::Supervisor;
use crate::error::OperationError;
use api::{
    ControllerEntries, ControllerEntriesQuery, ControllerEntry, ControllerGroup, ControllerMeter, SwitchName,
};
use flow_expression::{band_texts, bucket_text, condition_text, instruction_texts};
use flow_table::{Field, GroupType, NOT_COUNTED};
use openflow::message::{FlowSelection, FlowStats, HEADER, Message, MultipartReply, MultipartRequest};
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
            let reply = self.controller_report(switch, request, part)?;
            from = match reply.next {
                Some(next) => number << PART_BITS | next,
                None => (number + 1) << PART_BITS,
            };
            for body in &reply.bodies {
                add(&mut page, body, &port)?;
            }
            if page.entries.len() + page.groups.len() + page.meters.len() >= PAGE {
                break;
            }
        }
        page.next = report(from >> PART_BITS).map(|_| from);
        Ok(page)
    }

    fn controller_report(
        &self,
        switch: &SwitchName,
        request: MultipartRequest,
        from: u64,
    ) -> Result<ControllerReportReply, OperationError> {
        let message = Message::MultipartRequest { request, more: false };
        // It has a few bytes.
        let mut bytes = message.encode(0).unwrap_or_default();
        let request = ByteBuf::from(bytes.split_off(HEADER.min(bytes.len())));
        self.0.fabrics.ask(orders::ControllerReport { switch: switch.clone(), request, from })
    }

    /// The names of what controllers know as ports.
    fn openflow_names(&self, switch: &SwitchName) -> Result<BTreeMap<u32, String>, OperationError> {
        let numbers = self.ask_port_numbers(switch)?;
        Ok(numbers.into_iter().map(|(port, number)| (number.into(), port.to_string())).collect())
    }
}

/// Adds what a message of the fabric reports.
fn add(
    page: &mut ControllerEntries,
    body: &[u8],
    port: &dyn Fn(u32) -> String,
) -> Result<(), OperationError> {
    let Ok(Message::MultipartReply { reply, .. }) = Message::decode(REPLY, body) else {
        return Err(FabricError::Protocol("a report for controllers is malformed".into()).into());
    };
    match reply {
        MultipartReply::Flow(entries) => page.entries.extend(entries.iter().map(|found| entry(found, port))),
        MultipartReply::GroupDescription(groups) => page.groups.extend(groups.iter().map(|group| {
            let group_type = match group.group_type {
                GroupType::All => "all",
                GroupType::Select => "select",
                GroupType::Indirect => "indirect",
                GroupType::FastFailover => "fast_failover",
            };
            ControllerGroup {
                number: group.group,
                group_type: group_type.into(),
                buckets: group.buckets.iter().map(|bucket| bucket_text(bucket, port)).collect(),
            }
        })),
        MultipartReply::MeterConfig(meters) => page.meters.extend(
            meters
                .iter()
                .map(|meter| ControllerMeter { number: meter.meter, bands: band_texts(&meter.definition) }),
        ),
        _ => {}
    }
    Ok(())
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
