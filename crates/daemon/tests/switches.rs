//! Switches, pipes, captures and stacks.

mod support;

use api::{
    AddPort, AddressKind, CaptureQuery, ChangeAction, ConfigurationName, CreateBox, CreateSwitch, ErrorCode,
    EventKind, EventQuery, ExternalSwitch, Limits, PortDriver, PortName, Stack, SwitchMode,
};
use daemon::{Settings, Supervisor};
use std::time::Instant;
use support::{Folder, TIMEOUT, name, process, settings, state, supervisor, switch, until};

fn port(name: &str, driver: PortDriver) -> AddPort {
    AddPort {
        name: name.parse().unwrap(),
        driver,
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    }
}

fn port_name(name: &str) -> PortName {
    name.parse().unwrap()
}

fn received(supervisor: &Supervisor, box_name: &str, number: usize) -> u64 {
    supervisor.show_box(&name(box_name)).unwrap().ports[number].traffic.received_packets
}

/// A box's frames, with its port attached to a switch, to a pipe, and to nothing.
#[test]
fn frames_go_where_ports_are_attached() {
    support::in_each(|supervisor, sandbox| {
        let make = |name: &str, command: &str, ports: &[&str]| {
            supervisor.create_box(CreateBox { sandbox, ..process(name, command, ports) }).unwrap()
        };
        // The probe's frames are from and to the zero address.
        let lan = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(switch("lan")) };
        supervisor.create_switch(lan).unwrap();
        make("sink", "drop", &["lan"]);
        let zero = api::MacAddr::new([0; 6]);
        supervisor.set_address(&switch("lan"), zero, &port_name("sink.0")).unwrap();
        make("source", "send 60", &["lan"]);
        make("middle", "forward", &["pipe:in", "pipe:out"]);
        make("from", "send 60", &["pipe:in"]);
        make("to", "drop", &["pipe:out"]);
        make("alone", "send 60", &["-"]);
        until("frames arrive", || {
            received(supervisor, "sink", 0) > 1000 && received(supervisor, "to", 0) > 1000
        });
        until("frames are dropped", || {
            let drops = supervisor.show_box(&name("alone")).unwrap().status.drops;
            drops.get("no_route").is_some_and(|count| *count > 1000)
        });
        let refused = supervisor.create_box(process("third", "drop", &["pipe:in"])).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Refused);
        assert!(refused.to_string().contains("two ends"), "{refused}");
        let detail = supervisor.show_switch(&switch("lan")).unwrap();
        let names: Vec<String> = detail.port_list.iter().map(|port| port.name.to_string()).collect();
        assert_eq!(names, ["sink.0", "source.0"]);
        assert!(detail.status.traffic.received_packets > 1000);
        until("rates are known", || {
            let status = supervisor.show_box(&name("source")).unwrap().status;
            status.rates.sent_packets > 0.0 && status.usage.switch_ns > 0 && status.usage.own_ns > 0
        });
        // The switch is removed, its boxes keep running.
        supervisor.remove_switch(&switch("lan")).unwrap();
        let detail = supervisor.show_box(&name("source")).unwrap();
        assert_eq!(detail.ports[0].attach.to_string(), "-");
        until("what it sends is dropped", || {
            let drops = supervisor.show_box(&name("source")).unwrap().status.drops;
            drops.get("no_route").is_some_and(|count| *count > 0)
        });
        // An unattached port is attached to another switch.
        supervisor.create_switch(CreateSwitch::new(switch("wan"))).unwrap();
        supervisor.add_port(&switch("wan"), &port("far", PortDriver::Null {})).unwrap();
        let driver = PortDriver::Box { name: name("source"), port: 0 };
        let limits = Limits { transparent: true, ..Limits::default() };
        let near = AddPort { limits, ..port("near", driver) };
        let added = supervisor.add_port(&switch("wan"), &near).unwrap();
        assert_eq!(added.fault, None);
        until("frames come in there", || {
            supervisor.show_switch(&switch("wan")).unwrap().status.traffic.received_packets > 1000
        });
        supervisor.remove_box(&name("source")).unwrap();
        assert_eq!(supervisor.show_switch(&switch("wan")).unwrap().port_list.len(), 1);
    });
}

/// A box at a pipe that is killed returns to its end of the pipe; its packets are either counted as lost or still
/// waiting.
#[test]
fn a_pipe_outlives_its_boxes() {
    let supervisor = supervisor();
    supervisor.create_box(process("from", "send 60", &["pipe:a"])).unwrap();
    supervisor.create_box(process("to", "drop", &["pipe:a"])).unwrap();
    for _ in 0..3 {
        let before = received(&supervisor, "to", 0);
        until("frames pass", || received(&supervisor, "to", 0) > before + 1000);
        supervisor.kill_box(&name("to")).unwrap();
        until("the box is back", || support::state(&supervisor, "to") == api::BoxState::Running);
        supervisor.remove_box(&name("from")).unwrap();
        supervisor.create_box(process("from", "send 60", &["pipe:a"])).unwrap();
    }
}

