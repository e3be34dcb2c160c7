//! Random operations.

use super::super::state::Supervisor;
use super::super::test_bed::process;
use super::views::names_of_boxes;
use crate::error::OperationError;
use crate::store::StoredSwitch;
use api::{
    AddFlow, AddPort, Attachment, BoxName, ChainName, ConfigurationName, CreateBox, CreateChain,
    CreateService, CreateSwitch, ExternalSwitch, FailMode, HandlerPath, Install, Limits, MacAddr, Owner,
    PortDriver, PortName, PortRequest, Save, ScaleService, ServiceName, Stack, StackName, SwitchMode,
    SwitchName, Translation,
};
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Switches, and stacks.
const NAMES: u32 = 4;

/// An owner with whom switches are shared. The others' owner is the default one.
const OTHER: &str = "other";

/// Boxes.
const BOXES: u32 = 3;

/// Configurations, of which the last is refused, and rules for the handler of the others.
const TEXTS: [&str; 3] = [
    "Idle -> f :: IPFilter(allow all) -> Discard; // one",
    "Idle -> f :: IPFilter(allow all) -> Discard; // two",
    "Idle -> f :: IPFilter(maybe all) -> Discard;",
];
const RULES: [&str; 3] = ["allow udp", "deny all", "perhaps"];

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
    if random.below(4) == 0 {
        switch.shared_with = [OTHER.parse().unwrap()].into();
    }
    if switch.mode == SwitchMode::Steering {
        switch.fail_mode = [FailMode::Secure, FailMode::Standalone][random.below(2) as usize];
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

/// A configuration of an instance: of a translator, or with so many faces.
fn instance_text(random: &mut Random, is_translator: bool, faces: usize) -> String {
    let note = random.below(2);
    let text = match (is_translator, faces) {
        (true, _) => {
            "define($TRANSLATE_ADDRESS 192.0.2.1, $TRANSLATE_PORTS 1-65535);
             f :: IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop);
             FromDevice(0) -> f -> ToDevice(1); FromDevice(1) -> [1]f; f[1] -> ToDevice(0);"
        }
        (false, 1) => "FromDevice(0) -> f :: IPFilter(allow all) -> ToDevice(0);",
        _ => "FromDevice(0) -> f :: IPFilter(allow all) -> ToDevice(1); FromDevice(1) -> ToDevice(0);",
    };
    match random.below(8) {
        0 => TEXTS[2].to_string(),
        _ => format!("{text} // {note}"),
    }
}

/// A service at a switch that may not be a steering one. It may send to what may not exist.
fn any_service(random: &mut Random, switch: SwitchName) -> CreateService {
    let name: ServiceName = format!("svc{}", random.below(2)).parse().unwrap();
    let destination = ["port:port0", "svc0", "svc1", "chain:chain0"][random.below(4) as usize];
    let is_translator = random.below(4) == 0;
    let faces = if is_translator { 2 } else { 1 + random.below(2) as usize };
    let translation = is_translator.then(|| Translation {
        ranges: vec!["203.0.113.1:1024-65535".parse().unwrap()],
        slices: 1 + random.below(4) as u16,
        mappings: Vec::new(),
    });
    CreateService {
        // As for other boxes.
        instance: CreateBox {
            keep_writes: true,
            ..process(name.as_str(), &instance_text(random, is_translator, faces))
        },
        name,
        switch,
        faces: ["in=0", "in=0,out=1"][faces - 1].parse().unwrap(),
        replicas: 1 + random.below(2) as u16,
        // The daemon would scale it at any time.
        auto: None,
        dead_after_ms: (random.below(4) == 0).then_some(60_000),
        may_send_to: if random.below(4) == 0 {
            [destination.parse().unwrap()].into()
        } else {
            BTreeSet::new()
        },
        translation,
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
        both_ways: random.below(3) == 0,
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
        owner: if random.below(4) == 0 { OTHER.parse().unwrap() } else { Owner::default() },
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

pub(super) fn run(supervisor: &Supervisor, random: &mut Random) -> Result<(), OperationError> {
    let stack: StackName = format!("stack{}", random.below(2)).parse().unwrap();
    let operation = random.below(34);
    let switch = switch_that_may_exist(supervisor, random, operation >= 22);
    match operation {
        25.. => run_on_services(supervisor, random, switch),
        22 => supervisor.remove_flow(&switch, 1 + u64::from(random.below(4))),
        23..25 => supervisor.add_flow(&switch, &any_flow(random)).map(drop),
        0..5 => run_on_stacks(supervisor, random, &stack),
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
        12 if random.below(2) == 0 => {
            let owner = OTHER.parse().unwrap();
            match random.below(3) {
                0 => supervisor.unshare_switch(&switch, &owner).map(drop),
                _ => supervisor.share_switch(&switch, &owner).map(drop),
            }
        }
        _ => run_on_box(supervisor, random),
    }
}

/// An operation on a stack. Some await a confirmation, which comes in another operation.
fn run_on_stacks(
    supervisor: &Supervisor,
    random: &mut Random,
    stack: &StackName,
) -> Result<(), OperationError> {
    match random.below(10) {
        0..5 => supervisor.apply_stack_within(stack, any_stack(random), None, false).map(drop),
        5..7 => {
            let time = Some(Duration::from_secs(3600));
            supervisor.apply_stack_within(stack, any_stack(random), time, random.below(2) == 0).map(drop)
        }
        7 => supervisor.remove_stack_by_force(stack).map(drop),
        8 => supervisor.confirm_stack(stack),
        _ => supervisor.roll_back_stack(stack).map(drop),
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
            let definition = supervisor.find_service(&name).map(|(_, stored)| stored.definition);
            let is_translator = definition.as_ref().is_some_and(|found| found.translation.is_some());
            let faces = definition.map_or(1, |found| found.instance.ports.len());
            let configuration = instance_text(random, is_translator, faces);
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
        4 if random.below(2) == 0 => {
            supervisor.save(&name, &ConfigurationName::main(), &Save { preview: false }).map(drop)
        }
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
