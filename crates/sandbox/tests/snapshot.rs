//! Boxes created from a snapshot.

mod support;

use boundary::Request;
use sandbox::{CreateError, PortSettings, SnapshotError, State, Target, Worker};
use support::{WAIT_TIMEOUT, begin, exchange, host, settings, until};
use test_support::{Capability, require};

fn write(value: &[u8]) -> Request<'_> {
    Request::Write { name: "", handler: "value", value }
}

const READ: Request = Request::Read { name: "", handler: "value", argument: b"" };

#[test]
fn copies_continue_from_the_snapshot() {
    if require(Capability::Kvm) {
        check(Target::Vm(&Worker::start().unwrap()));
    }
    check(Target::Process);
}

fn check(target: Target) {
    let settings = settings(1);
    let mut original = host().create(target, &settings).unwrap();
    assert!(matches!(original.snapshot(WAIT_TIMEOUT), Err(SnapshotError::NotRunning)));
    begin(&mut original, "mirror");
    let value = vec![42; 50_000];
    original.call(&write(&value), WAIT_TIMEOUT).unwrap();
    let mut port = original.take_port(0).unwrap();
    let packets: Vec<_> = (0..700u16).map(|number| [&[9; 58], &number.to_be_bytes()[..]].concat()).collect();
    exchange(&original.doorbell(), (&mut port, None), &packets, packets.len());
    // The line that the box prints at installation is still in transit.
    assert!(matches!(original.snapshot(WAIT_TIMEOUT), Err(SnapshotError::Busy)));
    until("the box prints its line", || original.event().unwrap().is_some());
    let snapshot = original.snapshot(WAIT_TIMEOUT).unwrap();
    assert!(snapshot.size() < 2 << 20, "{snapshot:?}");
    original.call(&write(b"later"), WAIT_TIMEOUT).unwrap();

    let other = PortSettings { mac: [2, 0, 0, 0, 0, 9], ..settings.ports[0] };
    let wished = sandbox::Settings { ports: vec![other], ..settings.clone() };
    for _ in 0..3 {
        let mut copy = host().restore(target, &snapshot, &wished).unwrap();
        copy.start().unwrap();
        assert_eq!(copy.call(&READ, WAIT_TIMEOUT).as_ref(), Ok(&value));
        copy.call(&write(b"mine"), WAIT_TIMEOUT).unwrap();
        let mut port = copy.take_port(0).unwrap();
        let received = exchange(&copy.doorbell(), (&mut port, None), &packets, packets.len());
        assert!(received.iter().zip(&packets).all(|(came, went)| came[12..] == went[12..]));
        assert_eq!(copy.state(), State::Running);
    }
    assert_eq!(original.call(&READ, WAIT_TIMEOUT), Ok(b"later".to_vec()));
    exchange(&original.doorbell(), (&mut port, None), &packets, packets.len());
}

#[test]
fn a_snapshot_stays_in_its_kind_of_sandbox() {
    if !require(Capability::Kvm) {
        return;
    }
    let worker = Worker::start().unwrap();
    let mut sandbox = host().create(Target::Process, &settings(0)).unwrap();
    sandbox.start().unwrap();
    let snapshot = sandbox.snapshot(WAIT_TIMEOUT).unwrap();
    let other = host().restore(Target::Vm(&worker), &snapshot, &settings(0));
    assert!(matches!(other, Err(CreateError::SnapshotTarget)));
}