/// Packets in a box's rings when it ends are counted as lost, at a pipe and at a switch.
#[test]
fn packets_in_the_rings_of_a_box_that_ends_are_counted() {
    let supervisor = supervisor();
    // The probe's frames are from and to the zero address.
    let lan = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(switch("lan")) };
    supervisor.create_switch(lan).unwrap();
    for attach in ["pipe:a", "lan"] {
        supervisor.create_box(process("from", "send 60", &[attach])).unwrap();
        let to = CreateBox { restart: api::Restart::Never, ..process("to", "drop", &[attach]) };
        supervisor.create_box(to).unwrap();
        if attach == "lan" {
            supervisor.set_address(&switch("lan"), api::MacAddr::new([0; 6]), &port_name("to.0")).unwrap();
        }
        supervisor.suspend_box(&name("to")).unwrap();
        // The ring is full when the count stops growing over many looks: the sender may be delayed.
        let (mut before, mut looks) = (0, 0);
        until("the ring is full", || {
            let now = received(&supervisor, "to", 0);
            looks = if now > 0 && std::mem::replace(&mut before, now) == now { looks + 1 } else { 0 };
            looks > 100
        });
        supervisor.kill_box(&name("to")).unwrap();
        until("the box is gone", || support::state(&supervisor, "to") == api::BoxState::Crashed);
        let detail = supervisor.show_box(&name("to")).unwrap();
        let slots = u64::from(u32::from(detail.status.ring));
        assert_eq!(detail.status.drops.get("box_ended"), Some(&slots), "{attach}: {:?}", detail.status.drops);
        assert_eq!(detail.ports[0].drops.get("box_ended"), Some(&slots));
        supervisor.remove_box(&name("to")).unwrap();
        supervisor.remove_box(&name("from")).unwrap();
    }
}

/// Size in bytes of the pool that boxes at pipes share.
const POOL: u64 = 256 << 20;

/// Whether a process has a packet pool mapped.
fn has_pool(pid: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let size = |line: &str| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let [from, to] = [from, to].map(|address| u64::from_str_radix(address, 16).unwrap_or(0));
        Some(to - from)
    };
    maps.lines().filter_map(size).any(|bytes| bytes == POOL)
}

/// Boxes at pipes, and boxes that request it, share a pool. If one in the middle of a chain is killed, or restarts more
/// often than there are buffers, the others are unaffected, and it gets buffers of the pool again.
#[test]
fn a_chain_in_one_pool_survives_a_crash_of_its_middle() {
    support::in_each(|supervisor, sandbox| {
        for name in ["a", "b"] {
            let definition = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(switch(name)) };
            supervisor.create_switch(definition).unwrap();
        }
        for (joints, share_packets) in [(["pipe:a", "pipe:b"], false), (["a", "b"], true)] {
            let large = |name, command, ports: &[&str], share_packets| {
                let ring = 2048.try_into().unwrap();
                let definition = process(name, command, ports);
                let definition = CreateBox { sandbox, ring, share_packets, ..definition };
                let status = supervisor.create_box(definition).unwrap().status;
                // Frames are all zeros, addresses included.
                if let (true, "middle" | "to") = (share_packets, name) {
                    let (at, box_port) = (if name == "middle" { "a" } else { "b" }, format!("{name}.0"));
                    supervisor
                        .set_address(&switch(at), api::MacAddr::new([0; 6]), &port_name(&box_port))
                        .unwrap();
                }
                status
            };
            let alone = large("alone", "mirror", &["-"], false);
            assert!(!alone.share_packets && alone.pid.is_none_or(|pid| !has_pool(pid)));
            large("from", "send 60", &joints[..1], share_packets);
            large("to", "drop", &joints[1..], share_packets);
            large("middle", "forward", &joints, share_packets);
            for round in 0..20 {
                let before = received(supervisor, "to", 0);
                // More than the rings hold, so that the next kill finds them full.
                until("frames pass", || received(supervisor, "to", 0) > before + 5_000);
                let status = supervisor.show_box(&name("middle")).unwrap().status;
                assert!(status.share_packets && status.pid.is_none_or(has_pool), "{round}");
                if round < 2 {
                    supervisor.kill_box(&name("middle")).unwrap();
                    let back = || support::state(supervisor, "middle") == api::BoxState::Running;
                    until("the box is back", back);
                } else {
                    supervisor.remove_box(&name("middle")).unwrap();
                    large("middle", "forward", &joints, share_packets);
                }
            }
            for end in ["from", "to"] {
                let status = supervisor.show_box(&name(end)).unwrap().status;
                assert_eq!((status.restarts, status.state), (0, api::BoxState::Running), "{end}");
                assert!(status.pid.is_none_or(has_pool));
            }
            for member in ["alone", "from", "to", "middle"] {
                supervisor.remove_box(&name(member)).unwrap();
            }
        }
    });
}

