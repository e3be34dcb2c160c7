//! How many changes of flow entries an OpenFlow controller makes in a second, through a socket and the agent, while packets
//! pass the switch.

use super::controller::{Controller, Meeting, encoded};
use super::requests::{NewBox, create_box, name, number};
use crate::error::MeasureError;
use crate::kills::Processes;
use crate::statistics::{Times, microseconds, rounded};
use crate::tables::Table;
use crate::temporary_folder::TemporaryFolder;
use api::client::Client;
use api::{
    AddPort, BoxName, ControllerAddress, ControllerMethod, CreateBox, CreateService, CreateSwitch, Faces,
    HandlerWrite, Limits, Owner, PortDriver, PortName, Ring, Sandbox, ServiceName, SwitchMode, SwitchName,
    operation,
};
use flow_table::{Change, Command, Field, Instructions, Match, MatchError, Output};
use openflow::message::{FlowMod, Message};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The switch, its port that receives all packets, and the box that sends them.
const SWITCH: &str = "lan";
const SINK: &str = "sink";
const SOURCE: &str = "source";

/// The hardware address of the source.
const MAC: &str = "02:00:00:00:00:01";

/// Entries that are added with one barrier.
const ENTRIES_OF_BARRIER: usize = 500;

/// Priorities of the entry for all packets, of the entries that stay, and of those that come and go.
const OF_ALL: u16 = 1;
const STAYING: u16 = 2;
const CHANGING: u16 = 3;

/// The time before the changes in which flows become known to the cache.
const WARM_UP: Duration = Duration::from_millis(500);

/// How long the last packets may take to the sink.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct RuleChangesScope {
    /// Entries that the switch has meanwhile.
    pub rules: u32,
    /// Services of the switch, without instances.
    pub services: u32,
    /// Flows of the packets.
    pub flows: u32,
    /// Packets a second.
    pub rate: u32,
    /// Changes.
    pub changes: u32,
    /// Changes for each barrier.
    pub batch: u32,
}

/// Changes of flow entries by a controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RuleChanges {
    /// Entries of the switch.
    pub rules: u32,
    /// Services of the switch.
    pub services: u32,
    /// Flows of the packets.
    pub flows: u32,
    /// Changes for each barrier. The next ones are sent when it is answered.
    pub batch: u32,
    /// Changes a second, each of which was performed.
    #[serde(serialize_with = "rounded")]
    pub changes_per_second: f64,
    /// From the first of these changes to the answer to their barrier.
    pub barrier_us: Times,
    /// Packets a second that the switch looked up meanwhile.
    #[serde(serialize_with = "rounded")]
    pub packets_per_second: f64,
    /// Share of them whose decision the cache had.
    #[serde(serialize_with = "rounded")]
    pub hit_rate: f64,
    /// Packets that the source has sent in all.
    pub sent: u64,
    /// Those that did not arrive at the sink.
    pub lost: u64,
}

impl Table for RuleChanges {
    fn head() -> String {
        format!(
            "{:>8} {:>8} {:>8} {:>6} {:>10} {:>9} {:>9} {:>10} {:>9} {:>9} {:>6}",
            "rules",
            "services",
            "flows",
            "batch",
            "changes/s",
            "p50 us",
            "p99 us",
            "packets/s",
            "hits",
            "sent",
            "lost"
        )
    }

    fn lines(&self) -> String {
        format!(
            "{:>8} {:>8} {:>8} {:>6} {:>10.0} {:>9.1} {:>9.1} {:>10.0} {:>7.2} % {:>9} {:>6}\n",
            self.rules,
            self.services,
            self.flows,
            self.batch,
            self.changes_per_second,
            self.barrier_us.p50,
            self.barrier_us.p99,
            self.packets_per_second,
            self.hit_rate * 100.0,
            self.sent,
            self.lost
        )
    }
}

/// Starts `program daemon` with a steering switch, and changes its entries as a controller.
pub fn rule_changes(program: &Path, scope: RuleChangesScope) -> Result<RuleChanges, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let mut processes = Processes::new(program, folder.path());
    processes.start().map_err(MeasureError::Daemon)?;
    let client = processes.client()?;
    let meeting = Meeting::new()?;
    create_switch(&client, &meeting)?;
    for number in 0..scope.services {
        create_service(&client, number)?;
    }
    let mut controller = meeting.wait()?;
    let sink = sink_number(&client)?;
    add_entries(&mut controller, scope.rules, sink)?;

    create_source(&client, scope)?;
    sleep(WARM_UP);
    let (before, begin) = (counters(&client)?, Instant::now());
    let mut times = Vec::new();
    let changes: Vec<u32> = (0..scope.changes).collect();
    for batch in changes.chunks(scope.batch.max(1) as usize) {
        let mut messages = Vec::new();
        for number in batch {
            messages.extend(entry_change(*number, sink)?);
        }
        messages.extend(encoded(&Message::BarrierRequest));
        let begin = Instant::now();
        controller.send(&messages)?;
        controller.performed()?;
        times.push(microseconds(begin.elapsed()));
    }
    let (took, after) = (begin.elapsed().as_secs_f64(), counters(&client)?);

    let stop = HandlerWrite { value: "false".into() };
    client.send(&operation::WRITE, &[SOURCE, "pace.active"], &stop)?;
    sleep(SETTLE_TIME);
    let (sent, arrived) = (number(&client, SOURCE, "c.count")?, counters(&client)?.arrived);
    let lookups = after.lookups - before.lookups;
    Ok(RuleChanges {
        rules: scope.rules,
        services: scope.services,
        flows: scope.flows,
        batch: scope.batch,
        changes_per_second: f64::from(scope.changes) / took,
        barrier_us: Times::of(&times),
        packets_per_second: lookups as f64 / took,
        hit_rate: (after.hits - before.hits) as f64 / lookups.max(1) as f64,
        sent,
        lost: sent.saturating_sub(arrived),
    })
}

