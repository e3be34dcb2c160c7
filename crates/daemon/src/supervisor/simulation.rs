//! Simulates operations of which a step or the commit fails, or whose fabric ends: the fabric, the supervisor and the store
//! then agree with each other and with what was before. `CLICKBOX_TEST_SCHEDULES` is the number of operations,
//! `CLICKBOX_TEST_SEED` repeats a run.

use super::state::Supervisor;
use super::test_bed::{TestBed, process, until};
use crate::error::OperationError;
use crate::fabric::{Fault, plan_fault};
use crate::store::{StoredBox, StoredFlow, StoredSwitch};
use api::{
    AddFlow, AddPort, Attachment, BoxName, ConfigurationName, CreateBox, CreateSwitch, ExternalSwitch,
    HandlerPath, Install, Limits, MacAddr, PortDriver, PortName, PortRequest, Stack, StackName, SwitchMode,
    SwitchName,
};
use protocol::fabric::{InventoryReply, Phase, orders};
use random::Random;
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

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
    stack
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
        (definition.name.to_string(), lines)
    };
    let held: Objects = supervisor.0.switches().values().map(describe).collect();
    let stored = supervisor.0.store().switches().unwrap().iter().map(describe).collect();
    let real = held.keys().map(|name| {
        let name: SwitchName = name.parse().unwrap();
        let described = supervisor.0.fabrics.ask(orders::Ports { switch: name.clone() }).unwrap();
        let addresses = supervisor.0.fabrics.ask(orders::Addresses { switch: name.clone() }).unwrap();
        let lines = described.into_iter().map(|port| format!("{port:?}"));
        let addresses = addresses.into_iter().map(|entry| format!("{} {}", entry.mac, entry.port));
        // Other switches have none.
        let flows = supervisor.flows(&name).unwrap_or_default().into_iter();
        // The fabric does not know who made them.
        let held = supervisor.stored_switch(&name).unwrap().flows.list;
        let flows = flows.map(|found| {
            let stack = held.iter().find(|flow| flow.id == found.id).and_then(|flow| flow.stack.clone());
            format!("{:?}", StoredFlow { id: found.id, flow: found.flow, stack })
        });
        (name.to_string(), lines.chain(addresses).chain(flows).collect())
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

fn views(supervisor: &Supervisor) -> [Views; 2] {
    let fabric = supervisor.0.fabrics.all().remove(0);
    let mut inventory = InventoryReply::default();
    // A box whose start failed is started again a little later. Until then nothing is installed in it.
    until("no box is being started", || {
        inventory = fabric.ask(orders::Inventory {}).unwrap();
        !inventory.boxes.iter().any(|found| matches!(found.phase, Phase::Booting | Phase::Waiting))
    });
    [switches(supervisor), boxes(supervisor, &inventory)]
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
    let (switch, stack): (_, StackName) =
        (switch_name(random), format!("stack{}", random.below(2)).parse().unwrap());
    match random.below(25) {
        22 => supervisor.remove_flow(&switch, 1 + u64::from(random.below(4))),
        23.. => supervisor.add_flow(&switch, &any_flow(random)).map(drop),
        0..4 => supervisor.apply_stack(&stack, any_stack(random)).map(drop),
        4 => supervisor.remove_stack_by_force(&stack).map(drop),
        5..7 => {
            let switch = any_switch(random, switch);
            supervisor.create_switch(switch).map(drop)
        }
        7 => supervisor.remove_switch(&switch),
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

/// An operation on a box.
fn run_on_box(supervisor: &Supervisor, random: &mut Random) -> Result<(), OperationError> {
    let name = box_name(random);
    match random.below(10) {
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
    let bed = TestBed::with_click();
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
        let after = views(&bed);
        assert_agreement(&after);
        assert_attached(&bed, &after);
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
