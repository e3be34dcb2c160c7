//! What the agent does for the OpenFlow controllers of steering switches. It may be hostile: everything is checked here or by
//! the switch, and what one request costs is bounded.

use super::attach::Network;
use super::controller_news::{ControllerNews, controller_news};
use super::flows::{all_steering, malformed};
use super::records::{AgentRecord, PortRecord, SwitchRecord};
use crate::error::OperationError;
use flow_table::{Action, Field, Group, GroupCounters, Match, Meter, MeterCounters, Output, port_number};
use model::{OpenFlowPort, SwitchMode, SwitchName};
use openflow::ErrorCode;
use openflow::message::{
    Aggregate, Description, FlowRemoved, FlowSelection, FlowStats, GroupDescription, GroupFeatures, GroupMod,
    GroupStats, Message, MeterConfig, MeterFeatures, MeterMod, MeterStats, MultipartReply, MultipartRequest,
    PacketIn, PacketInReason, PacketOut, PacketOutAction, Port, PortMod, PortStats, PortStatus,
    PortStatusReason, TableFeatures, TableStats,
};
use openflow::session::Report;
use packet::MacAddr;
use protocol::agent::ControllerState;
use sandbox::EventFd;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::driver::LinkState;
use switch::{
    ControlError, ControllerPacket, Counters, FailMode, ForwardingMode, PacketOutStep, PacketReason,
    PortConfig, PortId, PortKey, Shards, SteeringShards,
};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Places of entries that are looked at for a part of a report.
const ENTRIES_OF_PART: u32 = 128;

/// Groups or meters of a part of a report: a group may have 1,024 buckets.
const GROUPS_OF_PART: usize = 16;

/// Packets and reports that the agent gets at once.
const MAX_EVENTS: usize = 64;

/// What a controller can configure of a port (`OFPPC_*` of OpenFlow 1.0, which has more bits): that it is down, receives nothing but
/// frames of spanning trees, receives none of these, is not flooded, sends nothing, and that its packets are not sent to controllers if
/// no entry matches them.
const PORT_DOWN: u32 = 1;
const NO_RECEIVE: u32 = 1 << 2;
const NO_RECEIVE_STP: u32 = 1 << 3;
const NO_FLOOD: u32 = 1 << 4;
const NO_FORWARD: u32 = 1 << 5;
const NO_PACKET_IN: u32 = 1 << 6;

/// A port that is up (`OFPPS_LIVE`), and one that is down (`OFPPS_LINK_DOWN`).
const LIVE: u32 = 4;
const LINK_DOWN: u32 = 1;

/// Time between two looks at the links of a switch's ports. A look costs a system call for each port with a device.
const LINK_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Why a request of the agent is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentFault {
    /// There is no such switch any more.
    NoSwitch,
    /// The controller is told so.
    Refused(ErrorCode),
}

impl From<ErrorCode> for AgentFault {
    fn from(code: ErrorCode) -> Self {
        Self::Refused(code)
    }
}

impl From<ControlError> for AgentFault {
    fn from(error: ControlError) -> Self {
        Self::Refused(match error {
            ControlError::Flow(error) => error.into(),
            ControlError::Group(error) => error.into(),
            ControlError::Meter(error) => error.into(),
            ControlError::NoGroup(_) => ErrorCode::BAC_BAD_OUT_GROUP,
            ControlError::BadPort(_) => ErrorCode::BAC_BAD_OUT_PORT,
            ControlError::NoMeter(_) => ErrorCode::MMFC_UNKNOWN_METER,
            _ => ErrorCode::BRC_EPERM,
        })
    }
}

/// A packet for controllers, and what an output action states of its length.
pub(crate) type PacketForController = (PacketIn, Option<u16>);

/// A switch that has controllers: its number and definition.
pub(crate) type ControlledSwitch = (u64, model::CreateSwitch);

