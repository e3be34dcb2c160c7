//! Simulates operations of which a step or the commit fails, or whose fabric ends: the fabric, the supervisor and the store
//! then agree with each other and with what was before. `CLICKBOX_TEST_SCHEDULES` is the number of operations,
//! `CLICKBOX_TEST_SEED` repeats a run.

use super::state::Supervisor;
use super::test_bed::{TestBed, process, until};
use crate::error::OperationError;
use crate::fabric::{Fault, plan_fault};
use crate::store::{StoredBox, StoredFlow, StoredSwitch};
use api::{
    AddFlow, AddPort, AddressKind, Attachment, BoxName, ChainName, ConfigurationName, CreateBox, CreateChain,
    CreateService, CreateSwitch, ExternalSwitch, HandlerPath, Install, Limits, MacAddr, OpenFlowPort,
    PortDriver, PortName, PortRequest, ScaleService, ServiceName, Stack, StackName, SwitchMode, SwitchName,
    Time,
};
use protocol::fabric::{InventoryReply, Phase, orders};
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

/// Switches, and stacks.
const NAMES: u32 = 4;

/// Boxes.
const BOXES: u32 = 3;

/// Configurations, of which the last is refused, and rules for the handler of the others.
const TEXTS: [&str; 3] = [
    "Idle -> f :: IPFilter(allow all) -> Discard; // one",
    "Idle -> f :: IPFilter(allow all) -> Discard; // two",
    "Idle -> f :: IPFilter(maybe all) -> Discard;",
];
const RULES: [&str; 3] = ["allow udp", "deny all", "perhaps"];

/// Objects by name, each as lines of text.
type Objects = BTreeMap<String, Vec<String>>;

/// Switches or boxes in the fabric, in the supervisor and in the store.
#[derive(Debug, PartialEq)]
struct Views {
    real: Objects,
    held: Objects,
    stored: Objects,
}

fn port(name: String, driver: PortDriver, address: Option<MacAddr>) -> AddPort {
    let addresses = address.into_iter().collect();
    AddPort { name: name.parse().unwrap(), driver, addresses, default: false, limits: Limits::default() }
}

fn switch_name(random: &mut Random) -> SwitchName {
    format!("lan{}", random.below(NAMES)).parse().unwrap()
}

/// The name of a switch, which exists more often than not. `is_steering`: the switch is a steering one, if there is one.
fn switch_that_may_exist(supervisor: &Supervisor, random: &mut Random, is_steering: bool) -> SwitchName {
    let switches = supervisor.0.switches();
    let wanted = |stored: &&StoredSwitch| !is_steering || stored.definition.mode == SwitchMode::Steering;
    let names: Vec<_> =
        switches.values().filter(wanted).map(|stored| stored.definition.name.clone()).collect();
    match random.below(4) {
        1.. if !names.is_empty() => names[random.below(names.len() as u32) as usize].clone(),
        _ => switch_name(random),
    }
}

/// A random port. Some cannot be opened, because their device does not exist.
fn any_port(random: &mut Random, is_static: bool) -> AddPort {
    let name = format!("port{}", random.below(5));
    let address =
        (is_static && random.below(2) == 0).then(|| MacAddr::new([2, 0, 0, 0, 0, random.below(3) as u8]));
    let driver = match random.below(8) {
        0 => PortDriver::AfPacket { device: Some("nowhere0".parse().unwrap()) },
        1..3 => {
            let far: PortName = format!("far{}", random.below(5)).parse().unwrap();
            PortDriver::Pipe { switch: switch_name(random), port: far }
        }
        _ => PortDriver::Null {},
    };
    AddPort { default: random.below(if is_static { 4 } else { 12 }) == 0, ..port(name, driver, address) }
}