fn create_switch(client: &Client, meeting: &Meeting) -> Result<(), MeasureError> {
    let sink = AddPort {
        name: name::<PortName>(SINK)?,
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    let controller = ControllerAddress { method: ControllerMethod::Tcp, address: meeting.address()? };
    let request = CreateSwitch {
        mode: SwitchMode::Steering,
        ports: vec![sink],
        controllers: vec![controller],
        ..CreateSwitch::new(name::<SwitchName>(SWITCH)?)
    };
    client.send(&operation::CREATE_SWITCH, &[], &request)?;
    Ok(())
}

/// Creates a service that functions could join.
fn create_service(client: &Client, number: u32) -> Result<(), MeasureError> {
    let service = format!("service{number}");
    let request = CreateService {
        name: name::<ServiceName>(&service)?,
        switch: name(SWITCH)?,
        instance: CreateBox::new(name::<BoxName>(&service)?, ""),
        faces: Faces::default(),
        replicas: 1,
        auto: None,
        dead_after_ms: None,
        container: true,
        places: Some(1),
        trust_pool: false,
        may_send_to: BTreeSet::new(),
        translation: None,
    };
    client.send(&operation::CREATE_SERVICE, &[], &request)?;
    Ok(())
}

/// Creates a box that sends packets of random flows.
fn create_source(client: &Client, scope: RuleChangesScope) -> Result<(), MeasureError> {
    let RuleChangesScope { flows, rate, .. } = scope;
    let configuration = format!(
        "FastUDPFlows(0, -1, 60, {MAC}, 10.0.0.1, 02:00:00:00:00:02, 10.0.0.2, {flows}, {}) -> pace :: RatedUnqueue({rate})\n\
         -> c :: Counter -> ToDevice(0);\nFromDevice(0) -> Discard;",
        u32::MAX >> 1
    );
    create_box(
        client,
        NewBox {
            name: SOURCE,
            owner: Owner::default(),
            port: Some((SWITCH, MAC)),
            configuration,
            ring: Ring::try_from(2048).unwrap_or_default(),
            sandbox: Sandbox::Auto,
        },
    )
}

/// What the switch has counted.
struct Counters {
    lookups: u64,
    hits: u64,
    /// Packets that left through the sink.
    arrived: u64,
}

fn counters(client: &Client) -> Result<Counters, MeasureError> {
    let shown = client.ask(&operation::SHOW_SWITCH, &[SWITCH])?;
    let steering = shown.status.steering.unwrap_or_default();
    let sink = shown.port_list.iter().find(|port| port.name.as_str() == SINK);
    Ok(Counters {
        lookups: steering.lookups,
        hits: steering.cache_hits,
        arrived: sink.map_or(0, |port| port.traffic.sent_packets),
    })
}

/// The number of the sink in OpenFlow.
fn sink_number(client: &Client) -> Result<u32, MeasureError> {
    let shown = client.ask(&operation::SHOW_SWITCH, &[SWITCH])?;
    let sink = shown.port_list.iter().find(|port| port.name.as_str() == SINK);
    sink.and_then(|port| port.openflow).ok_or(MeasureError::Late { what: "the number of a port" })
}

/// Adds an entry for all packets, and entries for single source ports.
fn add_entries(controller: &mut Controller, count: u32, sink: u32) -> Result<(), MeasureError> {
    let all = change(Command::Add, Match::any(), OF_ALL, sink);
    controller.send(&all)?;
    let ports: Vec<u32> = (1..count).collect();
    for part in ports.chunks(ENTRIES_OF_BARRIER) {
        let mut messages = Vec::new();
        for port in part {
            messages.extend(change(Command::Add, of_source_port(*port)?, STAYING, sink));
        }
        controller.send(&messages)?;
        controller.barrier()?;
    }
    Ok(())
}

/// The addition or removal of an entry for one source port, which packets of one flow may have.
fn entry_change(number: u32, sink: u32) -> Result<Vec<u8>, MeasureError> {
    let command = if number.is_multiple_of(2) { Command::Add } else { Command::DeleteStrict };
    // All ports come, but not those beside each other.
    let port = (number / 2).wrapping_mul(40_503);
    Ok(change(command, of_source_port(port)?, CHANGING, sink))
}

fn change(command: Command, matching: Match, priority: u16, sink: u32) -> Vec<u8> {
    let mut change = Change::new(command, matching, priority);
    if command == Command::Add {
        change.instructions = Instructions::output(Output::Port(sink));
    }
    encoded(&Message::FlowMod(FlowMod { change, buffer: None }))
}

fn of_source_port(port: u32) -> Result<Match, MatchError> {
    let udp = Match::any().with(Field::EthType, 0x0800)?.with(Field::IpProto, 17)?;
    udp.with(Field::UdpSrc, (port & 0xffff).into())
}