impl Network {
    /// Connects a new switch to what wakes the agent, if it has controllers.
    pub(super) fn prepare_controllers(&mut self, number: u64) {
        let bell: Arc<EventFd> = self.agent_bell.clone();
        let Ok((record, mut steering, _)) = self.controlled(number) else { return };
        let mode = match record.definition.fail_mode {
            model::FailMode::Secure => FailMode::Secure,
            model::FailMode::Standalone => FailMode::Standalone,
        };
        bell.ring();
        steering.set_controllers(mode, move || bell.ring());
    }

    /// What is signalled when something waits for the agent.
    pub(crate) fn agent_bell(&self) -> Arc<EventFd> {
        self.agent_bell.clone()
    }

    /// The switches that have controllers.
    pub(crate) fn controlled_switches(&self) -> Vec<ControlledSwitch> {
        let controlled = self.switches.iter().filter(|record| is_controlled(record));
        controlled.map(|record| (record.number, record.definition.clone())).collect()
    }

    fn controlled(
        &mut self,
        number: u64,
    ) -> Result<(&mut SwitchRecord, SteeringShards<'_>, u64), AgentFault> {
        let (record, runner) = self.controlled_runner(number)?;
        let now = runner.now();
        let steering = shards(record, runner)?;
        Ok((record, steering, now))
    }

    fn controlled_runner(
        &mut self,
        number: u64,
    ) -> Result<(&mut SwitchRecord, &mut Shards<ForwardingMode>), AgentFault> {
        let mut found = self.switches.iter_mut().zip(self.runners.iter_mut().skip(1));
        found.find(|(record, _)| record.number == number && is_controlled(record)).ok_or(AgentFault::NoSwitch)
    }

    /// Performs a message of a controller.
    pub(crate) fn perform_message(&mut self, number: u64, message: Message) -> Result<(), AgentFault> {
        if let Message::PacketOut(packet) = message {
            return self.packet_out(number, &packet);
        }
        if let Message::PortMod(change) = message {
            return self.configure_port(number, &change);
        }
        let (_, mut steering, now) = self.controlled(number)?;
        match message {
            // The agent keeps the packets that a change names.
            Message::FlowMod(change) => Ok(steering.change_entries(&change.change, now)?),
            Message::GroupMod(GroupMod::Add { group, group_type, buckets }) => {
                Ok(steering.add_group(group, group_type, &buckets, now)?)
            }
            Message::GroupMod(GroupMod::Modify { group, group_type, buckets }) => {
                Ok(steering.modify_group(group, group_type, &buckets)?)
            }
            Message::GroupMod(GroupMod::Delete(group)) => Ok(steering.remove_group(group, now)?),
            Message::MeterMod(MeterMod::Add(meter, definition)) => {
                Ok(steering.add_meter(meter, definition, now)?)
            }
            Message::MeterMod(MeterMod::Modify(meter, definition)) => {
                Ok(steering.modify_meter(meter, definition, now)?)
            }
            Message::MeterMod(MeterMod::Delete(meter)) => {
                steering.remove_meter(meter, now);
                Ok(())
            }
            _ => Err(ErrorCode::BRC_BAD_TYPE.into()),
        }
    }

    /// Configures a port (OpenFlow 1.3.5, 7.3.4.3). Those of services, chains and instances are not a controller's.
    fn configure_port(&mut self, number: u64, change: &PortMod) -> Result<(), AgentFault> {
        let (record, runner) = self.controlled_runner(number)?;
        check_port_mod(&ports(record, runner), change)?;
        let named = record.ports.keys().find(|name| {
            let number = record.port_numbers.get(name).map(u32::from);
            number == Some(change.port) && record.instance_at(name).is_none()
        });
        let Some((name, key)) = named.and_then(|name| Some((name.clone(), record.port_numbers.get(name)?)))
        else {
            return if change.config & change.mask == 0 {
                Ok(())
            } else {
                Err(ErrorCode::PMFC_BAD_CONFIG.into())
            };
        };
        let Some(port) = record.ports.get_mut(&name) else { return Ok(()) };
        port.config = port.config & !change.mask | change.config & change.mask;
        let (id, has) = (port.id, |bits: u32| port.config & bits != 0);
        let config = PortConfig {
            no_receive: has(PORT_DOWN | NO_RECEIVE),
            no_receive_stp: has(PORT_DOWN | NO_RECEIVE_STP),
            no_send: has(PORT_DOWN | NO_FORWARD),
            no_flood: has(NO_FLOOD),
            no_packet_in: has(NO_PACKET_IN),
        };
        runner.set_port_config(id, config);
        shards(record, runner)?.set_reported(PortKey(key), !config.no_packet_in);
        // The controllers hear of the change.
        self.agent_bell.ring();
        Ok(())
    }