fn any_switch(random: &mut Random, name: SwitchName) -> CreateSwitch {
    let mut switch = CreateSwitch::new(name);
    switch.mode = match random.below(4) {
        0 => SwitchMode::Steering,
        1 => SwitchMode::Learning,
        _ => SwitchMode::Static,
    };
    let is_static = switch.mode == SwitchMode::Static;
    switch.age_seconds = 1 + random.below(2);
    let mut ports: BTreeMap<PortName, AddPort> = BTreeMap::new();
    for _ in 0..random.below(3) {
        let port = any_port(random, is_static);
        ports.insert(port.name.clone(), port);
    }
    switch.ports = ports.into_values().collect();
    if switch.mode == SwitchMode::Steering {
        switch.flows = (0..random.below(3)).map(|_| any_flow(random)).collect();
    }
    switch
}

fn any_stack(random: &mut Random) -> Stack {
    let mut stack = Stack::default();
    for number in 0..NAMES {
        let name: SwitchName = format!("lan{number}").parse().unwrap();
        match random.below(6) {
            0..2 => stack.switches.push(any_switch(random, name)),
            2 => {
                let ports = (0..random.below(2)).map(|_| any_port(random, false)).collect();
                stack.external.push(ExternalSwitch { name, ports });
            }
            _ => {}
        }
    }
    for number in 0..BOXES {
        if random.below(4) == 0 {
            stack.boxes.push(any_box(random, &format!("box{number}").parse().unwrap()));
        }
    }
    let steering = stack.switches.iter().find(|switch| switch.mode == SwitchMode::Steering);
    if let Some(name) = steering.map(|switch| switch.name.clone())
        && random.below(2) == 0
    {
        stack.services.push(any_service(random, name.clone()));
        if random.below(2) == 0 {
            stack.chains.push(any_chain(random, name));
        }
    }
    stack
}

/// A service at a switch that may not be a steering one. It may send to what may not exist.
fn any_service(random: &mut Random, switch: SwitchName) -> CreateService {
    let name: ServiceName = format!("svc{}", random.below(2)).parse().unwrap();
    let destination = ["port:port0", "svc0", "svc1", "chain:chain0"][random.below(4) as usize];
    CreateService {
        instance: process(name.as_str(), any_text(random)),
        name,
        switch,
        faces: ["in=0", "in=0,out=1"][random.below(2) as usize].parse().unwrap(),
        replicas: 1 + random.below(2) as u16,
        // The daemon would scale it at times of its own.
        auto: None,
        dead_after_ms: (random.below(4) == 0).then_some(60_000),
        may_send_to: if random.below(4) == 0 {
            [destination.parse().unwrap()].into()
        } else {
            BTreeSet::new()
        },
        translation: None,
        container: false,
        places: None,
        trust_pool: false,
    }
}

/// A chain of services that may not exist.
fn any_chain(random: &mut Random, switch: SwitchName) -> CreateChain {
    let services = [&["svc0"][..], &["svc1"], &["svc0", "svc1"]][random.below(3) as usize];
    let port = |random: &mut Random| format!("port{}", random.below(3)).parse().unwrap();
    CreateChain {
        name: format!("chain{}", random.below(2)).parse().unwrap(),
        switch,
        services: services.iter().map(|name| name.parse().unwrap()).collect(),
        from: (random.below(2) == 0).then(|| port(random)),
        to: port(random),
        both_ways: false,
    }
}

/// Services with their instances, and chains, as one line.
fn steering_line<'a>(
    services: impl Iterator<Item = (&'a ServiceName, Vec<(&'a BoxName, bool)>)>,
    chains: impl Iterator<Item = &'a CreateChain>,
) -> String {
    let mut services: Vec<String> = services.map(|service| format!("{service:?}")).collect();
    let mut chains: Vec<String> = chains.map(|chain| format!("{chain:?}")).collect();
    services.sort();
    chains.sort();
    format!("Steering {services:?} {chains:?}")
}

