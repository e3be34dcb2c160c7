//! Helpers shared by the tests in boxes: a host with the image, and a box in each kind of sandbox.
#![allow(dead_code, reason = "each test program uses its part")]

use boundary::limits::BUFFER_SIZE;
use boundary::{Diagnostic, Request, Slots};
use engine::Engine;
use router::Registry;
use sandbox::thread::{self, Start};
use sandbox::{Doorbell, EventFd, Host, HostPort, PortSettings, Sandbox, Settings, Target, Worker};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use test_support::{Capability, require};

/// A timeout long enough for a loaded machine; only a failure takes this long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// The host that all tests of a program share.
pub(crate) fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::new(image::CLICKBOX).unwrap())
}

/// The program of a box in a thread.
pub(crate) fn program(start: Start) {
    let engine =
        Engine::new(&start.info, start.region, Rc::new(start.platform), Registry::new(elements::REGISTRY));
    engine.and_then(|mut engine| engine.run()).unwrap();
}

/// Runs `check` on a box in a virtual machine, if available, on one in a process, and on one in a thread.
pub(crate) fn in_each(settings: &Settings, check: impl Fn(&str, Sandbox)) {
    if require(Capability::Kvm) {
        let worker = Worker::start().unwrap();
        check("vm", host().create(Target::Vm(&worker), settings).unwrap());
    }
    check("process", host().create(Target::Process, settings).unwrap());
    check("thread", thread::create(program, settings).unwrap());
}

/// Settings with this many ports and slots.
pub(crate) fn settings(ports: usize, slots: u32) -> Settings {
    let port =
        |number| PortSettings { slots: Slots::new(slots).unwrap(), mac: [2, 0, 0, 0, 0, number], mtu: 1500 };
    let ports = (0..ports as u8).map(port).collect();
    Settings { ports, wake_event: Some(Arc::new(EventFd::new().unwrap())), ..Settings::new(8 << 20) }
}

/// Waits until `done` returns true.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

pub(crate) fn install(sandbox: &mut Sandbox, name: &str, configuration: &str) {
    if let Err(error) = sandbox.install(name, configuration, TIMEOUT) {
        panic!("{configuration}: {error}: {:?}", sandbox.state());
    }
}

pub(crate) fn read(sandbox: &mut Sandbox, handler: &str) -> String {
    let value = sandbox.call(&Request::Read { name: "", handler, argument: b"" }, TIMEOUT).unwrap();
    String::from_utf8(value).unwrap()
}

pub(crate) fn check(sandbox: &mut Sandbox, configuration: &str) -> Vec<Diagnostic> {
    Diagnostic::decode(&sandbox.call(&Request::Check { configuration }, TIMEOUT).unwrap()).unwrap()
}

/// Sends all packets and receives packets until as many have arrived.
pub(crate) fn exchange(
    doorbell: &Doorbell,
    to: &mut HostPort,
    from: &mut HostPort,
    packets: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let (mut sent, mut received) = (0, Vec::new());
    let mut buffer = [0; BUFFER_SIZE];
    let start = Instant::now();
    while received.len() < packets.len() {
        assert!(start.elapsed() < TIMEOUT, "{sent} sent, {} received", received.len());
        // Sends no more at once than the ring on the other side holds.
        let most = 64 - (sent - received.len()).min(64);
        let room = to.room(most as u32).unwrap() as usize;
        for packet in packets.iter().skip(sent).take(room.min(most)) {
            assert!(to.send(packet).unwrap());
            sent += 1;
        }
        let mut ring = to.publish();
        from.available(u32::MAX).unwrap();
        while let Some(packet) = from.receive(&mut buffer).unwrap() {
            received.push(packet.to_vec());
        }
        ring |= from.release();
        if ring {
            doorbell.ring();
        }
    }
    received
}