    fn packet_out(&mut self, number: u64, packet: &PacketOut) -> Result<(), AgentFault> {
        let (record, runner) = self.controlled_runner(number)?;
        let now = runner.now();
        let ids: BTreeMap<PortKey, PortId> = port_ids(record);
        let key = u16::try_from(packet.in_port).ok().map(PortKey);
        let from = key.and_then(|key| ids.get(&key).copied());
        // Entries can match what comes from a controller (OpenFlow 1.3.5, 4.5).
        let is_ingress = |port: u32| port <= port_number::MAX || port == port_number::CONTROLLER;
        let in_port = Some(packet.in_port).filter(|port| is_ingress(*port));
        let steps: Vec<PacketOutStep> = packet
            .actions
            .iter()
            .map(|action| match action {
                PacketOutAction::Perform(action) => PacketOutStep::Perform(*action),
                PacketOutAction::Table => PacketOutStep::Table,
            })
            .collect();
        // Devices refuse frames without an Ethernet header.
        if !(ETHERNET..=switch::MAX_FRAME).contains(&packet.data.len()) {
            return Err(ErrorCode::BRC_BAD_PACKET.into());
        }
        shards(record, runner)?.check_packet_out(&steps)?;
        runner.inject(&packet.data, from, |forward, outcome| {
            if let ForwardingMode::Steering(steering) = forward {
                steering.packet_out(in_port, &steps, &packet.data, now, outcome);
            }
        });
        Ok(())
    }