/// The default port of a switch and the addresses of ports that belong to no box, as one line. `addresses` may contain the
/// addresses of boxes.
fn forwarding_line<'a>(
    default: Option<&PortName>,
    addresses: impl Iterator<Item = (MacAddr, &'a PortName)>,
) -> String {
    let of_boxes = |port: &PortName| port.as_str().contains('.');
    let mut addresses: Vec<_> = addresses.filter(|(_, port)| !of_boxes(port)).collect();
    addresses.sort();
    addresses.dedup();
    format!("Forwarding {default:?} {addresses:?}")
}

/// The numbers that controllers know the ports of a switch by. Other switches than steering ones have none.
fn numbers(supervisor: &Supervisor, switch: &SwitchName) -> Vec<(OpenFlowPort, u16)> {
    supervisor.0.fabrics.ask(orders::PortNumbers { switch: switch.clone() }).unwrap_or_default()
}

/// What the three hold of switches.
fn switches(supervisor: &Supervisor) -> Views {
    let describe = |stored: &StoredSwitch| {
        let definition = &stored.definition;
        let mut ports = definition.ports.clone();
        ports.sort_by(|one, other| one.name.cmp(&other.name));
        let mut lines: Vec<String> = ports.iter().map(|port| format!("{port:?}")).collect();
        lines.push(format!("{:?} {} {:?}", definition.mode, definition.age_seconds, stored.stack));
        lines.push(format!("{:?} {:?} {:?}", stored.makers, stored.addresses, stored.flows));
        lines.push(format!("{:?}", stored.steering));
        let services = stored.steering.services.iter().map(|service| {
            let instances = service.instances.iter();
            let all = instances.map(|instance| (&instance.name, instance.drain_until.is_some()));
            (&service.definition.name, all.collect())
        });
        lines.push(steering_line(services, stored.steering.chains.iter().map(|chain| &chain.definition)));
        let default = ports.iter().find(|port| port.default).map(|port| &port.name);
        let assigned = stored.addresses.iter().map(|(mac, port)| (*mac, port));
        let defined = ports.iter().flat_map(|port| port.addresses.iter().map(|mac| (*mac, &port.name)));
        lines.push(forwarding_line(default, assigned.chain(defined)));
        (definition.name.to_string(), lines)
    };
    let held: Objects = supervisor.0.switches().values().map(describe).collect();
    let stored = supervisor.0.store().switches().unwrap().iter().map(describe).collect();
    let real = held.keys().map(|name| {
        let name: SwitchName = name.parse().unwrap();
        let described = supervisor.0.fabrics.ask(orders::Ports { switch: name.clone() }).unwrap();
        let addresses = supervisor.0.fabrics.ask(orders::Addresses { switch: name.clone() }).unwrap();
        let default = described.iter().find(|found| found.port.default).map(|found| &found.port.name);
        let assigned = addresses.iter().filter(|entry| entry.kind == AddressKind::Static);
        let forwarding = forwarding_line(default, assigned.map(|entry| (entry.mac, &entry.port)));
        let lines = described.into_iter().map(|port| format!("{port:?}"));
        let numbers = numbers(supervisor, &name).into_iter();
        let numbers = numbers.map(|(port, number)| format!("Number {number} of {port}"));
        let addresses = addresses.into_iter().map(|entry| format!("{} {}", entry.mac, entry.port));
        // Other switches have none.
        let flows = supervisor.flows(&name).unwrap_or_default().into_iter();
        // The fabric does not know who made them.
        let held = supervisor.stored_switch(&name).unwrap().flows.list;
        let flows = flows.map(|found| {
            let stack = held.iter().find(|flow| flow.id == found.id).and_then(|flow| flow.stack.clone());
            format!("{:?}", StoredFlow { id: found.id, flow: found.flow, stack })
        });
        // Other switches have none.
        let steering = supervisor.0.fabrics.steering(name.clone()).unwrap_or_default();
        let services = steering.services.iter().map(|(service, instances)| {
            (service, instances.iter().map(|instance| (&instance.name, instance.draining)).collect())
        });
        let steering = steering_line(services, steering.chains.iter().map(|status| &status.chain));
        (
            name.to_string(),
            lines.chain(numbers).chain(addresses).chain(flows).chain([steering, forwarding]).collect(),
        )
    });
    Views { real: real.collect(), held, stored }
}

