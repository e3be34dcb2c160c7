//! Owners of boxes, switches and stacks.

mod support;

use api::{
    AccountQuery, AddPort, Attachment, BoxDetail, CreateBox, CreateService, CreateSwitch, ErrorCode,
    EventQuery, ExternalSwitch, Limits, Owner, PortDriver, Quota, Right, Size, Stack, StackName, SwitchMode,
};
use daemon::{Caller, OperationError, Settings, Supervisor, User};
use std::sync::Arc;
use support::{name, supervisor, switch};

fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}

/// A box that sends from the addresses of its ports only, as users' boxes do.
fn process(name: &str, command: &str, ports: &[&str]) -> CreateBox {
    let mut made = support::process(name, command, ports);
    made.ports.iter_mut().for_each(|port| port.limits = Limits::default());
    made
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
    let at_lan = Attachment::Switch(switch("lan"));
    assert_eq!(supervisor.show_box(&name("his")).unwrap().ports[0].attach, at_lan);
    // Sharing that is changed by hand is a difference from the stack.
    supervisor.share_switch(&switch("lan"), &owner("carol")).unwrap();
    assert_eq!(supervisor.diff_stack(&edge, &stack).unwrap().changes.len(), 1);
    assert_eq!(supervisor.export_stack(&edge).unwrap().switches[0].shared_with.len(), 2);
    // What others have attached goes with the sharing.
    stack.switches[0].shared_with.clear();
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());
    assert_eq!(supervisor.show_box(&name("his")).unwrap().ports[0].attach, Attachment::Nothing);
    // A switch of another owner is another switch.
    stack.switches[0].owner = owner("bob");
    stack.boxes.clear();
    let changes = supervisor.apply_stack(&edge, stack).unwrap().changes;
    assert!(changes.iter().any(|change| change.detail == "owner alice -> bob"), "{changes:?}");
}