    /// Answers a multipart request, from a part on.
    pub(crate) fn report_part(
        &mut self,
        number: u64,
        request: &MultipartRequest,
        from: u64,
    ) -> Result<Report, AgentFault> {
        let (record, runner) = self.controlled_runner(number)?;
        let now = Duration::from_nanos(runner.now());
        let first = u32::try_from(from).unwrap_or(u32::MAX);
        match request {
            MultipartRequest::Description => {
                let text = |text: &str| text.to_string();
                return Ok(Report::whole(MultipartReply::Description(Description {
                    manufacturer: text("Clickbox"),
                    hardware: text("software switch"),
                    software: text(concat!("clickbox ", env!("CARGO_PKG_VERSION"))),
                    datapath: record.name.to_string(),
                    ..Description::default()
                })));
            }
            MultipartRequest::PortDescription => {
                look_at_links(record, runner);
                let ports = ports(record, runner).into_values().collect();
                return Ok(Report::whole(MultipartReply::PortDescription(ports)));
            }
            MultipartRequest::PortStats(port) => {
                let stats = port_stats(record, runner, *port)?;
                return Ok(Report::whole(MultipartReply::PortStats(stats)));
            }
            MultipartRequest::Queue { port, queue } => {
                check_port(record, *port).map_err(|()| ErrorCode::QOFC_BAD_PORT)?;
                return match queue {
                    Some(_) => Err(ErrorCode::QOFC_BAD_QUEUE.into()),
                    None => Ok(Report::whole(MultipartReply::Queue(Vec::new()))),
                };
            }
            _ => {}
        }
        let mut steering = shards(record, runner)?;
        Ok(match request {
            MultipartRequest::Flow(selection) => {
                let mut flows = Vec::new();
                let next = steering.entries_from(first, ENTRIES_OF_PART, |entry| {
                    if selection.selects(&entry) {
                        flows.push(flow_stats(&entry, now));
                    }
                });
                Report { reply: MultipartReply::Flow(flows), next: next.map(u64::from) }
            }
            MultipartRequest::Aggregate(selection) => {
                Report::whole(MultipartReply::Aggregate(aggregate(&mut steering, selection)))
            }
            MultipartRequest::Table => {
                let tables = (0..).zip(steering.table_counters()).map(|(table, counters)| TableStats {
                    table,
                    active: counters.active as u32,
                    lookups: counters.lookups,
                    matches: counters.matches,
                });
                Report::whole(MultipartReply::Table(tables.collect()))
            }
            MultipartRequest::Group(group) => {
                let uses = group_uses(&mut steering);
                let chosen =
                    |(number, ..): &(u32, &Group, Duration)| group.is_none_or(|group| group == *number);
                let mut groups = steering.groups_from(first).filter(chosen);
                let stats = |(group, _, created): (u32, &Group, Duration)| {
                    let (GroupCounters { packets, bytes }, buckets) = steering.group_counters(group);
                    GroupStats {
                        group,
                        references: uses.get(&group).copied().unwrap_or(0),
                        packets,
                        bytes,
                        age: now.saturating_sub(created),
                        buckets: buckets.iter().map(|found| (found.packets, found.bytes)).collect(),
                    }
                };
                let list = groups.by_ref().take(GROUPS_OF_PART).map(stats).collect();
                let next = groups.next().map(|(number, ..)| number.into());
                Report { reply: MultipartReply::Group(list), next }
            }
            MultipartRequest::GroupDescription => {
                let mut groups = steering.groups_from(first);
                let describe = |(group, found, _): (u32, &Group, Duration)| GroupDescription {
                    group,
                    group_type: found.group_type,
                    buckets: found.buckets.iter().map(|(bucket, _)| bucket.clone()).collect(),
                };
                let list = groups.by_ref().take(GROUPS_OF_PART).map(describe).collect();
                let next = groups.next().map(|(number, ..)| number.into());
                Report { reply: MultipartReply::GroupDescription(list), next }
            }
            MultipartRequest::GroupFeatures => {
                Report::whole(MultipartReply::GroupFeatures(GroupFeatures::of_groups()))
            }
            MultipartRequest::Meter(meter) => {
                let uses = meter_uses(&mut steering);
                let mut meters = steering
                    .meters_from(first)
                    .filter(|(number, _)| meter.is_none_or(|meter| meter == *number));
                let stats = |(meter, found): (u32, &Meter)| {
                    let (MeterCounters { packets, bytes }, bands) = steering.meter_counters(meter);
                    MeterStats {
                        meter,
                        flows: uses.get(&meter).copied().unwrap_or(0),
                        packets,
                        bytes,
                        age: now.saturating_sub(found.created),
                        bands: bands.iter().map(|band| (band.packets, band.bytes)).collect(),
                    }
                };
                let list: Vec<MeterStats> = meters.by_ref().take(GROUPS_OF_PART).map(stats).collect();
                let next = meters.next().map(|(number, _)| number.into());
                if meter.is_some() && list.is_empty() {
                    return Err(ErrorCode::MMFC_UNKNOWN_METER.into());
                }
                Report { reply: MultipartReply::Meter(list), next }
            }
            MultipartRequest::MeterConfig(meter) => {
                let mut meters = steering
                    .meters_from(first)
                    .filter(|(number, _)| meter.is_none_or(|meter| meter == *number));
                let list: Vec<MeterConfig> = meters
                    .by_ref()
                    .take(GROUPS_OF_PART)
                    .map(|(meter, found)| MeterConfig { meter, definition: found.definition.clone() })
                    .collect();
                let next = meters.next().map(|(number, _)| number.into());
                if meter.is_some() && list.is_empty() {
                    return Err(ErrorCode::MMFC_UNKNOWN_METER.into());
                }
                Report { reply: MultipartReply::MeterConfig(list), next }
            }
            MultipartRequest::MeterFeatures => {
                Report::whole(MultipartReply::MeterFeatures(MeterFeatures::of_meters()))
            }
            MultipartRequest::TableFeatures(_) => {
                let table = u8::try_from(from).ok().filter(|table| usize::from(*table) < flow_table::TABLES);
                let table = table.ok_or(ErrorCode::BRC_BAD_TABLE_ID)?;
                let features = vec![TableFeatures::of_pipeline(table, steering.max_entries())];
                let next = (usize::from(table) + 1 < flow_table::TABLES).then_some(from + 1);
                Report { reply: MultipartReply::TableFeatures(features), next }
            }
            _ => return Err(ErrorCode::BRC_BAD_MULTIPART.into()),
        })
    }

