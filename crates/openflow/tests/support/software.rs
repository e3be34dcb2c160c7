//! A switch in memory: the tables, groups and meters of `flow-table`, and ports that record what they transmit.

use std::time::Duration;

use flow_table::{
    Action, Change, Command, Effects, Entry, Field, FrameBuffer, Group, GroupContext, Groups, Ingress, Key,
    Limits, Match, Meter, MeterVerdict, Meters, Operation, Output, OutputState, Performed, Pipeline, Seed,
    perform,
};
use openflow::ErrorCode;
use openflow::message::{
    Aggregate, Description, Features, FlowRemoved, FlowRemovedReason, FlowSelection, FlowStats,
    GroupDescription, GroupFeatures, GroupMod, GroupStats, MeterConfig, MeterFeatures, MeterMod, MeterStats,
    MultipartReply, MultipartRequest, PacketInReason, PacketOutAction, Port, PortMod, PortStats, PortStatus,
    PortStatusReason, Queue, TableFeatures, TableStats,
};
use openflow::session::{Datapath, Event, PacketForController, Report};
use packet::MacAddr;

/// Entries of a part of a report.
const PAGE: usize = 100;

const MAX_ENTRIES: usize = 1 << 16;

pub(crate) struct Software {
    pub(crate) pipeline: Pipeline,
    groups: Groups,
    meters: Meters,
    ports: Vec<Port>,
    pub(crate) transmitted: Vec<(u32, Vec<u8>)>,
    events: Vec<Event>,
}

/// What operations do beyond the frame.
struct Outputs<'a> {
    meters: &'a mut Meters,
    groups: &'a mut Groups,
    flow_hash: u64,
    now: Duration,
    frames: Vec<(Output, Vec<u8>)>,
}

impl Effects for Outputs<'_> {
    fn meter(&mut self, meter: u32, frame: &[u8]) -> MeterVerdict {
        self.meters.meter(meter, frame.len() as u32, self.now)
    }

    fn output(&mut self, output: Output, frame: &[u8], _: OutputState) {
        self.frames.push((output, frame.to_vec()));
    }

    fn group(&mut self, group: u32, frame: &[u8], state: OutputState) {
        let mut groups = std::mem::take(self.groups);
        let context = GroupContext { flow_hash: self.flow_hash, is_up: &|_| true };
        groups.perform(group, frame, state, context, self);
        *self.groups = groups;
    }
}

fn port(number: u32) -> Port {
    Port {
        number,
        address: MacAddr([2, 0, 0, 0, 0, number as u8]),
        name: format!("p{number}"),
        config: 0,
        state: 4,
        current: 1 << 6,
        advertised: 0,
        supported: 1 << 6,
        peer: 0,
        speed: 10_000_000,
        max_speed: 10_000_000,
    }
}

impl Software {
    /// A switch with ports numbered from 1.
    pub(crate) fn new(ports: u32) -> Self {
        let limits = Limits { entries: MAX_ENTRIES, bytes: 64 << 20, ..Limits::default() };
        Self {
            pipeline: Pipeline::new(limits, Seed::new(1, 2)),
            groups: Groups::default(),
            meters: Meters::default(),
            ports: (1..=ports).map(port).collect(),
            transmitted: Vec::new(),
            events: Vec::new(),
        }
    }

    /// A frame arrives on a port.
    pub(crate) fn arrive(&mut self, in_port: u32, frame: &[u8], now: Duration) {
        let ingress = Ingress { port: in_port, ..Ingress::default() };
        let key = Key::extract(frame, &ingress).0;
        let path = self.pipeline.look_up(&key);
        self.pipeline.count(path, 1, frame.len() as u64, now);
        let Some(found) = self.pipeline.path(path) else { return };
        if found.is_miss() {
            let fields = Match::any().with(Field::InPort, in_port.into()).expect("a port fits");
            let (reason, frame) = (PacketInReason::NoMatch, frame.to_vec());
            self.events.push(Event::Packet(PacketForController {
                reason,
                table: 0,
                cookie: u64::MAX,
                fields,
                max_length: None,
                frame,
            }));
            return;
        }
        let (operations, table) = (found.operations().to_vec(), found.tables().last().unwrap_or(0));
        let fits = |entry: &Entry<'_>| entry.table == table && entry.matching.matches(&key);
        let entries = self.pipeline.entries().filter(fits);
        let last = entries.max_by_key(|entry| entry.priority);
        let cookie = last.map_or(u64::MAX, |entry| entry.cookie);
        let is_miss = last.is_some_and(|entry| entry.priority == 0 && *entry.matching == Match::any());
        let reason = if is_miss { PacketInReason::NoMatch } else { PacketInReason::Action };
        self.run(&operations, frame, in_port, (reason, table, cookie), now);
    }