#[test]
fn addresses_are_set_listed_and_removed() {
    let supervisor = supervisor();
    let lan = switch("lan");
    let definition = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(lan.clone()) };
    supervisor.create_switch(definition.clone()).unwrap();
    assert_eq!(supervisor.create_switch(definition).unwrap_err().code(), ErrorCode::Exists);
    supervisor.add_port(&lan, &port("far", PortDriver::Null {})).unwrap();
    let again = supervisor.add_port(&lan, &port("far", PortDriver::Null {})).unwrap_err();
    assert_eq!(again.code(), ErrorCode::Exists);
    let mac = api::MacAddr::new([2, 0, 0, 0, 0, 7]);
    supervisor.set_address(&lan, mac, &port_name("far")).unwrap();
    let none = supervisor.set_address(&lan, mac, &port_name("none")).unwrap_err();
    assert_eq!(none.code(), ErrorCode::NotFound);
    let detail = supervisor.create_box(process("fw", "drop", &["lan"])).unwrap();
    let known = supervisor.addresses(&lan).unwrap();
    let rows: Vec<_> = known.iter().map(|entry| (entry.mac, entry.port.as_str(), entry.kind)).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.contains(&(mac, "far", AddressKind::Static)));
    assert!(rows.contains(&(detail.ports[0].mac, "fw.0", AddressKind::Static)));
    supervisor.remove_address(&lan, mac).unwrap();
    assert_eq!(supervisor.remove_address(&lan, mac).unwrap_err().code(), ErrorCode::NotFound);
    supervisor.remove_port(&lan, &port_name("far")).unwrap();
    let gone = supervisor.remove_port(&lan, &port_name("far")).unwrap_err();
    assert_eq!(gone.code(), ErrorCode::NotFound);
    supervisor.create_switch(CreateSwitch::new(switch("learning"))).unwrap();
    let refused = supervisor.remove_address(&switch("learning"), mac).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NotFound);
    // Pipes between switches are created and removed with both ends.
    let driver = PortDriver::Pipe { switch: switch("learning"), port: port_name("up") };
    supervisor.add_port(&lan, &port("down", driver)).unwrap();
    assert_eq!(supervisor.show_switch(&switch("learning")).unwrap().port_list.len(), 1);
    supervisor.remove_port(&switch("learning"), &port_name("up")).unwrap();
    assert_eq!(supervisor.show_switch(&lan).unwrap().port_list.len(), 1);
    let missing = port("tap", PortDriver::AfPacket { device: Some("none-such".parse().unwrap()) });
    assert_eq!(supervisor.add_port(&lan, &missing).unwrap_err().code(), ErrorCode::Refused);
}

/// A learning switch that is connected to itself, or twice to one network, would send broadcasts around without end.
#[test]
fn a_learning_switch_is_not_made_a_loop() {
    let supervisor = supervisor();
    let lan = switch("lan");
    let pipe = port("out", PortDriver::Pipe { switch: lan.clone(), port: port_name("in") });
    let interface = |name| port(name, PortDriver::AfPacket { device: Some("none-such".parse().unwrap()) });
    let refused = |ports: &[api::AddPort]| {
        let definition = CreateSwitch { ports: ports.to_vec(), ..CreateSwitch::new(lan.clone()) };
        supervisor.create_switch(definition).unwrap_err().to_string()
    };
    assert!(refused(std::slice::from_ref(&pipe)).contains("a pipe from switch lan to itself"));
    let twice = refused(&[interface("one"), interface("other")]);
    assert!(twice.contains("port lan/other has this device"), "{twice}");
    supervisor.create_switch(CreateSwitch::new(lan.clone())).unwrap();
    assert_eq!(supervisor.add_port(&lan, &pipe).unwrap_err().code(), ErrorCode::Invalid);
    assert!(supervisor.show_switch(&lan).unwrap().port_list.is_empty());
    // Other switches send packets where they are told to.
    let fixed = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(switch("fixed")) };
    supervisor.create_switch(fixed).unwrap();
    let pipe = port("out", PortDriver::Pipe { switch: switch("fixed"), port: port_name("in") });
    supervisor.add_port(&switch("fixed"), &pipe).unwrap();
}

/// Writes a capture file with as many frames of 60 bytes from one address to another.
fn write_frames(path: &std::path::Path, to: api::MacAddr, from: api::MacAddr, count: usize) {
    let frame = [&to.0.0[..], &from.0.0, &[8, 0], &[0; 46]].concat();
    let encoder = capture::PcapEncoder::new(capture::LinkType::ETHERNET);
    let mut file = encoder.file_header().to_vec();
    for _ in 0..count {
        encoder.record(0, frame.len() as u32, &frame, &mut file);
    }
    std::fs::write(path, &file).unwrap();
}

