//! Copies of an installed box are equivalent to fresh installations, and share nothing.

mod sandboxes;

use boundary::Request;
use sandbox::{PortSettings, Sandbox, Settings, Snapshot, Target, Worker};
use sandboxes::{TIMEOUT, exchange, host, install, read, settings};
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use test_support::{Capability, require};

const FIREWALL: &str = "FromDevice(0) -> c :: Counter -> q :: Queue(200) -> u :: Unqueue -> ToDevice(1);
    dice :: Script(TYPE PASSIVE, return $(random 4000000000));
    clock :: Script(TYPE PASSIVE, return $(now));";

/// Runs `check` in a virtual machine, if available, and in a process.
fn in_each(check: impl Fn(&str, Target)) {
    if require(Capability::Kvm) {
        check("vm", Target::Vm(&Worker::start().unwrap()));
    }
    check("process", Target::Process);
}

fn frame(number: u32) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0][..], &[7; 42], &number.to_be_bytes()].concat()
}

/// Takes a snapshot of a box as soon as it is idle.
fn snapshot_when_idle(sandbox: &mut Sandbox) -> Snapshot {
    let snapshot = sandbox.snapshot(TIMEOUT).unwrap();
    assert!(snapshot.is_clone_safe().is_some(), "an idle box says whether it is safe to clone");
    snapshot
}

/// Sends `count` frames through a box, and receives them.
fn send(sandbox: &mut Sandbox, count: u32) {
    let (mut to, mut from) = (sandbox.take_port(0).unwrap(), sandbox.take_port(1).unwrap());
    let packets: Vec<_> = (0..count).map(frame).collect();
    assert!(exchange(&sandbox.doorbell(), &mut to, &mut from, &packets) == packets);
}

#[test]
fn copies_behave_like_new_boxes_and_share_nothing() {
    in_each(|name, target| {
        let settings = settings(2, 64);
        let mut original = host().create(target, &settings).unwrap();
        original.start().unwrap();
        install(&mut original, "", FIREWALL);
        let snapshot = snapshot_when_idle(&mut original);
        assert_eq!(snapshot.is_clone_safe(), Some(true), "{name}");
        send(&mut original, 7);
        let mut copies: Vec<Sandbox> =
            (0..3).map(|_| host().restore(target, &snapshot, &settings).unwrap()).collect();
        let mut seeds = BTreeSet::from([read(&mut original, "dice.run")]);
        for (number, copy) in (1u32..).zip(&mut copies) {
            copy.start().unwrap();
            send(copy, 10 * number);
            seeds.insert(read(copy, "dice.run"));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
            let clock: f64 = read(copy, "clock.run").trim().parse().unwrap();
            assert!((now - clock).abs() < 5.0, "{name}: {clock} is not {now}");
        }
        assert_eq!(seeds.len(), 4, "{name}: each has random numbers of its own");
        for (number, copy) in (1u32..).zip(&mut copies) {
            assert_eq!(read(copy, "c.count"), (10 * number).to_string(), "{name}");
        }
        assert_eq!(read(&mut original, "c.count"), "7", "{name}");
        // A copy can swap its configuration independently.
        install(&mut copies[0], "", "FromDevice(0) -> c :: Counter -> ToDevice(1);");
        assert_eq!(
            (read(&mut copies[0], "c.count"), read(&mut copies[1], "c.count")),
            ("10".into(), "20".into())
        );
    });
}

/// A box that depends on values that differ in copies, or on a point in time, is not clone safe.
#[test]
fn a_box_reports_whether_it_is_clone_safe() {
    for (text, clone_safe) in [
        ("FromDevice(0) -> Discard;", true),
        ("FromDevice(0) -> EtherEncap(0x0800, 0:eth, 2:0:0:0:0:9) -> Discard;", false),
        ("TimedSource(INTERVAL 3600) -> Discard;", false),
        ("RandomSeed(7); FromDevice(0) -> Discard;", false),
    ] {
        in_each(|name, target| {
            let mut sandbox = host().create(target, &settings(1, 64)).unwrap();
            sandbox.start().unwrap();
            install(&mut sandbox, "", text);
            assert_eq!(snapshot_when_idle(&mut sandbox).is_clone_safe(), Some(clone_safe), "{name}: {text}");
        });
    }
}

/// The port of a copy has the address in its own settings.
#[test]
fn a_copy_has_its_own_addresses() {
    in_each(|name, target| {
        let wanted = settings(1, 64);
        let mut original = host().create(target, &wanted).unwrap();
        original.start().unwrap();
        install(&mut original, "", "FromDevice(0) -> Discard;");
        let snapshot = snapshot_when_idle(&mut original);
        let port = PortSettings { mac: [2, 0, 0, 0, 7, 7], ..wanted.ports[0] };
        let mut copy = host().restore(target, &snapshot, &Settings { ports: vec![port], ..wanted }).unwrap();
        copy.start().unwrap();
        install(&mut copy, "second", "Idle -> e :: EtherEncap(0x0800, 0:eth, 2:0:0:0:0:9) -> Discard;");
        let request = Request::Read { name: "second", handler: "e.src", argument: b"" };
        let source = copy.call(&request, TIMEOUT).unwrap();
        assert_eq!(String::from_utf8_lossy(&source).replace(":", "-"), "02-00-00-00-07-07", "{name}");
        assert_eq!(
            snapshot_when_idle(&mut copy).is_clone_safe(),
            Some(false),
            "{name}: it has made something of the address now"
        );
    });
}

/// A box that waits for its use gets seeds, time and addresses before its first configuration.
#[test]
fn a_renewed_box_has_its_own_seeds_and_addresses() {
    in_each(|name, target| {
        let mut seeds = BTreeSet::new();
        let mut sandbox = host().create(target, &settings(2, 64)).unwrap();
        sandbox.start().unwrap();
        sandbox.call(&Request::Stats, TIMEOUT).unwrap();
        for round in 1..4 {
            sandbox.renew(&[[2, 0, 0, 0, 7, round], [2, 0, 0, 0, 8, round]]).unwrap();
            let text = "dice :: Script(TYPE PASSIVE, return $(random 4000000000));
                Idle -> e :: EtherEncap(0x0800, 0:eth, 1:eth) -> Discard;";
            install(&mut sandbox, "", text);
            let [source, destination] =
                ["e.src", "e.dst"].map(|handler| read(&mut sandbox, handler).replace(":", "-"));
            assert_eq!(source, format!("02-00-00-00-07-0{round}"), "{name}");
            assert_eq!(destination, format!("02-00-00-00-08-0{round}"), "{name}");
            seeds.insert(read(&mut sandbox, "dice.run"));
            sandbox.call(&Request::Remove { name: "" }, TIMEOUT).unwrap();
        }
        assert_eq!(seeds.len(), 3, "{name}");
    });
}