    /// Performs operations on a frame. Returns the changed frame.
    fn run(
        &mut self,
        operations: &[Operation],
        frame: &[u8],
        in_port: u32,
        origin: (PacketInReason, u8, u64),
        now: Duration,
    ) -> Vec<u8> {
        let mut buffer = FrameBuffer::default();
        buffer.set(frame);
        let flow_hash = Key::extract(frame, &Ingress { port: in_port, ..Ingress::default() }).0.flow_hash(1);
        let (meters, groups) = (&mut self.meters, &mut self.groups);
        let mut outputs = Outputs { meters, groups, flow_hash, now, frames: Vec::new() };
        let done = perform(operations, &mut buffer, &mut OutputState::default(), &mut outputs);
        let fields = Match::any().with(Field::InPort, in_port.into()).expect("a port fits");
        for (output, frame) in outputs.frames {
            let ports = self.ports.iter().map(|port| port.number);
            match output {
                Output::Port(port) => self.transmitted.push((port, frame)),
                Output::InPort => self.transmitted.push((in_port, frame)),
                Output::All | Output::Flood => {
                    let others = ports.filter(|port| *port != in_port);
                    self.transmitted.extend(others.map(|port| (port, frame.clone())));
                }
                Output::Controller { max_length } => {
                    let (reason, table, cookie) = origin;
                    let max_length = Some(max_length);
                    let packet = PacketForController { reason, table, cookie, fields, max_length, frame };
                    self.events.push(Event::Packet(packet));
                }
                _ => {}
            }
        }
        if done == Performed::InvalidTtl {
            let (reason, (_, table, cookie)) = (PacketInReason::InvalidTtl, origin);
            let frame = buffer.frame().to_vec();
            let packet = PacketForController { reason, table, cookie, fields, max_length: None, frame };
            self.events.push(Event::Packet(packet));
        }
        buffer.frame().to_vec()
    }

    fn note_removed(&mut self, removed: &[flow_table::FlowRemoved], reason: Option<FlowRemovedReason>) {
        for removed in removed.iter().filter(|removed| removed.send_removed) {
            let mut message = FlowRemoved::from(removed);
            message.reason = reason.unwrap_or(message.reason);
            self.events.push(Event::FlowRemoved(message));
        }
    }

    fn check(&self, actions: &[Action]) -> Result<(), ErrorCode> {
        let is_missing =
            |action: &Action| matches!(action, Action::Group(group) if self.groups.get(*group).is_none());
        if actions.iter().any(is_missing) { Err(ErrorCode::BAC_BAD_OUT_GROUP) } else { Ok(()) }
    }

    /// Deletes the entries that use a group, or any group.
    fn delete_entries_of_group(&mut self, group: Option<u32>, now: Duration) {
        let numbers = match group {
            Some(group) => vec![group],
            None => self.groups.iter().map(|(number, _)| number).collect(),
        };
        for number in numbers {
            let mut change = Change::new(Command::Delete, Match::any(), 0);
            (change.table, change.out_group) = (None, Some(number));
            let done = self.pipeline.apply(&change, now).expect("a deletion");
            self.note_removed(&done.removed, Some(FlowRemovedReason::GroupDelete));
        }
    }

    fn delete_entries_of_meter(&mut self, meter: Option<u32>, now: Duration) {
        let uses = |entry: &Entry<'_>| {
            entry.instructions.meter.is_some_and(|used| meter.is_none_or(|meter| meter == used))
        };
        let found: Vec<_> = self
            .pipeline
            .entries()
            .filter(uses)
            .map(|entry| (entry.table, *entry.matching, entry.priority))
            .collect();
        for (table, matching, priority) in found {
            let mut change = Change::new(Command::DeleteStrict, matching, priority);
            change.table = Some(table);
            let done = self.pipeline.apply(&change, now).expect("a deletion");
            self.note_removed(&done.removed, None);
        }
    }

    fn selected(&mut self, selection: FlowSelection, now: Duration) -> impl Iterator<Item = FlowStats> {
        self.pipeline.entries().filter(move |entry| selection.selects(entry)).map(move |entry| FlowStats {
            table: entry.table,
            age: now.saturating_sub(entry.created),
            priority: entry.priority,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            flags: entry.flags,
            cookie: entry.cookie,
            packets: entry.packets,
            bytes: entry.bytes,
            matching: *entry.matching,
            instructions: entry.instructions.clone(),
        })
    }

    fn references(&mut self, group: u32) -> u32 {
        self.pipeline.entries().filter(|entry| entry.instructions.has_group(group)).count() as u32
    }

    fn group_stats(&mut self, number: u32, group: &Group) -> GroupStats {
        GroupStats {
            group: number,
            references: self.references(number),
            packets: group.counters.packets,
            bytes: group.counters.bytes,
            age: Duration::ZERO,
            buckets: group.buckets.iter().map(|(_, counters)| (counters.packets, counters.bytes)).collect(),
        }
    }

    fn meters(&self, number: Option<u32>) -> Result<Vec<(u32, &Meter)>, ErrorCode> {
        let all = self.meters.iter().filter(|(meter, _)| number.is_none_or(|number| number == *meter));
        let found: Vec<_> = all.collect();
        if number.is_some() && found.is_empty() {
            return Err(ErrorCode::MMFC_UNKNOWN_METER);
        }
        Ok(found)
    }
}

