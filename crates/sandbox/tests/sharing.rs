//! Virtual machines that share a worker: replies next to loops, and weights.

mod support;

use boundary::limits::BUFFER_SIZE;
use boundary::{Request, Slots};
use sandbox::{PortSettings, Sandbox, Settings, Target, VmExit, Worker};
use std::time::Duration;
use support::{begin, exchange, host, settings, until};
use test_support::{Capability, require};

/// A worker, if virtual machines are available.
fn worker() -> Option<Worker> {
    require(Capability::Kvm).then(|| Worker::start().unwrap())
}

fn make(worker: &Worker, settings: &Settings, command: &str) -> Sandbox {
    let mut sandbox = host().create(Target::Vm(worker), settings).unwrap();
    begin(&mut sandbox, command);
    sandbox
}

/// Most packets are answered before any of the neighbouring loops has used up a slice. (Some are not, if the kernel
/// delays this thread.)
#[test]
fn busy_boxes_do_not_delay_replies() {
    let Some(worker) = worker() else { return };
    let mut mirror = make(&worker, &settings(1), "mirror");
    let loops: Vec<Sandbox> = (0..4).map(|_| make(&worker, &settings(0), "loop")).collect();
    let overruns = || loops.iter().map(|sandbox| sandbox.usage().overruns).sum::<u64>();
    until("every loop is known for one", || loops.iter().all(|sandbox| sandbox.usage().overruns > 0));
    let (mut port, doorbell) = (mirror.take_port(0).unwrap(), mirror.doorbell());
    let mut late = 0;
    for number in 0..200u8 {
        let packet = vec![vec![number; 60]];
        let before = overruns();
        assert_eq!(exchange(&doorbell, (&mut port, None), &packet, 1).len(), 1);
        late += usize::from(overruns() - before > 1);
    }
    assert!(late < 100, "{late} of 200 packets waited for loops");
    // The loops share the rest of the time.
    let times = || loops.iter().map(|sandbox| sandbox.usage().time).collect::<Vec<Duration>>();
    let before = times();
    until("every loop goes on", || {
        times().iter().zip(&before).all(|(now, before)| *now > *before + Duration::from_millis(4))
    });
}

/// A turn ends with the quantum, and machines that end their turns on their own get equally many turns: quanta are
/// weights.
#[test]
fn a_turn_sends_its_quantum() {
    if !require(Capability::Kvm) {
        return;
    }
    let slots = Slots::new(2048).unwrap();
    let port = PortSettings { slots, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    for quantum in [256, 768] {
        let settings = Settings { ports: vec![port], quantum, ..Settings::new(1 << 20) };
        let (mut machine, mut control, mut ports) = host().create_vm(&settings).unwrap();
        control.ask(&Request::Install { name: "", configuration: "send 60" });
        control.flush().unwrap();
        let mut buffer = [0; BUFFER_SIZE];
        let mut sent = Vec::new();
        while sent.len() < 10 {
            let leave = machine.enter();
            assert!(matches!(leave, VmExit::TurnOver | VmExit::Ring | VmExit::Kicked), "{leave:?}");
            let mut taken = 0;
            while ports[0].available(1).unwrap() > 0 {
                ports[0].receive(&mut buffer).unwrap().unwrap();
                taken += 1;
            }
            ports[0].release();
            sent.push(taken);
        }
        assert_eq!(sent, [quantum; 10]);
    }
}