#[test]
fn a_switch_that_is_withdrawn_is_left_by_what_others_attached() {
    let supervisor = supervisor();
    supervisor.create_switch(switch_of("lan", "alice", &["carol"])).unwrap();
    supervisor.create_box(box_of("hers", "alice", &["lan"])).unwrap();
    let of_alice = user(&supervisor, "alice", Quota::default());
    let of_bob = user(&supervisor, "bob", Quota::default());
    // Only its owner and administrators share it.
    let refused = |result: Result<api::SwitchDetail, OperationError>| result.unwrap_err().code();
    assert_eq!(refused(of_bob.share_switch(&switch("lan"), &owner("bob"))), ErrorCode::NotFound);
    assert_eq!(refused(of_alice.share_switch(&switch("none"), &owner("bob"))), ErrorCode::NotFound);
    assert!(of_bob.create_box(box_of("his", "bob", &["lan"])).is_err());
    let detail = of_alice.share_switch(&switch("lan"), &owner("bob")).unwrap();
    assert_eq!(detail.status.shared_with, [owner("bob"), owner("carol")].into());
    // Again changes nothing.
    of_alice.share_switch(&switch("lan"), &owner("bob")).unwrap();
    of_bob.create_box(box_of("his", "bob", &["lan", "-", "lan"])).unwrap();
    of_bob.create_box(box_of("free", "bob", &["-"])).unwrap();
    let of_box = PortDriver::Box { name: name("free"), port: 0 };
    supervisor.add_port(&switch("lan"), &port("joined", of_box)).unwrap();
    supervisor.create_box(box_of("third", "carol", &["lan"])).unwrap();
    of_bob.create_switch(switch_of("his-lan", "bob", &[])).unwrap();
    let pipe = PortDriver::Pipe { switch: switch("lan"), port: "in".parse().unwrap() };
    of_bob.add_port(&switch("his-lan"), &port("out", pipe)).unwrap();
    let ports = |name: &str| {
        let mut ports: Vec<_> = supervisor.show_switch(&switch(name)).unwrap().port_list;
        ports.sort_by(|one, other| one.name.cmp(&other.name));
        ports.into_iter().map(|port| port.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ports("lan"), ["hers.0", "his.0", "his.2", "in", "joined", "third.0"]);
    assert_eq!(refused(of_bob.unshare_switch(&switch("lan"), &owner("carol"))), ErrorCode::NotFound);
    let detail = of_alice.unshare_switch(&switch("lan"), &owner("bob")).unwrap();
    assert_eq!(detail.status.shared_with, [owner("carol")].into());
    assert_eq!(ports("lan"), ["hers.0", "third.0"]);
    assert!(ports("his-lan").is_empty());
    let his = supervisor.show_box(&name("his")).unwrap();
    assert!(his.ports.iter().all(|port| port.attach == Attachment::Nothing), "{:?}", his.ports);
    assert_eq!(his.status.state, api::BoxState::Running);
    // Each owner is told about the own objects.
    let messages = |supervisor: &Supervisor| {
        let events = supervisor.event_list(&EventQuery::default());
        events.into_iter().map(|event| event.message).collect::<Vec<_>>()
    };
    let count =
        |messages: &[String], text: &str| messages.iter().filter(|there| there.contains(text)).count();
    let of_his = messages(&of_bob);
    assert_eq!(
        count(&of_his, "of box his was detached from switch lan, which is no longer shared with bob"),
        2
    );
    assert_eq!(count(&of_his, "port out of switch his-lan was removed"), 1);
    assert_eq!(count(&messages(&of_alice), "switch lan is shared with carol"), 1);
    assert!(of_bob.create_box(box_of("late", "bob", &["lan"])).is_err());
    // Sharing it again attaches nothing by itself.
    of_alice.share_switch(&switch("lan"), &owner("bob")).unwrap();
    assert_eq!(ports("lan"), ["hers.0", "third.0"]);
    let of_box = PortDriver::Box { name: name("his"), port: 0 };
    supervisor.add_port(&switch("lan"), &port("back", of_box)).unwrap();
}

/// A user's view of a daemon.
fn user(supervisor: &Supervisor, of: &str, quota: Quota) -> Supervisor {
    supervisor.for_caller(Caller::User(Arc::new(User {
        name: of.parse().unwrap(),
        owner: owner(of),
        rights: Right::OF_TOKENS.into(),
        quota,
    })))
}

#[test]
fn a_user_has_the_objects_of_one_owner() {
    let supervisor = supervisor();
    supervisor.create_box(box_of("his", "bob", &[])).unwrap();
    supervisor.create_switch(switch_of("lan-b", "bob", &[])).unwrap();
    supervisor.create_switch(switch_of("uplink", "bob", &["alice"])).unwrap();
    let alice = user(&supervisor, "alice", Quota::default());
    assert!(alice.boxes().unwrap().is_empty() && alice.switches().unwrap().is_empty());
    assert!(alice.event_list(&EventQuery::default()).is_empty());
    // A request without an owner is for the user's.
    let made = alice.create_box(process("hers", "mirror", &["uplink"])).unwrap();
    assert_eq!(made.status.owner, owner("alice"));
    assert_eq!(alice.create_switch(CreateSwitch::new(switch("lan-a"))).unwrap().status.owner, owner("alice"));
    let refused = |result: Result<BoxDetail, OperationError>| result.unwrap_err();
    let denied = |error: OperationError| {
        assert_eq!(error.code(), ErrorCode::Denied, "{error}");
        error.to_string()
    };
    denied(refused(alice.create_box(box_of("x", "bob", &[]))));
    let heavy = CreateBox { cpu_weight: 101.try_into().unwrap(), ..process("x", "mirror", &[]) };
    denied(refused(alice.create_box(heavy)));
    let mut spoofing = process("x", "mirror", &["lan-a"]);
    spoofing.ports[0].limits.transparent = true;
    denied(refused(alice.create_box(spoofing.clone())));
    spoofing.ports[0].limits = Limits { source: Some(api::MacAddr::new([2; 6])), ..Limits::default() };
    denied(refused(alice.create_box(spoofing)));
    // What another owner has is not there, or taken.
    let missing = |name: &str| format!("there is no switch {name}");
    assert_eq!(refused(alice.create_box(process("x", "mirror", &["lan-b"]))).to_string(), missing("lan-b"));
    assert_eq!(refused(alice.create_box(process("x", "mirror", &["lan-c"]))).to_string(), missing("lan-c"));
    let taken = refused(alice.create_box(process("his", "mirror", &[])));
    assert_eq!(taken.to_string(), "a box named his already exists");
    // Neither devices nor files of the host.
    let add =
        |driver: PortDriver| alice.add_port(&switch("lan-a"), &port("p", driver)).map(drop).unwrap_err();
    denied(add(PortDriver::Tap { device: None, queues: None }));
    denied(add(PortDriver::AfPacket { device: Some("lo".parse().unwrap()) }));
    denied(add(PortDriver::AfXdp { device: Some("lo".parse().unwrap()), queues: None }));
    denied(add(PortDriver::Pcap { read: Some("/etc/passwd".into()), write: None, repeat: 1, rate: None }));
    let pipe = |to: &str| PortDriver::Pipe { switch: switch(to), port: "in".parse().unwrap() };
    assert_eq!(add(pipe("lan-b")).to_string(), missing("lan-b"));
    assert_eq!(add(PortDriver::Box { name: name("his"), port: 0 }).to_string(), "there is no box his");
    alice.add_port(&switch("lan-a"), &port("p", pipe("uplink"))).unwrap();
    let with_tap = CreateSwitch {
        ports: vec![port("t", PortDriver::Tap { device: None, queues: None })],
        ..CreateSwitch::new(switch("x"))
    };
    assert_eq!(alice.create_switch(with_tap.clone()).unwrap_err().code(), ErrorCode::Denied);
    // The same holds in a stack, and nothing is made.
    let edge: StackName = "edge".parse().unwrap();
    let apply = |stack: Stack| alice.apply_stack(&edge, stack).unwrap_err();
    denied(apply(Stack { switches: vec![with_tap], ..Stack::default() }));
    denied(apply(Stack { boxes: vec![box_of("x", "bob", &[])], ..Stack::default() }));
    denied(apply(Stack { owner: owner("bob"), ..Stack::default() }));
    let external = |ports: Vec<AddPort>| Stack {
        external: vec![ExternalSwitch { name: switch("uplink"), ports }],
        boxes: vec![process("x", "mirror", &["uplink"])],
        ..Stack::default()
    };
    assert_eq!(apply(external(vec![port("n", PortDriver::Null {})])).to_string(), missing("uplink"));
    alice.apply_stack(&edge, external(Vec::new())).unwrap();
    assert_eq!(alice.show_box(&name("x")).unwrap().status.owner, owner("alice"));
    let names: Vec<_> = alice.boxes().unwrap().into_iter().map(|status| status.name).collect();
    assert_eq!(names, [name("hers"), name("x")]);
    assert_eq!(alice.stacks().unwrap().len(), 1);
    let bob = user(&supervisor, "bob", Quota::default());
    assert!(bob.stacks().unwrap().is_empty());
    assert_eq!(bob.apply_stack(&edge, Stack::default()).unwrap_err().code(), ErrorCode::Exists);
    assert_eq!(bob.remove_stack(&edge).unwrap_err().code(), ErrorCode::NotFound);
    assert_eq!(bob.remove_box(&name("hers")).unwrap_err().to_string(), "there is no box hers");
    // A stack of the administrator may have objects of several owners. A user changes only the user's own.
    let mixed: StackName = "mixed".parse().unwrap();
    let boxes = vec![box_of("m-a", "alice", &[]), box_of("m-b", "bob", &[])];
    supervisor.apply_stack(&mixed, Stack { owner: owner("alice"), boxes, ..Stack::default() }).unwrap();
    assert!(alice.remove_stack(&mixed).is_err());
    assert!(supervisor.show_box(&name("m-a")).is_ok() && supervisor.show_box(&name("m-b")).is_ok());
    // A switch that others use can be removed by its owner.
    bob.remove_switch(&switch("uplink")).unwrap();
    let seen = |view: &Supervisor| view.event_list(&EventQuery::default());
    let owners: Vec<_> = seen(&alice).into_iter().map(|event| event.owner).collect();
    assert!(!owners.is_empty() && owners.iter().all(|of| *of == Some(owner("alice"))), "{owners:?}");
    assert!(seen(&bob).iter().any(|event| event.subject == "switch/uplink"));
    assert!(seen(&supervisor).len() > seen(&alice).len() + seen(&bob).len());
    assert_eq!(alice.host().unwrap().counts.boxes, 3);
    // Accounts of packets show own places only.
    let account = |view: &Supervisor, subject: Option<&str>| {
        let query = AccountQuery { subject: subject.map(str::to_string), elements: false };
        let places = view.account(&query)?.places;
        Ok::<_, OperationError>(places.iter().map(|row| row.place.to_string()).collect::<Vec<_>>())
    };
    assert!(account(&supervisor, None).unwrap().iter().any(|place| place.contains("m-b")));
    let own = account(&alice, None).unwrap();
    assert!(own.iter().any(|place| place.contains("m-a")), "{own:?}");
    assert!(!own.iter().any(|place| place.contains("m-b") || place.contains("his")), "{own:?}");
    assert!(!account(&alice, Some("mixed")).unwrap().iter().any(|place| place.contains("m-b")));
    for other in ["his", "box/his", "lan-b"] {
        assert_eq!(account(&alice, Some(other)).unwrap_err().code(), ErrorCode::NotFound);
    }
}

#[test]
fn a_quota_holds_whatever_is_created_at_once() {
    let supervisor = supervisor();
    let quota = Quota {
        boxes: Some(4),
        memory: Some(Size(5 << 20)),
        cpu: "3".parse().ok(),
        switches: Some(1),
        uploads: None,
    };
    let alice = user(&supervisor, "alice", quota);
    let small = |number: usize| CreateBox {
        cpu_limit: "0.5".parse().ok(),
        ..process(&format!("b{number}"), "mirror", &[])
    };
    let made: Vec<bool> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..12)
            .map(|number| {
                let (alice, small) = (&alice, &small);
                scope.spawn(move || {
                    let switch = CreateSwitch::new(switch(&format!("s{number}")));
                    (alice.create_box(small(number)).is_ok(), alice.create_switch(switch).is_ok())
                })
            })
            .collect();
        let all: Vec<_> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(all.iter().filter(|(_, switch)| *switch).count(), 1);
        all.into_iter().map(|(made, _)| made).collect()
    });
    assert_eq!(made.iter().filter(|made| **made).count(), 4);
    let error = alice.create_box(small(20)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!(
        error.to_string(),
        "the quota for boxes is 4, of which 4 are used; the request needs 1 more: remove something, \
         or ask an administrator for a larger quota"
    );
    // What is removed, or fails, leaves room.
    let first = name(&format!("b{}", made.iter().position(|made| *made).unwrap()));
    alice.remove_box(&first).unwrap();
    let large = CreateBox { memory: Size(3 << 20), ..small(20) };
    assert!(alice.create_box(large).unwrap_err().to_string().contains("memory"));
    let whole = CreateBox { cpu_limit: "1.6".parse().ok(), ..small(20) };
    assert!(alice.create_box(whole).unwrap_err().to_string().contains("CPU"));
    assert_eq!(
        alice.create_box(CreateBox { configuration: "dance".into(), ..small(20) }).unwrap_err().code(),
        ErrorCode::Refused
    );
    alice.create_box(small(20)).unwrap();
    // A stack beyond the quota is refused before anything changes; one that replaces as much is not.
    let edge: StackName = "edge".parse().unwrap();
    for status in alice.boxes().unwrap() {
        alice.remove_box(&status.name).unwrap();
    }
    let stack = |count: usize, limit: &str| Stack {
        boxes: (0..count)
            .map(|number| CreateBox { cpu_limit: limit.parse().ok(), ..small(number) })
            .collect(),
        ..Stack::default()
    };
    assert_eq!(alice.apply_stack(&edge, stack(5, "0.5")).unwrap_err().code(), ErrorCode::Limit);
    assert!(alice.boxes().unwrap().is_empty());
    alice.apply_stack(&edge, stack(4, "0.5")).unwrap();
    let error = alice.apply_stack(&edge, stack(4, "1")).unwrap_err();
    assert!(error.to_string().contains("3 CPUs, of which 2 CPUs"), "{error}");
    alice.apply_stack(&edge, stack(3, "1")).unwrap();
    let mut replaced = stack(3, "1");
    replaced.boxes[0].ring = 64.try_into().unwrap();
    alice.apply_stack(&edge, replaced).unwrap();
    // The administrator is not bound.
    supervisor.create_box(CreateBox { owner: owner("alice"), ..small(30) }).unwrap();
    supervisor.create_box(CreateBox { owner: owner("alice"), ..small(31) }).unwrap();
    assert_eq!(alice.create_box(small(32)).unwrap_err().code(), ErrorCode::Limit);
}

