//! Owners of boxes, switches and stacks.

mod support;

use api::{
    AddPort, Attachment, BoxDetail, CreateBox, CreateSwitch, ErrorCode, Limits, Owner, PortDriver, Stack,
    StackName,
};
use support::{name, process, supervisor, switch};

fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}

fn box_of(name: &str, of: &str, ports: &[&str]) -> CreateBox {
    CreateBox { owner: owner(of), ..process(name, "mirror", ports) }
}

fn switch_of(name: &str, of: &str, shared_with: &[&str]) -> CreateSwitch {
    let shared_with = shared_with.iter().map(|name| owner(name)).collect();
    CreateSwitch { owner: owner(of), shared_with, ..CreateSwitch::new(switch(name)) }
}

fn port(name: &str, driver: PortDriver) -> AddPort {
    AddPort {
        name: name.parse().unwrap(),
        driver,
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    }
}

#[test]
fn a_switch_is_used_by_its_owner_and_by_those_that_it_is_shared_with() {
    let supervisor = supervisor();
    supervisor.create_switch(switch_of("hers", "alice", &[])).unwrap();
    supervisor.create_switch(switch_of("shared", "alice", &["bob"])).unwrap();
    supervisor.create_switch(CreateSwitch::new(switch("plain"))).unwrap();
    let refused = |result: Result<BoxDetail, daemon::OperationError>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Refused);
        error.to_string()
    };
    supervisor.create_box(box_of("a", "alice", &["hers", "shared"])).unwrap();
    supervisor.create_box(box_of("b", "bob", &["shared"])).unwrap();
    supervisor.create_box(process("c", "mirror", &["plain"])).unwrap();
    let message = refused(supervisor.create_box(box_of("d", "bob", &["hers"])));
    assert_eq!(
        message,
        "switch hers belongs to alice and is not shared with bob: use a switch of bob, or add bob to shared_with of \
         the switch"
    );
    // The default owner is one like any other, and a switch without an owner is its own.
    refused(supervisor.create_box(process("d", "mirror", &["hers"])));
    refused(supervisor.create_box(box_of("d", "bob", &["plain"])));
    assert!(!supervisor.boxes().unwrap().iter().any(|status| status.name == name("d")));
    // Pipes between switches, and ports that connect boxes.
    let pipe = |to: &str| PortDriver::Pipe { switch: switch(to), port: "in".parse().unwrap() };
    let add = |at: &str, driver| supervisor.add_port(&switch(at), &port("out", driver)).map(drop);
    supervisor.create_switch(switch_of("his", "bob", &[])).unwrap();
    assert_eq!(add("his", pipe("hers")).unwrap_err().code(), ErrorCode::Refused);
    add("his", pipe("shared")).unwrap();
    supervisor.create_box(box_of("free", "bob", &["-"])).unwrap();
    let of_box = || PortDriver::Box { name: name("free"), port: 0 };
    assert_eq!(add("hers", of_box()).unwrap_err().code(), ErrorCode::Refused);
    let mut with_port = switch_of("third", "carol", &[]);
    with_port.ports.push(port("out", pipe("his")));
    assert_eq!(supervisor.create_switch(with_port).unwrap_err().code(), ErrorCode::Refused);
    add("shared", of_box()).unwrap();
    // A switch of the same name that is another owner's gets none of the boxes that wait for it.
    supervisor.remove_switch(&switch("hers")).unwrap();
    supervisor.create_switch(switch_of("hers", "bob", &[])).unwrap();
    assert!(supervisor.show_switch(&switch("hers")).unwrap().port_list.is_empty());
    let status = supervisor.show_switch(&switch("shared")).unwrap().status;
    assert_eq!((status.owner, status.shared_with), (owner("alice"), [owner("bob")].into()));
}

#[test]
fn a_stack_changes_with_whom_a_switch_is_shared() {
    let supervisor = supervisor();
    let edge: StackName = "edge".parse().unwrap();
    let mut stack = Stack {
        owner: owner("alice"),
        switches: vec![switch_of("lan", "alice", &[])],
        boxes: vec![box_of("fw", "alice", &["lan"])],
        ..Stack::default()
    };
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    assert_eq!(supervisor.stacks().unwrap()[0].owner, owner("alice"));
    assert!(supervisor.create_box(box_of("his", "bob", &["lan"])).is_err());
    stack.switches[0].shared_with.insert(owner("bob"));
    let changes = supervisor.apply_stack(&edge, stack.clone()).unwrap().changes;
    let [change] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(
        (change.subject.as_str(), change.detail.as_str()),
        ("switch/lan", "owners that it is shared with")
    );
    supervisor.create_box(box_of("his", "bob", &["lan"])).unwrap();
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());
    let exported = supervisor.export_stack(&edge).unwrap();
    assert_eq!((&exported.owner, &exported.switches), (&stack.owner, &stack.switches));
    // If a later step fails, the switch is shared as before.
    let mut bad = stack.clone();
    bad.switches[0].shared_with.clear();
    bad.boxes.push(box_of("late", "alice", &["nowhere"]));
    assert!(supervisor.apply_stack(&edge, bad).is_err());
    assert_eq!(supervisor.show_switch(&switch("lan")).unwrap().status.shared_with, [owner("bob")].into());
    // Sharing no longer takes nothing from those that are attached.
    stack.switches[0].shared_with.clear();
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    let at_lan = Attachment::Switch(switch("lan"));
    assert_eq!(supervisor.show_box(&name("his")).unwrap().ports[0].attach, at_lan);
    // A switch of another owner is another switch.
    stack.switches[0].owner = owner("bob");
    stack.boxes.clear();
    let changes = supervisor.apply_stack(&edge, stack).unwrap().changes;
    assert!(changes.iter().any(|change| change.detail == "owner alice -> bob"), "{changes:?}");
}