impl Datapath for Software {
    fn features(&self) -> Features {
        Features { datapath: 0x42, buffers: 0, tables: 64, auxiliary: 0, capabilities: 0b1111 }
    }

    fn change_flows(&mut self, change: &Change, now: Duration) -> Result<(), ErrorCode> {
        if !matches!(change.command, Command::Delete | Command::DeleteStrict) {
            self.check(&change.instructions.apply)?;
            self.check(&change.instructions.write)?;
            if change.instructions.meter.is_some_and(|meter| self.meters.get(meter).is_none()) {
                return Err(ErrorCode::MMFC_UNKNOWN_METER);
            }
        }
        let done = self.pipeline.apply(change, now)?;
        self.note_removed(&done.removed, None);
        Ok(())
    }

    fn change_groups(&mut self, change: &GroupMod, now: Duration) -> Result<(), ErrorCode> {
        match change.clone() {
            GroupMod::Add { group, group_type, buckets } => self.groups.add(group, group_type, buckets)?,
            GroupMod::Modify { group, group_type, buckets } => {
                self.groups.modify(group, group_type, buckets)?;
            }
            GroupMod::Delete(Some(group)) => {
                self.groups.remove(group)?;
                self.delete_entries_of_group(Some(group), now);
            }
            GroupMod::Delete(None) => {
                self.delete_entries_of_group(None, now);
                self.groups.clear();
            }
        }
        Ok(())
    }

    fn change_meters(&mut self, change: &MeterMod, now: Duration) -> Result<(), ErrorCode> {
        match change.clone() {
            MeterMod::Add(meter, definition) => self.meters.add(meter, definition, now)?,
            MeterMod::Modify(meter, definition) => self.meters.modify(meter, definition, now)?,
            MeterMod::Delete(meter) => {
                self.delete_entries_of_meter(meter, now);
                let all: Vec<u32> = self.meters.iter().map(|(number, _)| number).collect();
                for number in all.into_iter().filter(|number| meter.is_none_or(|meter| meter == *number)) {
                    self.meters.remove(number);
                }
            }
        }
        Ok(())
    }

    fn change_port(&mut self, change: &PortMod) -> Result<(), ErrorCode> {
        let found = self.ports.iter_mut().find(|port| port.number == change.port);
        let port = found.ok_or(ErrorCode::PMFC_BAD_PORT)?;
        if port.address != change.address {
            return Err(ErrorCode::PMFC_BAD_HW_ADDR);
        }
        port.config = port.config & !change.mask | change.config & change.mask;
        let status = PortStatus { reason: PortStatusReason::Modify, port: port.clone() };
        self.events.push(Event::Port(status));
        Ok(())
    }

    fn packet_out(
        &mut self,
        in_port: u32,
        actions: &[PacketOutAction],
        frame: &[u8],
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let origin = (PacketInReason::Action, 0, u64::MAX);
        let mut frame = frame.to_vec();
        let parts = actions.split_inclusive(|action| *action == PacketOutAction::Table);
        for part in parts {
            let plain = part.iter().filter_map(|action| match action {
                PacketOutAction::Perform(action) => Some(*action),
                PacketOutAction::Table => None,
            });
            let plain: Vec<Action> = plain.collect();
            self.check(&plain)?;
            let operations: Vec<Operation> = plain.into_iter().map(Operation::Action).collect();
            frame = self.run(&operations, &frame, in_port, origin, now);
            if part.last() == Some(&PacketOutAction::Table) {
                self.arrive(in_port, &frame, now);
            }
        }
        Ok(())
    }

