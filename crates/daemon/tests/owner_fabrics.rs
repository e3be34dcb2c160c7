//! A fabric for each owner.

mod support;

use api::{
    AddPort, BoxState, CreateBox, CreateSwitch, ErrorCode, EventKind, EventQuery, Limits, MacAddr, Owner,
    PortDriver, SwitchMode,
};
use daemon::{Settings, Supervisor};
use std::sync::Arc;
use support::{Folder, ThreadFabric, name, process, state, switch, until};

fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}

/// Fabrics that a daemon, and the next one, use.
struct Host {
    fabrics: Arc<ThreadFabric>,
    folder: Folder,
}

impl Host {
    fn new(name: &str) -> Self {
        Self { fabrics: ThreadFabric::new(image::PROBE, 1), folder: Folder::new(name) }
    }

    fn start(&self, fabric_per_owner: bool) -> Supervisor {
        let settings = Settings::new(self.fabrics.clone(), "probe");
        let store = Some(self.folder.file("store"));
        Supervisor::start(&Settings { store, fabric_per_owner, ..settings }).unwrap()
    }
}

fn box_of(of: &str, name: &str, command: &str, ports: &[&str]) -> CreateBox {
    CreateBox { owner: owner(of), ..process(name, command, ports) }
}

fn switch_of(of: &str, name: &str) -> CreateSwitch {
    CreateSwitch { owner: owner(of), ..CreateSwitch::new(switch(name)) }
}

fn received(supervisor: &Supervisor, name: &str) -> u64 {
    supervisor.show_switch(&switch(name)).unwrap().status.traffic.received_packets
}

#[test]
fn the_fabric_of_one_owner_ends_without_another_noticing() {
    let host = Host::new("owner-fabrics");
    let supervisor = host.start(true);
    assert_eq!(host.fabrics.numbers(), [0]);
    for of in ["alice", "bob"] {
        supervisor.create_switch(switch_of(of, &format!("{of}-lan"))).unwrap();
        supervisor.create_box(box_of(of, of, "send 60", &[&format!("{of}-lan")])).unwrap();
        until("frames are sent", || received(&supervisor, &format!("{of}-lan")) > 100);
    }
    assert_eq!(host.fabrics.numbers(), [0, 1, 2]);
    let listed: Vec<String> =
        supervisor.boxes().unwrap().into_iter().map(|status| status.name.to_string()).collect();
    assert_eq!(listed, ["alice", "bob"]);
    let of_bob = supervisor.show_box(&name("bob")).unwrap().status;
    host.fabrics.kill(1);
    until("the fabric is back", || {
        let events = supervisor.event_list(&EventQuery::default());
        events
            .iter()
            .any(|event| event.kind == EventKind::FabricRestarted && event.message.contains("of owner alice"))
    });
    until("its box sends again", || received(&supervisor, "alice-lan") > 0);
    let after = supervisor.show_box(&name("bob")).unwrap().status;
    assert_eq!((after.pid, after.restarts, after.started), (of_bob.pid, 0, of_bob.started));
    assert!(received(&supervisor, "bob-lan") > 100);
}

#[test]
fn the_next_daemon_adopts_all_fabrics() {
    let host = Host::new("owner-adoption");
    let supervisor = host.start(true);
    for of in ["alice", "bob", "default"] {
        supervisor.create_box(box_of(of, of, "forward", &[])).unwrap();
    }
    let pids = |supervisor: &Supervisor| {
        let boxes = supervisor.boxes().unwrap().into_iter();
        boxes.map(|status| (status.pid, status.owner.to_string())).collect::<Vec<_>>()
    };
    let before = pids(&supervisor);
    supervisor.end();
    drop(supervisor);
    let supervisor = host.start(true);
    assert_eq!(pids(&supervisor), before);
    supervisor.end();
    drop(supervisor);
    // Without fabrics for each owner, all boxes move to the first.
    let supervisor = host.start(false);
    assert_eq!(host.fabrics.numbers(), [0]);
    for name in ["alice", "bob", "default"] {
        assert_eq!(state(&supervisor, name), BoxState::Running);
    }
    supervisor.end();
    drop(supervisor);
    // And back. A number is not given to another owner.
    let supervisor = host.start(true);
    supervisor.remove_box(&name("alice")).unwrap();
    supervisor.create_box(box_of("carol", "carol", "forward", &[])).unwrap();
    assert_eq!(host.fabrics.numbers(), [0, 1, 2, 3]);
    assert_eq!(pids(&supervisor).len(), 3);
}