/// What the three hold of boxes. The last line of each says whether it is to run, or whether it does.
fn boxes(supervisor: &Supervisor, inventory: &InventoryReply) -> Views {
    let contents = |name: &BoxName| {
        let store = supervisor.0.store();
        let mut lines = Vec::new();
        for configuration in store.configurations(name).unwrap() {
            let files = store.files(name, configuration.id).unwrap();
            lines.push(format!(
                "{:?} {files:?}",
                crate::store::StoredConfiguration { id: 0, ..configuration }
            ));
        }
        lines.extend(store.writes(name).unwrap().into_iter().map(|write| format!("{write:?}")));
        lines
    };
    let lines = |definition: &CreateBox, stack: &Option<StackName>, is_running: bool| {
        let mut lines = contents(&definition.name);
        lines.extend([format!("{definition:?}"), format!("{stack:?}"), is_running.to_string()]);
        (definition.name.to_string(), lines)
    };
    let held = supervisor.0.all().into_iter().map(|managed| {
        let inner = managed.inner();
        let (definition, stack, is_running) = (inner.definition.clone(), inner.stack.clone(), inner.running);
        drop(inner);
        lines(&definition, &stack, is_running)
    });
    let all: Vec<StoredBox> = supervisor.0.store().boxes().unwrap();
    let stored = all.iter().map(|stored| lines(&stored.definition, &stored.stack, stored.running));
    let real = inventory.boxes.iter().map(|found| {
        let is_up = !matches!(found.phase, Phase::Created | Phase::Stopped);
        let mut lines = vec![format!("{:?}", found.definition)];
        if is_up {
            let order = orders::Writes { name: found.definition.name.clone() };
            let writes = supervisor.0.fabrics.ask(order).unwrap().writes;
            lines.push(format!("{:?}", found.configurations));
            lines.extend(writes.into_iter().map(|write| format!("{write:?}")));
        }
        lines.push(is_up.to_string());
        (found.definition.name.to_string(), lines)
    });
    Views { real: real.collect(), held: held.collect(), stored: stored.collect() }
}