/// The address of a box's port belongs to it at a learning switch: no other port can take it, also while the box is
/// stopped, and its frames go nowhere else.
#[test]
fn the_address_of_a_box_cannot_be_taken() {
    let folder = Folder::new("spoof");
    let [owner_mac, peer_mac] = [1, 2].map(|number| api::MacAddr::new([2, 0, 0, 0, 0, number]));
    let (theft, calls) = (folder.file("theft.pcap"), folder.file("calls.pcap"));
    write_frames(&theft, peer_mac, owner_mac, 50);
    write_frames(&calls, owner_mac, peer_mac, 50);
    let supervisor = supervisor();
    let lan = switch("lan");
    supervisor.create_switch(CreateSwitch::new(lan.clone())).unwrap();
    supervisor.add_port(&lan, &port("other", PortDriver::Null {})).unwrap();
    let with_mac = |name: &str, ports: &[&str]| {
        let mut definition = process(name, "drop", ports);
        definition.ports[0].mac = Some(owner_mac);
        definition
    };
    supervisor.create_box(with_mac("owner", &["lan"])).unwrap();
    let twice = supervisor.create_box(with_mac("twice", &["lan"])).unwrap_err();
    assert_eq!(twice.code(), ErrorCode::Refused);
    assert!(twice.to_string().contains("already assigned to another port"), "{twice}");
    // A port that is attached later has the same right.
    supervisor.create_box(with_mac("later", &["-"])).unwrap();
    let driver = PortDriver::Box { name: name("later"), port: 0 };
    assert!(supervisor.add_port(&lan, &port("later", driver)).is_err());

    let play = |name: &str, path: &std::path::Path| {
        let read =
            PortDriver::Pcap { read: Some(path.display().to_string()), write: None, repeat: 1, rate: None };
        supervisor.add_port(&lan, &port(name, read)).unwrap();
        let show = || supervisor.show_switch(&lan).unwrap().port_list;
        let played =
            || show().iter().any(|port| port.name == port_name(name) && port.traffic.received_packets == 50);
        until("the frames are played", played);
        let row = |port: &api::SwitchPort| {
            let drops = port.drops.iter().filter(|(_, count)| **count > 0);
            let drops: Vec<_> = drops.map(|(reason, count)| (reason.clone(), *count)).collect();
            (port.name.to_string(), port.traffic.sent_packets, drops)
        };
        let rows = show().iter().map(row).collect::<Vec<_>>();
        supervisor.remove_port(&lan, &port_name(name)).unwrap();
        rows
    };
    let row = |name: &str, sent, drops: &[(&str, u64)]| {
        let drops: Vec<_> = drops.iter().map(|(reason, count)| (reason.to_string(), *count)).collect();
        (name.to_string(), sent, drops)
    };
    let spoofed = row("thief", 0, &[("spoofed", 50)]);
    assert_eq!(play("thief", &theft), [row("other", 0, &[]), row("owner.0", 0, &[]), spoofed.clone()]);
    assert_eq!(play("peer", &calls), [row("other", 0, &[]), row("owner.0", 50, &[]), row("peer", 0, &[])]);
    supervisor.stop_box(&name("owner")).unwrap();
    assert_eq!(play("thief", &theft), [row("other", 0, &[]), row("owner.0", 50, &[]), spoofed]);
    let down = row("owner.0", 50, &[("down", 50)]);
    assert_eq!(play("peer", &calls), [row("other", 0, &[]), down, row("peer", 0, &[])]);
    supervisor.start_box(&name("owner")).unwrap();
    let again = row("owner.0", 100, &[("down", 50)]);
    assert_eq!(play("peer", &calls), [row("other", 0, &[]), again, row("peer", 0, &[])]);
    let known = supervisor.addresses(&lan).unwrap();
    let rows: Vec<_> = known.iter().map(|entry| (entry.mac, entry.port.as_str(), entry.kind)).collect();
    assert_eq!(rows, [(owner_mac, "owner.0", AddressKind::Static)]);

    // The switch has what its ports received, sent and lost, also those that were removed.
    let sum = || {
        let status = supervisor.show_switch(&lan).unwrap().status;
        let drops: Vec<_> = status.drops.into_iter().filter(|(_, count)| *count > 0).collect();
        (status.traffic.received_packets, status.traffic.sent_packets, drops)
    };
    let expected = (250, 100, vec![("down".to_string(), 50), ("spoofed".to_string(), 100)]);
    assert_eq!(sum(), expected);
    supervisor.remove_box(&name("owner")).unwrap();
    assert_eq!(supervisor.show_switch(&lan).unwrap().port_list.len(), 1);
    assert_eq!(sum(), expected);
}

/// Without the right to be transparent, a box sends from the address of its port only; `source` sets another address.
#[test]
fn a_box_sends_from_its_own_address_only() {
    let supervisor = supervisor();
    let zero = Some(api::MacAddr::new([0; 6]));
    let bound = Limits::default();
    let transparent = Limits { transparent: true, ..Limits::default() };
    let other = Limits { source: zero, ..Limits::default() };
    for (lan, mode) in [("static", SwitchMode::Static), ("learning", SwitchMode::Learning)] {
        let lan = switch(lan);
        let far = AddPort { default: mode == SwitchMode::Static, ..port("far", PortDriver::Null {}) };
        let definition = CreateSwitch { mode, ports: vec![far], ..CreateSwitch::new(lan.clone()) };
        supervisor.create_switch(definition).unwrap();
        let show = || supervisor.show_switch(&lan).unwrap().port_list;
        for (limits, passes) in [(&bound, false), (&transparent, true), (&other, true)] {
            // The probe's frames are from the zero address. The port is attached at once, or later.
            for attach in [lan.as_str(), "-"] {
                let mut definition = process("sender", "send 60", &[attach]);
                definition.ports[0].limits = limits.clone();
                supervisor.create_box(definition).unwrap();
                let name = if attach == "-" { "later" } else { "sender.0" };
                if attach == "-" {
                    let driver = PortDriver::Box { name: self::name("sender"), port: 0 };
                    supervisor
                        .add_port(&lan, &AddPort { limits: limits.clone(), ..port(name, driver) })
                        .unwrap();
                }
                until("frames come in", || {
                    show()
                        .iter()
                        .any(|port| port.name == port_name(name) && port.traffic.received_packets > 1000)
                });
                supervisor.suspend_box(&self::name("sender")).unwrap();
                let ports = show();
                let sender = ports.iter().find(|port| port.name == port_name(name)).unwrap();
                let spoofed = sender.drops.get("spoofed").copied().unwrap_or(0);
                let expected = if passes { 0 } else { sender.traffic.received_packets };
                assert_eq!(spoofed, expected, "{lan} {limits:?}: {:?}", sender.drops);
                supervisor.remove_box(&self::name("sender")).unwrap();
            }
            let far = show().into_iter().find(|port| port.name == port_name("far")).unwrap();
            assert_eq!(far.traffic.sent_packets > 0, passes, "{lan} {limits:?}");
        }
    }
}

