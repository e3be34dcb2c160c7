//! What the fabric, the supervisor and the store hold, and whether they agree.

use super::super::state::Supervisor;
use super::super::test_bed::until;
use crate::store::{StoredBox, StoredFlow, StoredSwitch};
use api::{
    AddressKind, Attachment, BoxName, CreateBox, CreateChain, MacAddr, OpenFlowPort, PortName, ServiceName,
    StackName, SwitchName,
};
use protocol::fabric::{InventoryReply, Phase, orders};
use std::collections::{BTreeMap, BTreeSet};

/// Objects by name, each as lines of text.
type Objects = BTreeMap<String, Vec<String>>;

/// Switches or boxes in the fabric, in the supervisor and in the store.
#[derive(Debug, PartialEq)]
pub(super) struct Views {
    real: Objects,
    held: Objects,
    stored: Objects,
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

/// What supervisor and store hold of stacks. The fabric knows none. The last line of each tells what it is rolled back to, if it
/// awaits confirmation.
fn stacks(supervisor: &Supervisor) -> Views {
    let store = supervisor.0.store();
    let unconfirmed = store.unconfirmed().unwrap();
    let stored = store.stacks().unwrap();
    drop(store);
    let lines = |before: &dyn Fn(&StackName) -> Option<String>| -> Objects {
        let all = stored.iter().map(|stored| {
            let lines = [format!("{stored:?}")].into_iter().chain(before(&stored.name));
            (stored.name.to_string(), lines.collect())
        });
        all.collect()
    };
    let held = lines(&|name| {
        let pending = supervisor.0.pending();
        pending.get(name).map(|pending| format!("{} {:?}", pending.busy, pending.before))
    });
    let stored = lines(&|name| {
        let found = unconfirmed.iter().find(|unconfirmed| unconfirmed.name == *name);
        found.map(|unconfirmed| format!("false {:?}", unconfirmed.before))
    });
    let known = |name: &StackName| stored.contains_key(name.as_str());
    assert!(unconfirmed.iter().all(|unconfirmed| known(&unconfirmed.name)), "{unconfirmed:?}");
    assert!(supervisor.0.pending().keys().all(known), "{:?}", supervisor.0.pending());
    Views { real: held.clone(), held, stored }
}

/// Whether there are stacks that await confirmation.
pub(super) fn awaits_confirmation([.., stacks]: &[Views; 3]) -> bool {
    stacks.stored.values().any(|lines| lines.len() > 1)
}

/// The names of all boxes, sorted.
pub(super) fn names_of_boxes(supervisor: &Supervisor) -> Vec<String> {
    let names = supervisor.0.all().into_iter().map(|managed| managed.inner().definition.name.to_string());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

pub(super) fn views(supervisor: &Supervisor) -> [Views; 3] {
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
        found = Some([switches, boxes, stacks(supervisor)]);
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

/// Whether each box is attached to its switch, if there is one that admits its owner.
pub(super) fn assert_attached(supervisor: &Supervisor, [switches, ..]: &[Views; 3]) {
    for managed in supervisor.0.all() {
        let definition = managed.inner().definition.clone();
        for port in &definition.ports {
            let Attachment::Switch(switch) = &port.attach else { continue };
            let Some(lines) = switches.real.get(switch.as_str()) else { continue };
            let driver = format!("Box {{ name: {:?}", definition.name);
            let is_attached = lines.iter().any(|line| line.contains(&driver));
            // One that was made again may not be shared with the owner.
            let is_admitted = supervisor.stored_switch(switch).unwrap().definition.admits(&definition.owner);
            assert_eq!(is_attached, is_admitted, "{} at {switch}", definition.name);
        }
    }
}

/// Whether the numbers of all ports are stored, and those that there were before are the same.
pub(super) fn assert_numbers(supervisor: &Supervisor, before: &Views, after: &Views) {
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
pub(super) fn assert_agreement([switches, boxes, stacks]: &[Views; 3]) {
    for views in [switches, boxes, stacks] {
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