/// The names of all boxes, sorted.
fn names_of_boxes(supervisor: &Supervisor) -> Vec<String> {
    let names = supervisor.0.all().into_iter().map(|managed| managed.inner().definition.name.to_string());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn views(supervisor: &Supervisor) -> [Views; 2] {
    let fabric = supervisor.0.fabrics.all().remove(0);
    let mut found = None;
    // A box whose start failed is started again a little later. Until then nothing is installed in it. An instance that is
    // drained no more is shown as drained until its flows are back.
    until("no box is being started or removed", || {
        let listed = names_of_boxes(supervisor);
        let inventory = fabric.ask(orders::Inventory {}).unwrap();
        let [switches, boxes] = [switches(supervisor), boxes(supervisor, &inventory)];
        let is_starting =
            inventory.boxes.iter().any(|found| matches!(found.phase, Phase::Booting | Phase::Waiting));
        let is_settled = !is_starting
            && [&boxes.held, &boxes.stored, &boxes.real].iter().all(|view| view.keys().eq(&listed))
            && has_steering_as_held(&switches);
        found = Some([switches, boxes]);
        is_settled
    });
    found.unwrap()
}

fn has_steering_as_held(switches: &Views) -> bool {
    switches.real.iter().all(|(name, real)| {
        let steering = real.iter().find(|line| line.starts_with("Steering "));
        steering.is_some_and(|line| switches.held.get(name).is_some_and(|held| held.contains(line)))
    })
}

/// Whether each box is attached to its switch, if there is one.
fn assert_attached(supervisor: &Supervisor, [switches, _]: &[Views; 2]) {
    for managed in supervisor.0.all() {
        let definition = managed.inner().definition.clone();
        for port in &definition.ports {
            let Attachment::Switch(switch) = &port.attach else { continue };
            let Some(lines) = switches.real.get(switch.as_str()) else { continue };
            let driver = format!("Box {{ name: {:?}", definition.name);
            assert!(lines.iter().any(|line| line.contains(&driver)), "{} at {switch}", definition.name);
        }
    }
}

/// Whether the numbers of all ports are stored, and those that there were before are the same.
fn assert_numbers(supervisor: &Supervisor, before: &Views, after: &Views) {
    let numbers_of = |lines: &Vec<String>| -> BTreeMap<String, String> {
        let numbers = lines.iter().filter_map(|line| line.strip_prefix("Number ")?.split_once(" of "));
        numbers.map(|(number, port)| (port.into(), number.into())).collect()
    };
    for (name, lines) in &after.real {
        let switch: SwitchName = name.parse().unwrap();
        let unknown = supervisor.0.store().unknown_port_numbers(&switch, numbers(supervisor, &switch));
        assert_eq!(unknown.unwrap(), [], "switch {name}");
        let now = numbers_of(lines);
        for (port, number) in before.real.get(name).map(numbers_of).unwrap_or_default() {
            assert!(
                now.get(&port).is_none_or(|now| *now == number),
                "{port} at {name}: {before:#?} {after:#?}"
            );
        }
    }
}

/// Whether the three hold the same objects, and the fabric runs the boxes that are to run, with the stored writes.
fn assert_agreement([switches, boxes]: &[Views; 2]) {
    for views in [switches, boxes] {
        assert_eq!(views.held, views.stored);
        assert_eq!(views.real.keys().collect::<Vec<_>>(), views.held.keys().collect::<Vec<_>>());
    }
    for (name, real) in &switches.real {
        let real = real.iter().filter(|line| line.starts_with("StoredFlow")).cloned().collect::<Vec<_>>();
        let held = switches.held[name].join(" ");
        assert!(held.contains(&format!("list: [{}]", real.join(", "))), "switch {name}: {real:#?} {held}");
    }
    assert!(has_steering_as_held(switches), "{switches:#?}");
    for (name, real) in &switches.real {
        let forwarding = |lines: &Vec<String>| lines.last().cloned();
        assert_eq!(forwarding(real), forwarding(&switches.held[name]), "switch {name}");
    }
    for (name, real) in &boxes.real {
        let held = &boxes.held[name];
        assert_eq!(real.last(), held.last(), "box {name}: {real:#?} {held:#?}");
        assert!(held.contains(&real[0]), "box {name}: {real:#?} {held:#?}");
        for write in real.iter().filter(|line| line.starts_with("RecordedWrite")) {
            assert!(held.contains(write), "box {name}: {real:#?} {held:#?}");
        }
    }
}

fn box_name(random: &mut Random) -> BoxName {
    format!("box{}", random.below(BOXES)).parse().unwrap()
}

fn any_text(random: &mut Random) -> &'static str {
    match random.below(8) {
        0 => TEXTS[2],
        number => TEXTS[(number % 2) as usize],
    }
}

/// A box with one port, at a switch that may not exist.
fn any_box(random: &mut Random, name: &BoxName) -> CreateBox {
    let attach = match random.below(3) {
        0 => Attachment::Nothing,
        _ => Attachment::Switch(switch_name(random)),
    };
    // Which of two boxes with the same address has it at a static switch depends on the order in which they are attached.
    let number = name.as_str().bytes().next_back().unwrap_or_default();
    let mac = Some(MacAddr::new([2, 0, 0, 0, 1, number]));
    CreateBox {
        ports: vec![PortRequest { attach, mac, ..PortRequest::default() }],
        start: random.below(3) > 0,
        cpu_weight: (100 + random.below(2)).try_into().unwrap(),
        // Otherwise they are lost in restarts, which are reported at some time.
        keep_writes: true,
        ..process(name.as_str(), any_text(random))
    }
}