/// A capture file is replayed into a switch, and what comes out at the other end is captured.
#[test]
fn captures_are_replayed_written_and_streamed() {
    let folder = Folder::new("captures");
    let input = folder.file("in.pcap");
    let frames: Vec<Vec<u8>> = (0..50u8)
        .map(|number| [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0][..], &[number; 46]].concat())
        .collect();
    let encoder = capture::PcapEncoder::new(capture::LinkType::ETHERNET);
    let mut file = encoder.file_header().to_vec();
    for frame in &frames {
        encoder.record(0, frame.len() as u32, frame, &mut file);
    }
    std::fs::write(&input, &file).unwrap();
    let supervisor = supervisor();
    let lan = switch("lan");
    supervisor.create_switch(CreateSwitch::new(lan.clone())).unwrap();
    supervisor.create_box(process("fw", "mirror", &["lan"])).unwrap();
    let output = folder.file("out.pcap").display().to_string();
    let write = PortDriver::Pcap { read: None, write: Some(output.clone()), repeat: 1, rate: None };
    supervisor.add_port(&lan, &port("out", write)).unwrap();
    let taken = supervisor
        .capture_bytes(&CaptureQuery { port: "fw:0".parse().unwrap(), snap: Some(32), count: Some(50) })
        .unwrap();
    let missing = CaptureQuery { port: "fw:7".parse().unwrap(), snap: None, count: None };
    assert_eq!(supervisor.capture_bytes(&missing).err().unwrap().code(), ErrorCode::NotFound);
    let read =
        PortDriver::Pcap { read: Some(input.display().to_string()), write: None, repeat: 1, rate: None };
    supervisor.add_port(&lan, &port("in", read)).unwrap();
    // Every frame is captured twice: on its way into the box, and back.
    let bytes: Vec<u8> = taken.flatten().collect();
    assert_eq!(bytes.len(), 24 + 50 * (16 + 32));
    until("the capture is written", || {
        std::fs::metadata(&output).is_ok_and(|file| file.len() >= 24 + 50 * (16 + 60))
    });
    // A duplicate port name is refused before the port's file is touched.
    let again = PortDriver::Pcap { read: None, write: Some(output.clone()), repeat: 1, rate: None };
    let length = std::fs::metadata(&output).unwrap().len();
    assert_eq!(supervisor.add_port(&lan, &port("out", again)).unwrap_err().code(), ErrorCode::Exists);
    assert!(std::fs::metadata(&output).unwrap().len() >= length);
    let relative = PortDriver::Pcap { read: Some("in.pcap".into()), write: None, repeat: 1, rate: None };
    let refused = supervisor.add_port(&lan, &port("relative", relative)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Invalid);
    // A capture at an end of a pipe delays no packets.
    supervisor.create_box(process("from", "send 60", &["pipe:a"])).unwrap();
    supervisor.create_box(process("to", "drop", &["pipe:a"])).unwrap();
    let query = CaptureQuery { port: "to:0".parse().unwrap(), snap: None, count: Some(100) };
    let bytes: usize = supervisor.capture_bytes(&query).unwrap().map(|piece| piece.len()).sum();
    assert_eq!(bytes, 24 + 100 * (16 + 60));
    let before = received(&supervisor, "to", 0);
    until("frames pass on", || received(&supervisor, "to", 0) > before + 1000);
}

fn actions(changes: &api::Changes) -> Vec<String> {
    let one = |change: &api::Change| format!("{:?} {} {}", change.action, change.subject, change.detail);
    changes.changes.iter().map(|change| one(change).trim().to_string()).collect()
}