/// Frames that a box received at its port.
fn received_by(supervisor: &Supervisor, box_name: &str) -> u64 {
    supervisor.show_box(&name(box_name)).unwrap().status.traffic.received_packets
}

fn until_back(supervisor: &Supervisor, of: &str, times: usize) {
    until("the fabric is back", || {
        let events = supervisor.event_list(&EventQuery::default());
        let is_return = |event: &api::Event| {
            event.kind == EventKind::FabricRestarted && event.message.contains(&format!("of owner {of}"))
        };
        events.iter().filter(|event| is_return(event)).count() == times
    });
}

/// What another owner attached to a switch goes when the switch is withdrawn, and does not come back with the next daemon or
/// fabric.
#[test]
fn a_withdrawn_switch_stays_withdrawn() {
    for per_owner in [false, true] {
        let host = Host::new(&format!("owner-withdrawn-{per_owner}"));
        let supervisor = host.start(per_owner);
        supervisor.create_switch(switch_of("alice", "lan")).unwrap();
        supervisor.create_box(box_of("alice", "sink", "drop", &["lan"])).unwrap();
        supervisor.share_switch(&switch("lan"), &owner("bob")).unwrap();
        let mut source = box_of("bob", "source", "send 60", &["lan"]);
        source.ports[0].limits.transparent = true;
        supervisor.create_box(source).unwrap();
        until("frames pass", || received_by(&supervisor, "sink") > 100);
        supervisor.unshare_switch(&switch("lan"), &owner("bob")).unwrap();
        let is_withdrawn = |supervisor: &Supervisor| {
            let detail = supervisor.show_switch(&switch("lan")).unwrap();
            let ports: Vec<String> = detail.port_list.iter().map(|port| port.name.to_string()).collect();
            assert_eq!((ports, detail.status.shared_with.len()), (vec!["sink.0".to_string()], 0));
            let source = supervisor.show_box(&name("source")).unwrap();
            assert_eq!(
                (source.ports[0].attach.to_string().as_str(), source.status.state),
                ("-", BoxState::Running)
            );
        };
        is_withdrawn(&supervisor);
        supervisor.end();
        drop(supervisor);
        let supervisor = host.start(per_owner);
        is_withdrawn(&supervisor);
        host.fabrics.kill(if per_owner { 2 } else { 0 });
        until("its box is back", || {
            let is_return = |event: &api::Event| event.kind == EventKind::FabricRestarted;
            supervisor.event_list(&EventQuery::default()).iter().any(is_return)
                && state(&supervisor, "source") == BoxState::Running
        });
        is_withdrawn(&supervisor);
    }
}