    /// The same for the daemon, which names the switch.
    pub(crate) fn controller_report(
        &mut self,
        switch: &SwitchName,
        request: &MultipartRequest,
        from: u64,
    ) -> Result<Report, OperationError> {
        let (record, _) = self.record_and_runner(switch)?;
        let number = record.number;
        let refused = |_| malformed("a switch has no such report for controllers");
        self.report_part(number, request, from).map_err(refused)
    }

    /// What happened at a switch since the last call: packets, and messages about entries and ports.
    pub(crate) fn controller_events(
        &mut self,
        number: u64,
    ) -> Result<(Vec<PacketForController>, Vec<Message>), AgentFault> {
        let (record, runner) = self.controlled_runner(number)?;
        look_at_links(record, runner);
        let now = ports(record, runner);
        let before = std::mem::take(&mut record.agent.ports);
        let mut messages = Vec::new();
        // The ports of a switch are reported when they change, and not at first.
        if record.agent.states.is_some() {
            let mut note = |reason: PortStatusReason, port: &Port| {
                messages.push(Message::PortStatus(PortStatus { reason, port: port.clone() }));
            };
            for (number, port) in &now {
                match before.get(number) {
                    None => note(PortStatusReason::Add, port),
                    Some(known) if known != port => note(PortStatusReason::Modify, port),
                    Some(_) => {}
                }
            }
            before.iter().filter(|(number, _)| !now.contains_key(number)).for_each(|(_, port)| {
                note(PortStatusReason::Delete, port);
            });
        }
        let mut steering = shards(record, runner)?;
        let of_switch = |number: &u32| u16::try_from(*number).is_ok();
        for (number, port) in now.iter().filter(|(number, _)| of_switch(number)) {
            steering.set_port_up(PortKey(*number as u16), port.state == LIVE);
        }
        record.agent.ports = now;
        let removed = steering.take_removed(MAX_EVENTS);
        messages.extend(removed.iter().map(|removed| Message::FlowRemoved(FlowRemoved::from(removed))));
        let packets = steering.take_packets(MAX_EVENTS).into_iter().map(packet_in).collect();
        Ok((packets, messages))
    }

    /// Notes how the connections to the controllers of a switch are. Returns which ones came and went.
    pub(crate) fn set_controller_states(
        &mut self,
        number: u64,
        states: Vec<ControllerState>,
    ) -> Result<Vec<ControllerNews>, AgentFault> {
        let (record, mut steering, _) = self.controlled(number)?;
        steering.set_connected(states.iter().any(|state| state.role.is_some()));
        steering.set_gets_misses(states.iter().any(|state| state.role.is_some() && state.gets_misses));
        let now = Instant::now();
        let news = controller_news(&record.definition, &mut record.agent.reported, &states, now);
        record.agent.states = Some((states, now));
        Ok(news)
    }

    /// The agent has ended: no controller is connected any more.
    pub(crate) fn forget_agent(&mut self) {
        for (number, _) in self.controlled_switches() {
            if let Ok((record, mut steering, _)) = self.controlled(number) {
                steering.set_connected(false);
                steering.set_gets_misses(false);
                // The next one says which controllers it has lost.
                let reported = std::mem::take(&mut record.agent.reported);
                record.agent = AgentRecord { reported, ..AgentRecord::default() };
            }
        }
    }