#[test]
fn a_stack_is_applied_whole_or_not_at_all() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let mut lan = CreateSwitch::new(switch("lan"));
    lan.ports.push(port("up", PortDriver::Null {}));
    let mut stack = Stack {
        switches: vec![lan],
        boxes: vec![process("fw", "mirror", &["lan"]), process("nat", "drop", &["lan", "pipe:a"])],
        ..Stack::default()
    };
    assert_eq!(
        actions(&supervisor.diff_stack(&edge, &stack).unwrap()),
        ["Create switch/lan", "Create box/fw", "Create box/nat"]
    );
    assert!(supervisor.boxes().unwrap().is_empty());
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());
    let status = &supervisor.stacks().unwrap()[0];
    assert_eq!((status.boxes.len(), status.switches.len()), (2, 1));

    // A rejected configuration: nothing changes.
    let mut bad = stack.clone();
    bad.boxes[0].configuration = "dance".into();
    bad.boxes[1].memory = api::Size(2 << 20);
    assert_eq!(supervisor.apply_stack(&edge, bad).unwrap_err().code(), ErrorCode::Refused);
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());

    // A change that fails halfway is undone.
    let mut late = stack.clone();
    late.boxes[0].configuration = "drop".into();
    late.switches[0].ports.push(port("extra", PortDriver::Null {}));
    late.boxes.push(process("third", "drop", &["nowhere"]));
    assert_eq!(supervisor.apply_stack(&edge, late).unwrap_err().code(), ErrorCode::NotFound);
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());
    let events = supervisor.event_list(&EventQuery::default());
    assert!(events.iter().any(|event| event.kind == EventKind::StackRolledBack));
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));

    stack.boxes[0].configuration = "drop".into();
    stack.boxes[0].cpu_weight = 300.try_into().unwrap();
    stack.boxes[1].memory = api::Size(2 << 20);
    stack.switches[0].ports[0] = port("down", PortDriver::Null {});
    let changes = supervisor.apply_stack(&edge, stack.clone()).unwrap();
    assert_eq!(
        actions(&changes),
        [
            "Remove switch/lan/up",
            "Create switch/lan/down",
            "Reload box/fw weight 100 -> 300; configuration",
            "Replace box/nat memory 1M -> 2M"
        ]
    );
    let main = ConfigurationName::main();
    assert_eq!(supervisor.show_configuration(&name("fw"), &main).unwrap().configuration, "drop");
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());

    // A box outside the stack is not changed.
    supervisor.create_box(process("other", "drop", &[])).unwrap();
    let theirs = Stack { boxes: vec![process("other", "drop", &[])], ..Stack::default() };
    assert_eq!(supervisor.apply_stack(&edge, theirs).unwrap_err().code(), ErrorCode::Exists);
    stack.boxes.pop();
    let changes = supervisor.apply_stack(&edge, stack).unwrap();
    assert_eq!(changes.changes[0].action, ChangeAction::Remove);
    supervisor.remove_stack(&edge).unwrap();
    assert_eq!(supervisor.remove_stack(&edge).unwrap_err().code(), ErrorCode::NotFound);
    let left: Vec<_> = supervisor.boxes().unwrap().into_iter().map(|status| status.name).collect();
    assert_eq!(left, [name("other")]);
    assert!(supervisor.switches().unwrap().is_empty());
}

/// An update of a stack that fails in a late step, or when it is stored, is undone with all its removals.
#[test]
fn a_stack_that_cannot_be_stored_is_undone() {
    let supervisor = Supervisor::start(&Settings { store_pages: Some(96), ..settings() }).unwrap();
    let edge = "edge".parse().unwrap();
    let mut lan = CreateSwitch::new(switch("lan"));
    lan.ports.push(port("up", PortDriver::Null {}));
    lan.ports.push(port("down", PortDriver::Pipe { switch: switch("wan"), port: port_name("far") }));
    let wan = CreateSwitch::new(switch("wan"));
    let boxes = vec![process("fw", "mirror", &["lan"]), process("nat", "drop", &["lan", "wan"])];
    let stack = Stack { switches: vec![lan, wan], boxes, ..Stack::default() };
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    let attached = |name: &str| {
        let ports = supervisor.show_box(&self::name(name)).unwrap().ports;
        ports.iter().map(|port| port.attach.to_string()).collect::<Vec<_>>()
    };
    let ports = |name: &str| supervisor.show_switch(&switch(name)).unwrap().port_list.len();
    let large = format!("drop{}", " ".repeat(1 << 20));

    // A new box is written before it starts; a replaced one with the commit.
    let mut new = stack.clone();
    new.switches.clear();
    new.boxes = vec![process("fw", "drop", &[]), process("late", &large, &[])];
    let mut replaced = stack.clone();
    replaced.switches.pop();
    replaced.switches[0].ports.pop();
    replaced.boxes = vec![CreateBox { memory: api::Size(16 << 20), ..process("fw", &large, &["lan"]) }];
    for (number, failing) in [new, replaced].into_iter().enumerate() {
        let failure = supervisor.apply_stack(&edge, failing).unwrap_err();
        assert_eq!(failure.code(), ErrorCode::Store, "{number}: {failure}");
        let left = supervisor.diff_stack(&edge, &stack).unwrap();
        assert!(left.changes.is_empty(), "{number}: {left:?}");
        assert_eq!((attached("fw"), attached("nat")), (vec!["lan".into()], vec!["lan".into(), "wan".into()]));
        assert_eq!((ports("lan"), ports("wan")), (4, 2), "{number}");
        for name in ["fw", "nat"] {
            assert_eq!(state(&supervisor, name), api::BoxState::Running, "{number}");
        }
    }
    let events = supervisor.event_list(&EventQuery::default());
    let undone = events.iter().filter(|event| event.kind == EventKind::StackRolledBack).count();
    assert_eq!(undone, 2);
    // Nothing of it was left in the store, so a small change has room.
    let changes = supervisor.apply_stack(&edge, Stack { boxes: Vec::new(), ..stack }).unwrap();
    assert_eq!(changes.changes.len(), 2);
    supervisor.remove_stack(&edge).unwrap();
    assert!(supervisor.switches().unwrap().is_empty());
}

