//! Helpers shared by the tests of boxes: a host, and a box in each kind of sandbox.
#![allow(dead_code, reason = "each test program uses its part")]

use boundary::Slots;
use boundary::limits::BUFFER_SIZE;
use sandbox::{Doorbell, EventFd, Host, HostPort, PortSettings, Sandbox, Settings, State, Target, Worker};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use test_support::{Capability, require};

/// Bounds every wait in a test, also on a busy machine: only a failure takes this long.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(40);

/// The host that all tests of a program share.
pub(crate) fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::new(image::PROBE).unwrap())
}

/// Runs `check` on a box in a virtual machine, if available, and on one in a process.
pub(crate) fn in_each(settings: &Settings, check: impl Fn(&str, Sandbox)) {
    if require(Capability::Kvm) {
        let worker = Worker::start().unwrap();
        check("machine", host().create(Target::Vm(&worker), settings).unwrap());
    }
    check("process", host().create(Target::Process, settings).unwrap());
}

/// Settings with 1 MB and this many ports of 256 slots.
pub(crate) fn settings(ports: usize) -> Settings {
    let port = PortSettings { slots: Slots::new(256).unwrap(), mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let bell = Some(Arc::new(EventFd::new().unwrap()));
    Settings { ports: vec![port; ports], wake_event: bell, ..Settings::new(1 << 20) }
}

/// Starts a box and gives it a command.
pub(crate) fn begin(sandbox: &mut Sandbox, command: &str) {
    sandbox.start().unwrap();
    sandbox.install("", command, WAIT_TIMEOUT).unwrap();
}

/// Waits until `done` returns true.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < WAIT_TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Waits for the box's end.
pub(crate) fn ended(sandbox: &mut Sandbox) -> sandbox::ExitStatus {
    until("the box ends", || matches!(sandbox.state(), State::Ended(_)));
    match sandbox.state() {
        State::Ended(end) => end,
        state => panic!("{state:?}"),
    }
}

/// Sends all packets and receives `expected` packets on another port.
pub(crate) fn exchange(
    doorbell: &Doorbell,
    (to, from): (&mut HostPort, Option<&mut HostPort>),
    packets: &[Vec<u8>],
    expected: usize,
) -> Vec<Vec<u8>> {
    let (mut sent, mut received) = (0, Vec::new());
    let mut buffer = [0; BUFFER_SIZE];
    let start = Instant::now();
    let mut from = from;
    while received.len() < expected || sent < packets.len() {
        assert!(start.elapsed() < WAIT_TIMEOUT, "{sent} sent, {} received", received.len());
        to.room(packets.len() as u32).unwrap();
        while sent < packets.len() && to.send(&packets[sent]).unwrap() {
            sent += 1;
        }
        let mut ring = to.publish();
        let source = from.as_deref_mut().unwrap_or(to);
        source.available(1).unwrap();
        while let Some(packet) = source.receive(&mut buffer).unwrap() {
            received.push(packet.to_vec());
        }
        ring |= source.release();
        if ring {
            doorbell.ring();
        }
    }
    received
}