/// Places for functions count as boxes, with the memory of their regions, wherever boxes are counted.
#[test]
fn a_quota_holds_for_functions_that_join_services() {
    let folder = std::env::temp_dir().join(format!("clickbox-quota-{}", std::process::id()));
    let settings = Settings { function_folder: Some(folder.clone()), ..support::settings() };
    let supervisor = Supervisor::start(&settings).unwrap();
    let quota = Quota { boxes: Some(3), memory: Some(Size(30 << 20)), ..Quota::default() };
    let alice = user(&supervisor, "alice", quota);
    let lan = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(switch("lan")) };
    alice.create_switch(lan).unwrap();
    let service = |name: &str, places: Option<u16>, faces: &str| CreateService {
        name: name.parse().unwrap(),
        switch: switch("lan"),
        instance: CreateBox::new(name.parse().unwrap(), ""),
        faces: faces.parse().unwrap(),
        replicas: 0,
        auto: None,
        dead_after_ms: None,
        container: true,
        places,
        trust_pool: false,
        may_send_to: Default::default(),
        translation: None,
    };
    let small = |name: &str| CreateBox { memory: Size(1 << 20), ..process(name, "mirror", &[]) };
    let refused = |result: Result<api::ServiceStatus, OperationError>| result.unwrap_err().to_string();
    assert!(
        refused(alice.create_service(service("a", None, "in=0"))).contains("say how many functions may join")
    );
    for places in [0, 129] {
        let message = refused(alice.create_service(service("a", Some(places), "in=0")));
        assert!(message.contains("1 to 128"), "{message}");
    }
    let boxes = service("a", Some(1), "in=0");
    let boxes = CreateService { container: false, replicas: 1, instance: small("a"), ..boxes };
    assert!(refused(alice.create_service(boxes)).contains("another one has none"));
    let message = refused(alice.create_service(service("a", Some(4), "in=0")));
    assert!(
        message.contains("the quota for boxes is 3, of which 0 are used; the request needs 4 more"),
        "{message}"
    );
    // Two faces have two pairs of rings: 16 MB for each place.
    let message = refused(alice.create_service(service("a", Some(2), "in=0,out=1")));
    assert!(message.contains("the quota for memory is 30M"), "{message}");
    assert!(alice.services().unwrap().is_empty() && !folder.join("a").exists());
    let made = alice.create_service(service("a", Some(2), "in=0")).unwrap();
    assert_eq!((made.places, made.replicas), (Some(2), 0));
    // Boxes see what functions may take, and functions what boxes have.
    alice.create_box(small("one")).unwrap();
    let error = alice.create_box(small("two")).unwrap_err();
    assert!(error.to_string().contains("boxes is 3, of which 3 are used"), "{error}");
    assert!(refused(alice.create_service(service("b", Some(1), "in=0"))).contains("of which 3 are used"));
    assert_eq!(alice.services().unwrap().len(), 1);
    alice.remove_box(&name("one")).unwrap();
    alice.create_service(service("b", Some(1), "in=0")).unwrap();
    for name in ["a", "b"] {
        alice.remove_service(&name.parse().unwrap()).unwrap();
    }
    // A stack is checked as a whole.
    let edge: StackName = "edge".parse().unwrap();
    let stack = |places: &[u16]| Stack {
        services: (0..)
            .zip(places)
            .map(|(n, places)| service(&format!("n{n}"), Some(*places), "in=0"))
            .collect(),
        ..Stack::default()
    };
    assert!(alice.apply_stack(&edge, stack(&[2, 2])).unwrap_err().to_string().contains("boxes is 3"));
    alice.apply_stack(&edge, stack(&[1, 2])).unwrap();
    alice.apply_stack(&edge, stack(&[2, 1])).unwrap();
    assert!(alice.apply_stack(&edge, stack(&[3, 1])).unwrap_err().to_string().contains("boxes is 3"));
    let mut endless = stack(&[1]);
    endless.services[0].places = None;
    assert!(alice.apply_stack(&edge, endless).unwrap_err().to_string().contains("say how many functions"));
    // An administrator, and a user without such a quota, need not say a number.
    alice.remove_stack(&edge).unwrap();
    let bob = user(&supervisor, "bob", Quota { switches: Some(1), ..Quota::default() });
    let wan = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(switch("wan")) };
    bob.create_switch(wan).unwrap();
    bob.create_service(CreateService { switch: switch("wan"), ..service("c", None, "in=0") }).unwrap();
    supervisor.create_service(service("d", None, "in=0")).unwrap();
    drop(supervisor);
    std::fs::remove_dir_all(&folder).unwrap();
}