/// A box at the switch of another owner, which is learning or static.
#[test]
fn a_shared_switch_connects_boxes_of_two_fabrics() {
    for mode in [SwitchMode::Learning, SwitchMode::Static] {
        let host = Host::new(&format!("owner-links-{mode:?}"));
        let supervisor = host.start(true);
        let lan = CreateSwitch { mode, shared_with: [owner("bob")].into(), ..switch_of("alice", "lan") };
        supervisor.create_switch(lan).unwrap();
        supervisor.create_box(box_of("alice", "sink", "drop", &["lan"])).unwrap();
        // The probe's frames are to the zero address.
        if mode == SwitchMode::Static {
            let (zero, port) = (MacAddr::new([0; 6]), "sink.0".parse().unwrap());
            supervisor.set_address(&switch("lan"), zero, &port).unwrap();
        }
        let passes = |supervisor: &Supervisor| {
            let before = received_by(supervisor, "sink");
            until("frames pass from one fabric to the other", || {
                received_by(supervisor, "sink") > before + 1000
            });
        };
        let mut source = box_of("bob", "source", "send 60", &["lan"]);
        source.ports[0].limits.transparent = true;
        supervisor.create_box(source.clone()).unwrap();
        passes(&supervisor);
        let detail = supervisor.show_switch(&switch("lan")).unwrap();
        let mut ports: Vec<String> = detail.port_list.iter().map(|port| port.name.to_string()).collect();
        ports.sort();
        assert_eq!(ports, ["from-bob", "sink.0"]);
        let used = supervisor.remove_unused_switch(&switch("lan")).unwrap_err();
        assert!(used.to_string().contains("source"), "{used}");
        // Either fabric may end.
        for (number, of) in [(1, "alice"), (2, "bob")] {
            host.fabrics.kill(number);
            until_back(&supervisor, of, 1);
            if mode == SwitchMode::Static && number == 1 {
                let (zero, port) = (MacAddr::new([0; 6]), "sink.0".parse().unwrap());
                supervisor.set_address(&switch("lan"), zero, &port).unwrap();
            }
            until("its boxes are back", || {
                ["sink", "source"].iter().all(|name| state(&supervisor, name) == BoxState::Running)
            });
            passes(&supervisor);
        }
        // The next daemon changes nothing.
        let before = received_by(&supervisor, "sink");
        supervisor.end();
        drop(supervisor);
        let supervisor = host.start(true);
        assert!(received_by(&supervisor, "sink") >= before, "the counters go on");
        passes(&supervisor);
        // A fabric that ends while there is no daemon.
        supervisor.end();
        drop(supervisor);
        host.fabrics.kill(1);
        let supervisor = host.start(true);
        if mode == SwitchMode::Static {
            let (zero, port) = (MacAddr::new([0; 6]), "sink.0".parse().unwrap());
            supervisor.set_address(&switch("lan"), zero, &port).unwrap();
        }
        passes(&supervisor);
        // The port goes with the last box that needs it, and comes with the next.
        supervisor.remove_box(&name("source")).unwrap();
        assert_eq!(supervisor.show_switch(&switch("lan")).unwrap().port_list.len(), 1);
        supervisor.create_box(source).unwrap();
        passes(&supervisor);
        supervisor.remove_switch(&switch("lan")).unwrap();
        assert_eq!(supervisor.show_box(&name("source")).unwrap().ports[0].attach.to_string(), "-");
        // The new one is not shared, also when its fabrics start again.
        supervisor.create_switch(switch_of("alice", "lan")).unwrap();
        for (number, of) in [(1, "alice"), (2, "bob")] {
            host.fabrics.kill(number);
            until_back(&supervisor, of, 2);
            let ports = supervisor.show_switch(&switch("lan")).unwrap().port_list;
            let ports: Vec<String> = ports.iter().map(|port| port.name.to_string()).collect();
            assert_eq!(ports, ["sink.0"]);
        }
    }
}

#[test]
fn a_pipe_between_switches_of_two_owners_is_a_link() {
    let host = Host::new("owner-pipes");
    let supervisor = host.start(true);
    let shared = CreateSwitch { shared_with: [owner("bob")].into(), ..switch_of("alice", "wan") };
    supervisor.create_switch(shared).unwrap();
    let pipe = AddPort {
        name: "up".parse().unwrap(),
        driver: PortDriver::Pipe { switch: switch("wan"), port: "bob".parse().unwrap() },
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    supervisor.create_switch(CreateSwitch { ports: vec![pipe.clone()], ..switch_of("bob", "lan") }).unwrap();
    let mut source = box_of("bob", "source", "send 60", &["lan"]);
    source.ports[0].limits.transparent = true;
    supervisor.create_box(source).unwrap();
    supervisor.create_box(box_of("alice", "sink", "drop", &["wan"])).unwrap();
    let passes = || {
        let before = received_by(&supervisor, "sink");
        until("frames pass", || received_by(&supervisor, "sink") > before + 1000);
    };
    passes();
    let again = AddPort { name: "up2".parse().unwrap(), ..pipe.clone() };
    let error = supervisor.add_port(&switch("lan"), &again).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Exists, "{error}");
    for (number, of) in [(1, "alice"), (2, "bob")] {
        host.fabrics.kill(number);
        until_back(&supervisor, of, 1);
        passes();
    }
    supervisor.remove_port(&switch("wan"), &"bob".parse().unwrap()).unwrap();
    assert_eq!(supervisor.show_switch(&switch("lan")).unwrap().port_list.len(), 1);
    supervisor.add_port(&switch("lan"), &pipe).unwrap();
    passes();
    supervisor.remove_switch(&switch("wan")).unwrap();
    assert_eq!(supervisor.show_switch(&switch("lan")).unwrap().port_list.len(), 1);
}