/// A stack leaves alone what it did not make: at its own switches, also when they are replaced, and at those that it only
/// uses.
#[test]
fn a_stack_touches_only_what_it_made() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let mut lan = CreateSwitch::new(switch("lan"));
    lan.ports.push(port("up", PortDriver::Null {}));
    let pipe = |to: &str, far: &str| PortDriver::Pipe { switch: switch(to), port: port_name(far) };
    lan.ports.push(port("down", pipe("backbone", "lan")));
    let external = ExternalSwitch { name: switch("backbone"), ports: vec![port("mon", PortDriver::Null {})] };
    let stack = Stack {
        switches: vec![lan],
        boxes: vec![process("fw", "mirror", &["lan", "backbone"])],
        external: vec![external],
        ..Stack::default()
    };
    let apply = |stack: &Stack| supervisor.apply_stack(&edge, stack.clone());
    let missing = apply(&stack).unwrap_err();
    assert_eq!(
        (missing.code(), missing.to_string().as_str()),
        (ErrorCode::NotFound, "there is no switch backbone")
    );
    supervisor.create_switch(CreateSwitch::new(switch("backbone"))).unwrap();
    let changes = apply(&stack).unwrap();
    assert_eq!(actions(&changes), ["Create switch/lan", "Create switch/backbone/mon", "Create box/fw"]);
    // By hand: a port at each switch, a pipe from outside, and a box.
    for name in ["lan", "backbone"] {
        supervisor.add_port(&switch(name), &port("hand", PortDriver::Null {})).unwrap();
    }
    supervisor.create_switch(CreateSwitch::new(switch("other"))).unwrap();
    supervisor.add_port(&switch("other"), &port("out", pipe("lan", "in"))).unwrap();
    supervisor.create_box(process("mine", "mirror", &["lan"])).unwrap();
    let ports = |name: &str| {
        let ports = supervisor.show_switch(&switch(name)).unwrap().port_list;
        let port = |port: &api::SwitchPort| {
            let maker = port.stack.as_ref().map(|stack| format!(" of {stack}")).unwrap_or_default();
            format!("{}{maker}", port.name)
        };
        ports.iter().map(port).collect::<Vec<_>>()
    };
    let lan_ports = ["down of edge", "fw.0", "hand", "in", "mine.0", "up of edge"];
    let backbone_ports = ["fw.1", "hand", "lan", "mon of edge"];
    let check = || {
        assert_eq!(
            (ports("lan"), ports("backbone")),
            (lan_ports.map(String::from).into(), backbone_ports.map(String::from).into())
        )
    };
    let changes = apply(&stack).unwrap();
    assert_eq!((actions(&changes), changes.left_alone), (vec![], vec!["switch/lan/hand".to_string()]));
    check();
    // A replaced switch keeps them too.
    let mut replaced = stack.clone();
    replaced.switches[0].age_seconds = 7;
    assert_eq!(actions(&apply(&replaced).unwrap()), ["Replace switch/lan age 300 -> 7"]);
    check();
    assert_eq!(supervisor.show_switch(&switch("other")).unwrap().port_list.len(), 1);
    // What is removed by hand is added again. A port that differs from the definition is not touched.
    supervisor.remove_port(&switch("backbone"), &port_name("mon")).unwrap();
    assert_eq!(actions(&apply(&replaced).unwrap()), ["Create switch/backbone/mon"]);
    let mut conflicting = replaced.clone();
    conflicting.external[0].ports.push(AddPort { default: true, ..port("hand", PortDriver::Null {}) });
    let refused = apply(&conflicting).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Exists);
    assert!(refused.to_string().contains("backbone/hand"), "{refused}");
    check();
    // Removed ports, and the whole stack.
    let mut fewer = replaced.clone();
    fewer.external.clear();
    fewer.switches[0].ports.pop();
    let changes = apply(&fewer).unwrap();
    assert_eq!(actions(&changes), ["Remove switch/lan/down", "Remove switch/backbone/mon"]);
    supervisor.remove_stack_by_force(&edge).unwrap();
    assert_eq!((ports("backbone"), ports("other")), (vec!["hand".to_string()], vec![]));
}

/// A removal that is not forced names what uses the object, and changes nothing.
#[test]
fn what_is_in_use_is_removed_only_by_force() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let pipe = |to: &str, far: &str| PortDriver::Pipe { switch: switch(to), port: port_name(far) };
    let mut lan = CreateSwitch::new(switch("lan"));
    supervisor.create_switch(CreateSwitch::new(switch("wan"))).unwrap();
    lan.ports.push(port("up", pipe("wan", "lan")));
    let stack =
        Stack { switches: vec![lan], boxes: vec![process("fw", "mirror", &["lan"])], ..Stack::default() };
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    supervisor.create_box(process("mine", "mirror", &["lan"])).unwrap();
    let refused = |result: Result<_, daemon::OperationError>, message: &str| {
        let failure = result.unwrap_err();
        assert_eq!((failure.code(), failure.to_string().as_str()), (ErrorCode::Busy, message));
    };
    refused(supervisor.remove_stopped_box(&name("mine")), "box mine is not stopped");
    let users = "switch lan is used by box fw, box mine, switch wan";
    refused(supervisor.remove_unused_switch(&switch("lan")), users);
    refused(supervisor.remove_unused_switch(&switch("wan")), "switch wan is used by switch lan");
    let remove = |port: &str| supervisor.remove_unused_port(&switch("lan"), &port_name(port));
    refused(remove("mine.0"), "port lan/mine.0 is used by box mine");
    refused(remove("up"), "port lan/up is used by switch wan");
    // The stack may remove its own box and its own pipe, but not a switch that another box uses.
    refused(supervisor.remove_stack(&edge).map(drop), "switch lan is used by box mine");
    refused(supervisor.apply_stack(&edge, Stack::default()).map(drop), "switch lan is used by box mine");
    assert!(supervisor.diff_stack(&edge, &stack).unwrap().changes.is_empty());
    supervisor.stop_box(&name("mine")).unwrap();
    supervisor.remove_stopped_box(&name("mine")).unwrap();
    supervisor.add_port(&switch("lan"), &port("hand", PortDriver::Null {})).unwrap();
    refused(supervisor.remove_stack(&edge).map(drop), "switch lan is used by port lan/hand");
    supervisor.add_port(&switch("wan"), &port("in", pipe("lan", "out"))).unwrap();
    remove("hand").unwrap();
    refused(supervisor.remove_stack(&edge).map(drop), "switch lan is used by switch wan");
    supervisor.remove_stack_by_force(&edge).unwrap();
    assert!(supervisor.show_switch(&switch("wan")).unwrap().port_list.is_empty());
    supervisor.remove_unused_switch(&switch("wan")).unwrap();
}

