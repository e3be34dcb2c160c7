//! Simulates operations of which a step or the commit fails: the fabric, the supervisor and the store then agree with
//! each other and with what was before. `CLICKBOX_TEST_SCHEDULES` is the number of operations, `CLICKBOX_TEST_SEED`
//! repeats a run.

use super::state::Supervisor;
use crate::settings::Settings;
use crate::thread_fabric::ThreadFabric;
use api::{
    AddPort, CreateSwitch, ExternalSwitch, Limits, MacAddr, PortDriver, PortName, Stack, StackName,
    SwitchMode, SwitchName,
};
use protocol::fabric::orders;
use random::Random;
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

/// Switches, and stacks.
const NAMES: u32 = 4;

/// A switch in the fabric, in the supervisor and in the store.
type Views = [BTreeMap<String, Vec<String>>; 3];

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
    let is_static = random.below(2) == 0;
    if is_static {
        switch.mode = SwitchMode::Static;
    }
    switch.age_seconds = 1 + random.below(2);
    let mut ports: BTreeMap<PortName, AddPort> = BTreeMap::new();
    for _ in 0..random.below(3) {
        let port = any_port(random, is_static);
        ports.insert(port.name.clone(), port);
    }
    switch.ports = ports.into_values().collect();
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
    stack
}

/// What the three hold, as text.
fn views(supervisor: &Supervisor) -> Views {
    let describe = |stored: &crate::store::StoredSwitch| {
        let definition = &stored.definition;
        let mut ports = definition.ports.clone();
        ports.sort_by(|one, other| one.name.cmp(&other.name));
        let mut lines: Vec<String> = ports.iter().map(|port| format!("{port:?}")).collect();
        lines.push(format!("{:?} {} {:?}", definition.mode, definition.age_seconds, stored.stack));
        lines.push(format!("{:?} {:?}", stored.makers, stored.addresses));
        (definition.name.to_string(), lines)
    };
    let held: BTreeMap<_, _> = supervisor.0.switches().values().map(describe).collect();
    let stored: BTreeMap<_, _> = supervisor.0.store().switches().unwrap().iter().map(describe).collect();
    let real = held.keys().map(|name| {
        let name: SwitchName = name.parse().unwrap();
        let described = supervisor.0.fabrics.ask(orders::Ports { switch: name.clone() }).unwrap();
        let addresses = supervisor.0.fabrics.ask(orders::Addresses { switch: name.clone() }).unwrap();
        let lines = described.into_iter().map(|port| format!("{port:?}"));
        let addresses = addresses.into_iter().map(|entry| format!("{} {}", entry.mac, entry.port));
        (name.to_string(), lines.chain(addresses).collect())
    });
    let real = real.collect();
    [real, held, stored]
}

/// Whether each port of a definition is in the fabric.
fn assert_agreement([real, held, stored]: &Views) {
    assert_eq!(held, stored);
    assert_eq!(real.keys().collect::<Vec<_>>(), held.keys().collect::<Vec<_>>());
}

fn run(supervisor: &Supervisor, random: &mut Random) -> bool {
    let (switch, stack): (_, StackName) =
        (switch_name(random), format!("stack{}", random.below(2)).parse().unwrap());
    match random.below(12) {
        0..4 => supervisor.apply_stack(&stack, any_stack(random)).is_ok(),
        4 => supervisor.remove_stack_by_force(&stack).is_ok(),
        5..7 => {
            let switch = any_switch(random, switch);
            supervisor.create_switch(switch).is_ok()
        }
        7 => supervisor.remove_switch(&switch).is_ok(),
        8..10 => supervisor.add_port(&switch, &any_port(random, false)).is_ok(),
        10 => {
            let port: PortName = format!("port{}", random.below(5)).parse().unwrap();
            supervisor.remove_port(&switch, &port).is_ok()
        }
        _ => {
            let mac = MacAddr::new([2, 0, 0, 0, 0, random.below(3) as u8]);
            let port: PortName = format!("port{}", random.below(5)).parse().unwrap();
            match random.below(2) {
                0 => supervisor.set_address(&switch, mac, &port).is_ok(),
                _ => supervisor.remove_address(&switch, mac).is_ok(),
            }
        }
    }
}

#[test]
fn a_failed_operation_changes_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let schedules = number("CLICKBOX_TEST_SCHEDULES").unwrap_or(2000);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let supervisor = Supervisor::start(&Settings::new(ThreadFabric::new(image::PROBE, 1), "probe")).unwrap();
    let (mut done, mut refused, mut failed) = (0, 0, 0);
    let begin = Instant::now();
    let mut before = views(&supervisor);
    for schedule in 0..schedules {
        let commits_fail = random.below(5) == 0;
        supervisor.0.store().fail_commits(commits_fail);
        let is_done = run(&supervisor, &mut random);
        let after = views(&supervisor);
        assert_agreement(&after);
        if is_done {
            done += 1;
        } else {
            assert_eq!(after, before, "operation {schedule}");
            *if commits_fail { &mut failed } else { &mut refused } += 1;
        }
        before = after;
    }
    println!("{done} operations done, {refused} refused, {failed} not committed, in {:?}", begin.elapsed());
    assert!(done > schedules / 8 && refused + failed > schedules / 8, "{done} {refused} {failed}");
}