    /// How the connections to the controllers of a switch are; empty if the agent does not say.
    pub(crate) fn controller_states(
        &mut self,
        switch: &SwitchName,
    ) -> Result<Vec<ControllerState>, OperationError> {
        let (record, _) = self.record_and_runner(switch)?;
        let Some((states, at)) = &record.agent.states else { return Ok(Vec::new()) };
        let passed = at.elapsed().as_secs();
        let later = |state: &ControllerState| ControllerState {
            since_seconds: state.since_seconds.saturating_add(passed),
            ..state.clone()
        };
        Ok(states.iter().map(later).collect())
    }
}

/// All shards of a switch.
fn shards<'a>(
    record: &SwitchRecord,
    runner: &'a mut Shards<ForwardingMode>,
) -> Result<SteeringShards<'a>, AgentFault> {
    all_steering(&record.name, runner).map(SteeringShards::new).map_err(|_| AgentFault::NoSwitch)
}

fn is_controlled(record: &SwitchRecord) -> bool {
    record.definition.mode == SwitchMode::Steering && !record.definition.controllers.is_empty()
}

fn port_ids(record: &SwitchRecord) -> BTreeMap<PortKey, PortId> {
    let of = |(name, port): (&model::PortName, &PortRecord)| {
        Some((PortKey(record.port_numbers.get(name)?), port.id))
    };
    sorting::collect(record.ports.iter().filter_map(of))
}

/// Notes which ports pass no frames because their device is down or has no carrier, or because no peer is connected.
fn look_at_links(record: &mut SwitchRecord, runner: &Shards<ForwardingMode>) {
    let now = Instant::now();
    let is_known = |looked: Instant| now.saturating_duration_since(looked) < LINK_LOOK_INTERVAL;
    if record.agent.looked.is_some_and(is_known) {
        return;
    }
    let is_unlinked = |port: &PortId| {
        let state = runner.link_state(*port);
        state.is_some_and(|state| !matches!(state, LinkState::Up | LinkState::Limited(_)))
    };
    let ports = record.ports.values().map(|port| port.id);
    (record.agent.unlinked, record.agent.looked) = (sorting::collect(ports.filter(is_unlinked)), Some(now));
}

/// The ports as controllers see them, by number: those of the switch, and one for each service and each chain.
fn ports(record: &SwitchRecord, runner: &Shards<ForwardingMode>) -> BTreeMap<u32, Port> {
    let [.., third, second, first] = record.number.to_be_bytes();
    let describe = |number: u32, name: String, config: u32, is_up: bool| {
        let [kind, _, high, low] = number.to_be_bytes();
        let described = Port {
            number,
            address: MacAddr([2 | third << 2, second, first, kind, high, low]),
            name,
            config,
            // One that is configured to be down has its link, but is not live.
            state: match is_up {
                true if config & PORT_DOWN != 0 => 0,
                true => LIVE,
                false => LINK_DOWN,
            },
            current: 0,
            advertised: 0,
            supported: 0,
            peer: 0,
            speed: 0,
            max_speed: 0,
        };
        (number, described)
    };
    let port = |(name, port): (&model::PortName, &PortRecord)| {
        let number = u32::from(record.port_numbers.get(name)?);
        let is_up = runner.down(port.id).is_none() && !record.agent.unlinked.contains(&port.id);
        Some(describe(number, name.to_string(), port.config, is_up))
    };
    let steered = record.services.outputs();
    let steered =
        steered.filter_map(|(output, port)| Some(describe(output.port_number()?, port.to_string(), 0, true)));
    sorting::collect(record.ports.iter().filter_map(port).chain(steered))
}

fn check_port(record: &SwitchRecord, port: Option<u32>) -> Result<(), ()> {
    let is_there = |port: u32| {
        let mut names = record.ports.keys().filter_map(|name| record.port_numbers.get(name));
        names.any(|number| u32::from(number) == port)
            || record.services.outputs().any(|(output, _)| output.port_number() == Some(port))
    };
    if port.is_none_or(is_there) { Ok(()) } else { Err(()) }
}