    fn report(&mut self, request: &MultipartRequest, from: u64, now: Duration) -> Result<Report, ErrorCode> {
        let reply = match request {
            MultipartRequest::Description => MultipartReply::Description(Description {
                manufacturer: "Clickbox".into(),
                software: "software switch of the tests".into(),
                ..Description::default()
            }),
            MultipartRequest::Flow(selection) => {
                let flows: Vec<_> = self.selected(*selection, now).skip(from as usize).take(PAGE).collect();
                let next = (flows.len() == PAGE).then_some(from + PAGE as u64);
                return Ok(Report { reply: MultipartReply::Flow(flows), next });
            }
            MultipartRequest::Aggregate(selection) => {
                let sum = self.selected(*selection, now).fold(Aggregate::default(), |sum, flow| Aggregate {
                    packets: sum.packets + flow.packets,
                    bytes: sum.bytes + flow.bytes,
                    flows: sum.flows + 1,
                });
                MultipartReply::Aggregate(sum)
            }
            MultipartRequest::Table => {
                let stats = |table: u8| {
                    let counters = self.pipeline.table_counters(table).expect("a table");
                    let active = counters.active as u32;
                    TableStats { table, active, lookups: counters.lookups, matches: counters.matches }
                };
                MultipartReply::Table((0..64).map(stats).collect())
            }
            MultipartRequest::PortStats(number) => {
                let ports = self.ports.iter().map(|port| port.number);
                let found: Vec<_> = ports
                    .filter(|port| number.is_none_or(|number| number == *port))
                    .map(|port| PortStats { port, age: now, ..PortStats::default() })
                    .collect();
                if number.is_some() && found.is_empty() {
                    return Err(ErrorCode::BRC_BAD_PORT);
                }
                MultipartReply::PortStats(found)
            }
            MultipartRequest::Queue { port, queue } => {
                if port.is_some_and(|port| self.ports.iter().all(|known| known.number != port)) {
                    return Err(ErrorCode::QOFC_BAD_PORT);
                }
                if queue.is_some() {
                    return Err(ErrorCode::QOFC_BAD_QUEUE);
                }
                MultipartReply::Queue(Vec::new())
            }
            MultipartRequest::Group(number) => {
                let groups: Vec<_> =
                    self.groups.iter().map(|(number, group)| (number, group.clone())).collect();
                let wanted = groups.iter().filter(|(group, _)| number.is_none_or(|number| number == *group));
                MultipartReply::Group(
                    wanted.map(|(number, group)| self.group_stats(*number, group)).collect(),
                )
            }
            MultipartRequest::GroupDescription => {
                let describe = |(group, found): (u32, &Group)| GroupDescription {
                    group,
                    group_type: found.group_type,
                    buckets: found.buckets.iter().map(|(bucket, _)| bucket.clone()).collect(),
                };
                MultipartReply::GroupDescription(self.groups.iter().map(describe).collect())
            }
            MultipartRequest::GroupFeatures => MultipartReply::GroupFeatures(GroupFeatures::of_groups()),
            MultipartRequest::Meter(number) => {
                let stats = |(meter, found): (u32, &Meter)| MeterStats {
                    meter,
                    flows: 0,
                    packets: found.counters.packets,
                    bytes: found.counters.bytes,
                    age: now.saturating_sub(found.created),
                    bands: found.bands.iter().map(|band| (band.packets, band.bytes)).collect(),
                };
                MultipartReply::Meter(self.meters(*number)?.into_iter().map(stats).collect())
            }
            MultipartRequest::MeterConfig(number) => {
                let describe = |(meter, found): (u32, &Meter)| MeterConfig {
                    meter,
                    definition: found.definition.clone(),
                };
                MultipartReply::MeterConfig(self.meters(*number)?.into_iter().map(describe).collect())
            }
            MultipartRequest::MeterFeatures => MultipartReply::MeterFeatures(MeterFeatures::of_meters()),
            MultipartRequest::TableFeatures(_) => {
                let table = from as u8;
                let features = vec![TableFeatures::of_pipeline(table, MAX_ENTRIES as u32)];
                let next = (table < 63).then_some(from + 1);
                return Ok(Report { reply: MultipartReply::TableFeatures(features), next });
            }
            MultipartRequest::PortDescription => MultipartReply::PortDescription(self.ports.clone()),
        };
        Ok(Report::whole(reply))
    }

    fn queues(&mut self, port: Option<u32>) -> Result<Vec<Queue>, ErrorCode> {
        match port {
            Some(port) if self.ports.iter().all(|known| known.number != port) => {
                Err(ErrorCode::QOFC_BAD_PORT)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn events(&mut self, now: Duration) -> Vec<Event> {
        let expired = self.pipeline.expire(now, 256);
        self.note_removed(&expired, None);
        std::mem::take(&mut self.events)
    }
}