/// A flow, to a port that may not exist.
fn any_flow(random: &mut Random) -> AddFlow {
    let condition = ["tcp", "udp", "ip proto 47", "tcp && udp"][random.below(4) as usize];
    let output = ["normal", "drop", "port0", "port1"][random.below(4) as usize];
    AddFlow {
        condition: Some(condition.into()),
        in_port: None,
        output: output.parse().unwrap(),
        priority: Some(random.below(3) as u16),
        idle_seconds: None,
        timeout_seconds: None,
    }
}

fn run(supervisor: &Supervisor, random: &mut Random) -> Result<(), OperationError> {
    let stack: StackName = format!("stack{}", random.below(2)).parse().unwrap();
    let operation = random.below(34);
    let switch = switch_that_may_exist(supervisor, random, operation >= 22);
    match operation {
        25.. => run_on_services(supervisor, random, switch),
        22 => supervisor.remove_flow(&switch, 1 + u64::from(random.below(4))),
        23..25 => supervisor.add_flow(&switch, &any_flow(random)).map(drop),
        0..4 => supervisor.apply_stack(&stack, any_stack(random)).map(drop),
        4 => supervisor.remove_stack_by_force(&stack).map(drop),
        7 if random.below(3) == 0 => supervisor.remove_switch(&switch),
        5..8 => {
            let name = switch_name(random);
            supervisor.create_switch(any_switch(random, name)).map(drop)
        }
        8..10 => supervisor.add_port(&switch, &any_port(random, false)).map(drop),
        10 => {
            let port: PortName = format!("port{}", random.below(5)).parse().unwrap();
            supervisor.remove_port(&switch, &port)
        }
        11 => {
            let mac = MacAddr::new([2, 0, 0, 0, 0, random.below(3) as u8]);
            let port: PortName = format!("port{}", random.below(5)).parse().unwrap();
            match random.below(2) {
                0 => supervisor.set_address(&switch, mac, &port),
                _ => supervisor.remove_address(&switch, mac),
            }
        }
        _ => run_on_box(supervisor, random),
    }
}

/// An operation on a service or a chain.
fn run_on_services(
    supervisor: &Supervisor,
    random: &mut Random,
    switch: SwitchName,
) -> Result<(), OperationError> {
    let name: ServiceName = format!("svc{}", random.below(2)).parse().unwrap();
    let chain: ChainName = format!("chain{}", random.below(2)).parse().unwrap();
    match random.below(9) {
        0..3 => supervisor.create_service(any_service(random, switch)).map(drop),
        3 => {
            let replicas = Some(1 + random.below(3) as u16);
            supervisor.scale_service(&name, ScaleService { replicas, auto: None, drain_seconds: 0 }).map(drop)
        }
        4 => {
            let configuration = any_text(random).to_string();
            let install = Install { configuration, source: None, files: Vec::new(), uploads: Vec::new() };
            supervisor.reload_service(&name, &install).map(drop)
        }
        5 => match random.below(2) {
            0 => supervisor.remove_service(&name),
            _ => supervisor.remove_unused_service(&name),
        },
        6..8 => {
            let at = supervisor.find_service(&name).map_or(switch, |(switch, _)| switch);
            let wanted = any_chain(random, at.clone());
            match random.below(3) {
                0 => {
                    supervisor.set_chain(&at, &chain, CreateChain { name: chain.clone(), ..wanted }).map(drop)
                }
                _ => supervisor.create_chain(wanted).map(drop),
            }
        }
        _ => {
            let at = supervisor.find_service(&name).map_or(switch, |(switch, _)| switch);
            supervisor.remove_chain(&at, &chain)
        }
    }
}

/// Lets instances that are drained go now. The thread that does so otherwise is not there.
fn settle(bed: &TestBed) {
    bed.fail_commits(false);
    until("drained instances are gone", || {
        bed.look_at_services(Time::from(SystemTime::now() + Duration::from_secs(5)));
        let switches = bed.0.switches();
        let mut services = switches.values().flat_map(|stored| &stored.steering.services);
        services.all(|service| service.instances.iter().all(|instance| instance.drain_until.is_none()))
    });
}