/// Checks a change of the configuration of a port. What a link advertises is not a controller's.
fn check_port_mod(ports: &BTreeMap<u32, Port>, change: &PortMod) -> Result<(), ErrorCode> {
    let port = ports.get(&change.port).ok_or(ErrorCode::PMFC_BAD_PORT)?;
    if port.address != change.address {
        return Err(ErrorCode::PMFC_BAD_HW_ADDR);
    }
    let known = PORT_DOWN | NO_RECEIVE | NO_RECEIVE_STP | NO_FLOOD | NO_FORWARD | NO_PACKET_IN;
    if change.config & change.mask & !known != 0 {
        return Err(ErrorCode::PMFC_BAD_CONFIG);
    }
    if change.advertise != 0 { Err(ErrorCode::PMFC_BAD_ADVERTISE) } else { Ok(()) }
}

/// The counters of ports as controllers see them: those of the switch, and one for each service and each chain.
fn port_stats(
    record: &SwitchRecord,
    runner: &mut Shards<ForwardingMode>,
    port: Option<u32>,
) -> Result<Vec<PortStats>, AgentFault> {
    check_port(record, port).map_err(|()| ErrorCode::BRC_BAD_PORT)?;
    let is_chosen = |number: u32| port.is_none_or(|port| port == number);
    let ports = port_ids(record).into_iter().map(|(key, id)| (u32::from(key.0), id));
    let mut all: Vec<PortStats> = ports
        .filter(|(number, _)| is_chosen(*number))
        .map(|(number, id)| stats_of_ports(number, &[id], Counters::default(), runner))
        .collect();
    for (output, steered) in record.services.outputs() {
        let Some(number) = output.port_number().filter(|number| is_chosen(*number)) else { continue };
        all.extend(match (output, steered) {
            (_, OpenFlowPort::Service(name)) => {
                let removed = record.services.removed_ports.get(&name).copied().unwrap_or_default();
                Some(stats_of_ports(number, &record.ports_of_service(&name), removed, runner))
            }
            (Output::Chain(chain), _) => Some(stats_of_chain(number, chain, record, runner)?),
            _ => None,
        });
    }
    sorting::sort_by_key(&mut all, |stats| stats.port);
    Ok(all)
}

/// The counters of a port, or of all ports of the instances of a service, with what its removed ones counted.
fn stats_of_ports(
    number: u32,
    ids: &[PortId],
    removed: Counters,
    runner: &mut Shards<ForwardingMode>,
) -> PortStats {
    let mut counters = removed;
    ids.iter().filter_map(|id| runner.counters(*id)).for_each(|of_port| counters += of_port);
    let to_port = [switch::Reason::FULL, switch::Reason::DOWN];
    let tx_dropped: u64 = to_port.into_iter().map(|reason| counters.dropped(reason)).sum();
    PortStats {
        rx_packets: counters.received_frames,
        tx_packets: counters.sent_frames,
        rx_bytes: counters.received_bytes,
        tx_bytes: counters.sent_bytes,
        rx_dropped: counters.drops.iter().sum::<u64>().saturating_sub(tx_dropped),
        tx_dropped,
        ..uncounted(number, runner)
    }
}

/// What entered a chain, as sent, and what left it, as received, in both directions. What its functions dropped is lost on the way
/// back, and what they were not given is lost on the way there.
fn stats_of_chain(
    number: u32,
    chain: u32,
    record: &SwitchRecord,
    runner: &mut Shards<ForwardingMode>,
) -> Result<PortStats, AgentFault> {
    let mut stats = PortStats {
        rx_packets: 0,
        tx_packets: 0,
        rx_bytes: 0,
        rx_dropped: 0,
        tx_dropped: 0,
        ..uncounted(number, runner)
    };
    for steering in all_steering(&record.name, runner).map_err(|_| AgentFault::NoSwitch)? {
        let (chain, chains) = (chain as u16, steering.chains());
        let (Some(books), Some(counters)) = (chains.books(chain), chains.counters(chain)) else { continue };
        stats.tx_packets += books.entered;
        stats.tx_dropped += books.no_instance + books.full + books.congested + books.overflowed;
        stats.rx_dropped += books.dropped;
        for left in counters.left {
            stats.rx_packets += left.packets;
            stats.rx_bytes += left.bytes;
        }
    }
    Ok(stats)
}