/// A rollback that comes while another operation uses the stack's objects waits for it.
#[test]
fn a_rollback_waits_for_other_operations() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let boxes = vec![process("fw", "mirror", &["-"])];
    let stack = Stack { boxes, ..Stack::default() };
    let time = std::time::Duration::from_secs(1);
    supervisor.apply_stack_within(&edge, stack, Some(time), false).unwrap();
    std::thread::scope(|scope| {
        // Its reply never comes, or came just before the loop.
        let install = || loop {
            let request = api::Install {
                configuration: "loop".into(),
                source: None,
                files: Vec::new(),
                uploads: Vec::new(),
            };
            if supervisor.install(&name("fw"), &ConfigurationName::main(), &request).is_err() {
                break;
            }
        };
        scope.spawn(install);
        std::thread::sleep(time * 5);
        // The box is stopped after the rollback was due, or the rollback has removed it.
        let _ = supervisor.stop_box(&name("fw"));
        until("the stack is rolled back", || supervisor.stacks().unwrap().is_empty());
    });
    assert!(supervisor.boxes().unwrap().is_empty());
    let events = supervisor.event_list(&EventQuery::default());
    let rolled_back = events.iter().filter(|event| event.kind == EventKind::StackRolledBack);
    let messages: Vec<&str> = rolled_back.map(|event| event.message.as_str()).collect();
    assert_eq!(messages, ["stack edge was rolled back: it was not confirmed in time"]);
}

/// A box is attached again when a switch of the name in its definition exists again.
#[test]
fn a_recreated_switch_gets_its_boxes_back() {
    let folder = Folder::new("recreated");
    let settings = Settings { store: Some(folder.file("store")), ..settings() };
    let attached = |supervisor: &Supervisor| {
        let ports = supervisor.show_box(&name("fw")).unwrap().ports;
        ports.iter().map(|port| port.attach.to_string()).collect::<Vec<_>>()
    };
    {
        let supervisor = Supervisor::start(&settings).unwrap();
        supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
        supervisor.create_switch(CreateSwitch::new(switch("wan"))).unwrap();
        supervisor.create_box(process("fw", "mirror", &["lan", "wan"])).unwrap();
        supervisor.remove_switch(&switch("lan")).unwrap();
        assert_eq!(attached(&supervisor), ["-", "wan"]);
        supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
        assert_eq!(attached(&supervisor), ["lan", "wan"]);
        // A port that was removed by hand stays detached.
        supervisor.remove_port(&switch("wan"), &port_name("fw.1")).unwrap();
        supervisor.remove_switch(&switch("wan")).unwrap();
        supervisor.create_switch(CreateSwitch::new(switch("wan"))).unwrap();
        assert_eq!(attached(&supervisor), ["lan", "-"]);
        supervisor.remove_switch(&switch("lan")).unwrap();
        supervisor.end();
    }
    let supervisor = loop {
        // The last thread of the first daemon may still be ending.
        match Supervisor::start(&settings) {
            Ok(supervisor) => break supervisor,
            Err(error) => assert!(error.to_string().contains("another daemon"), "{error}"),
        }
    };
    assert_eq!(
        (attached(&supervisor), state(&supervisor, "fw")),
        (vec!["-".into(); 2], api::BoxState::Running)
    );
    supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
    assert_eq!(attached(&supervisor), ["lan", "-"]);
}

/// Many boxes at one switch: all exist, then all are removed.
#[test]
fn many_boxes_are_created_and_removed() {
    let supervisor = supervisor();
    supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
    let start = Instant::now();
    for number in 0..200 {
        supervisor.create_box(process(&format!("box{number}"), "mirror", &["lan"])).unwrap();
    }
    eprintln!("200 boxes after {:?}", start.elapsed());
    assert_eq!(supervisor.boxes().unwrap().len(), 200);
    for number in 0..200 {
        supervisor.remove_box(&name(&format!("box{number}"))).unwrap();
    }
    assert!(supervisor.show_switch(&switch("lan")).unwrap().port_list.is_empty());
    assert!(start.elapsed() < TIMEOUT);
}