/// An operation on a box.
fn run_on_box(supervisor: &Supervisor, random: &mut Random) -> Result<(), OperationError> {
    let operation = random.below(10);
    let existing = names_of_boxes(supervisor);
    let name = match random.below(4) {
        1.. if operation >= 2 && !existing.is_empty() => {
            existing[random.below(existing.len() as u32) as usize].parse().unwrap()
        }
        _ => box_name(random),
    };
    match operation {
        0..2 => supervisor.create_box(any_box(random, &name)).map(drop),
        2 => match random.below(2) {
            0 => supervisor.remove_box(&name),
            _ => supervisor.remove_stopped_box(&name),
        },
        3..5 => {
            let configuration = any_text(random).to_string();
            let install = Install { configuration, source: None, files: Vec::new(), uploads: Vec::new() };
            supervisor.install(&name, &ConfigurationName::main(), &install).map(drop)
        }
        5 => supervisor.start_box(&name).map(drop),
        6 => supervisor.stop_box(&name).map(drop),
        7 => supervisor.restart_box(&name).map(drop),
        8 => supervisor.kill_box(&name).map(drop),
        _ => {
            let (configuration, handler) = (ConfigurationName::main(), "f.rules".to_string());
            let rules = RULES[random.below(RULES.len() as u32) as usize];
            supervisor.write(&HandlerPath { name, configuration, handler }, rules.as_bytes())
        }
    }
}

/// A fault that ends the fabric in one of the next orders of operations.
fn end_of_fabric(bed: &TestBed, random: &mut Random) -> Fault {
    let fabric = bed.fabric.clone();
    let end = Box::new(move || fabric.kill(0));
    Fault { orders: random.below(12), is_executed: random.below(2) == 0, end }
}

#[test]
fn a_failed_operation_changes_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let schedules = number("CLICKBOX_TEST_SCHEDULES").unwrap_or(2000);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let bed = TestBed::unwatched_with_click();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let begin = Instant::now();
    let (mut before, mut fault) = (views(&bed), None);
    for schedule in 0..schedules {
        let commits_fail = random.below(5) == 0;
        bed.fail_commits(commits_fail);
        let to_come =
            fault.take().or_else(|| (random.below(8) == 0).then(|| end_of_fabric(&bed, &mut random)));
        let is_planned = to_come.is_some();
        plan_fault(to_come);
        let result = run(&bed, &mut random);
        fault = plan_fault(None);
        let has_ended = is_planned && fault.is_none();
        if has_ended {
            until("there is another fabric", || bed.has_whole_fabric());
        }
        settle(&bed);
        let after = views(&bed);
        assert_agreement(&after);
        assert_attached(&bed, &after);
        assert_numbers(&bed, &before[0], &after[0]);
        let what = match &result {
            Ok(()) => "done",
            // Only the answer is missing.
            Err(OperationError::Fabric(_)) if has_ended && after != before => "unanswered",
            Err(failure) => {
                let when = format!("operation {schedule}: {failure}, fabric ended: {has_ended}");
                assert_eq!(after, before, "{when}");
                if has_ended {
                    "without a fabric"
                } else if commits_fail {
                    "not committed"
                } else {
                    "refused"
                }
            }
        };
        *counts.entry(what).or_default() += 1;
        *counts.entry("fabrics").or_default() += u64::from(has_ended);
        before = after;
    }
    println!("{schedules} operations in {:?}: {counts:?}", begin.elapsed());
    let enough = |what: &str, part: u64| {
        assert!(counts.get(what).copied().unwrap_or(0) >= schedules / part, "{what}: {counts:?}");
    };
    enough("done", 8);
    enough("refused", 16);
    enough("not committed", 40);
    enough("fabrics", 100);
    enough("without a fabric", 200);
}