/// The counters of a port, none of which is kept.
fn uncounted(port: u32, runner: &Shards<ForwardingMode>) -> PortStats {
    PortStats {
        port,
        rx_packets: u64::MAX,
        tx_packets: u64::MAX,
        rx_bytes: u64::MAX,
        tx_bytes: u64::MAX,
        rx_dropped: u64::MAX,
        tx_dropped: u64::MAX,
        rx_errors: u64::MAX,
        tx_errors: u64::MAX,
        rx_frame_errors: u64::MAX,
        rx_over_errors: u64::MAX,
        rx_crc_errors: u64::MAX,
        collisions: u64::MAX,
        age: Duration::from_nanos(runner.now()),
    }
}

fn flow_stats(entry: &flow_table::Entry<'_>, now: Duration) -> FlowStats {
    FlowStats {
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
    }
}

fn aggregate(steering: &mut SteeringShards, selection: &FlowSelection) -> Aggregate {
    let mut sum = Aggregate::default();
    steering.entries_from(0, u32::MAX, |entry| {
        if selection.selects(&entry) {
            sum.packets += counted(entry.packets);
            sum.bytes += counted(entry.bytes);
            sum.flows += 1;
        }
    });
    sum
}

/// A counter for a sum: those that are not kept are left out.
fn counted(count: u64) -> u64 {
    if count == flow_table::NOT_COUNTED { 0 } else { count }
}

/// The number of entries and groups that lead to each group (OpenFlow 1.3.5, 7.3.5.9).
fn group_uses(steering: &mut SteeringShards) -> BTreeMap<u32, u32> {
    /// Counts what leads to each of the groups once, however often it names one.
    fn count<'a>(uses: &mut BTreeMap<u32, u32>, actions: impl Iterator<Item = &'a Action>) {
        let groups = actions.filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        });
        groups.collect::<BTreeSet<u32>>().into_iter().for_each(|group| *uses.entry(group).or_default() += 1);
    }
    let mut uses = BTreeMap::new();
    steering.entries_from(0, u32::MAX, |entry| {
        count(&mut uses, entry.instructions.apply.iter().chain(&entry.instructions.write));
    });
    for (_, group, _) in steering.groups_from(0) {
        count(&mut uses, group.buckets.iter().flat_map(|(bucket, _)| &bucket.actions));
    }
    uses
}

/// The number of entries that use each meter.
fn meter_uses(steering: &mut SteeringShards) -> BTreeMap<u32, u32> {
    let mut uses = BTreeMap::new();
    steering.entries_from(0, u32::MAX, |entry| {
        if let Some(meter) = entry.instructions.meter {
            *uses.entry(meter).or_default() += 1;
        }
    });
    uses
}

fn packet_in(packet: ControllerPacket) -> PacketForController {
    let port = packet.in_port.unwrap_or(port_number::CONTROLLER);
    let mut fields = Match::any();
    for (field, value) in [
        (Field::InPort, u128::from(port)),
        (Field::Metadata, packet.metadata.into()),
        (Field::TunnelId, packet.tunnel.into()),
    ] {
        if value != 0 {
            // Each value fits its field.
            fields = fields.with(field, value).unwrap_or(fields);
        }
    }
    let message = PacketIn {
        buffer: None,
        total_length: u16::try_from(packet.frame.len()).unwrap_or(u16::MAX),
        reason: match packet.reason {
            PacketReason::TableMiss => PacketInReason::NoMatch,
            PacketReason::Action => PacketInReason::Action,
            PacketReason::InvalidTtl => PacketInReason::InvalidTtl,
        },
        table: packet.table,
        cookie: packet.cookie,
        fields,
        data: packet.frame,
    };
    (message, packet.max_length)
}
