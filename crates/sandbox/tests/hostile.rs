//! Hostile boxes that attack their host and each other.

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

mod support;

use boundary::PortFault;
use boundary::limits::BUFFER_SIZE;
use sandbox::{ExitStatus, Sandbox, State, Target, Worker};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use support::{WAIT_TIMEOUT, begin, ended, exchange, host, in_each, settings, until};
use test_support::{Capability, require};

/// A box writes random words over all its shared memory, while the host keeps using its ends.
#[test]
fn a_scribbling_box_harms_only_itself() {
    for seed in [3, 77, 1234] {
        in_each(&settings(1), |kind, mut sandbox| {
            sandbox.start().unwrap();
            let _ = sandbox.install("", &format!("scribble {seed}"), WAIT_TIMEOUT);
            let mut port = sandbox.take_port(0).unwrap();
            let mut buffer = [0; BUFFER_SIZE];
            let start = Instant::now();
            let mut faults = 0;
            let enough = Duration::from_millis(150);
            // On a slow machine the box may not have begun to scribble by then.
            while start.elapsed() < enough || (faults == 0 && start.elapsed() < WAIT_TIMEOUT) {
                let mut fault = |result: Result<(), PortFault>| faults += u32::from(result.is_err());
                fault(port.room(64).map(drop));
                fault(port.send(&[5; 60]).map(drop));
                port.publish();
                fault(port.available(64).map(drop));
                fault(port.receive(&mut buffer).map(drop));
                port.release();
                let _ = sandbox.event();
                let _ = sandbox.call(&boundary::Request::Stats, Duration::ZERO);
                sandbox.doorbell().ring();
                sandbox.state();
                let _ = sandbox.is_ready();
            }
            assert!(faults > 0, "{kind}: the scribbling was never met");
            sandbox.kill();
            assert!(matches!(sandbox.state(), State::Ended(_)));
        });
    }
}

/// Next to boxes that loop, crash and scribble, a working box loses no packet.
#[test]
fn hostile_neighbours_cost_no_packets() {
    let settings = settings(1);
    let bad = ["loop", "fault null", "scribble 9", "busy", "memory"];
    let check = |target: Target, name: &str| {
        let make = || host().create(target, &settings).unwrap();
        let mut good = make();
        begin(&mut good, "mirror");
        let mut neighbours: Vec<Sandbox> = bad.iter().map(|_| make()).collect();
        for (neighbour, command) in neighbours.iter_mut().zip(bad) {
            neighbour.start().unwrap();
            let _ = neighbour.install("", command, Duration::from_millis(100));
        }
        let mut port = good.take_port(0).unwrap();
        let packets: Vec<_> =
            (0..3_000u16).map(|number| [&[7; 58], &number.to_be_bytes()[..]].concat()).collect();
        let received = exchange(&good.doorbell(), (&mut port, None), &packets, packets.len());
        assert!(received.iter().zip(&packets).all(|(came, went)| came[12..] == went[12..]), "{name}");
        assert_eq!(good.state(), State::Running, "{name}");
    };
    if require(Capability::Kvm) {
        let worker = Worker::start().unwrap();
        check(Target::Vm(&worker), "machine");
    }
    check(Target::Process, "process");
}

/// A loop is kicked, counted, and uses about its share.
#[test]
fn a_loop_shares_its_worker() {
    if !require(Capability::Kvm) {
        return;
    }
    let worker = Worker::start().unwrap();
    let mut looping = host().create(Target::Vm(&worker), &settings(0)).unwrap();
    looping.start().unwrap();
    let _ = looping.install("", "loop", Duration::from_millis(100));
    let mut polite = host().create(Target::Vm(&worker), &settings(0)).unwrap();
    polite.start().unwrap();
    until("the loop is called out again and again", || looping.usage().overruns >= 5);
    // The first turns may be long if allocating memory pages is slow.
    until("ten answers need no turn too long", || {
        let before = polite.usage().overruns;
        (0..10).for_each(|_| polite.install("", "drop", WAIT_TIMEOUT).unwrap());
        polite.usage().overruns == before
    });
}

/// A box that only rings its host, which lets it continue each time, is kicked like any other loop and delays no other
/// box.
#[test]
fn a_box_that_rings_without_end_shares_its_worker() {
    if !require(Capability::Kvm) {
        return;
    }
    let worker = Worker::start().unwrap();
    let [mut ringing, mut polite] =
        [(); 2].map(|()| host().create(Target::Vm(&worker), &settings(0)).unwrap());
    ringing.start().unwrap();
    let _ = ringing.install("", "ring", Duration::from_millis(100));
    begin(&mut polite, "drop");
    until("it is called out again and again", || ringing.usage().overruns >= 5);
    (0..100).for_each(|_| polite.install("", "drop", WAIT_TIMEOUT).unwrap());
    ringing.suspend();
    ringing.resume();
    ringing.kill();
    assert_eq!(ringing.state(), State::Ended(ExitStatus::Killed));
}

/// A process that is killed is noticed: here it is killed by the system call filter, for a forbidden call, or for a
/// permitted call with forbidden arguments.
#[test]
fn a_process_that_vanishes_is_noticed() {
    for call in ["fault system-call", "fault other-futex"] {
        let mut sandbox = host().create(Target::Process, &settings(0)).unwrap();
        begin(&mut sandbox, "drop");
        let end = std::fs::File::from(sandbox.end_descriptor().unwrap());
        let _ = sandbox.install("", call, WAIT_TIMEOUT);
        let mut poll = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry.
        assert_eq!(unsafe { libc::poll(&mut poll, 1, WAIT_TIMEOUT.as_millis() as i32) }, 1);
        assert_eq!(ended(&mut sandbox), ExitStatus::Vanished { status: -31 }, "{call}: SIGSYS by the filter");
    }
}

/// What a process still has, as the kernel reports it: two events as its only descriptors, a filter, no privileges.
#[test]
fn a_process_has_no_privileges_and_no_other_descriptors() {
    let mut sandbox = host().create(Target::Process, &settings(1)).unwrap();
    begin(&mut sandbox, "drop");
    let pid = sandbox.process_id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_ascii_whitespace().nth(1).unwrap_or_default().to_string()
    };
    assert_eq!((field("Seccomp:"), field("NoNewPrivs:")), ("2".into(), "1".into()));
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open: Vec<_> = open.map(|descriptor| std::fs::read_link(descriptor.path()).unwrap()).collect();
    assert_eq!(open, ["anon_inode:[eventfd]"; 2].map(std::path::PathBuf::from));
    sandbox.kill();
    until("the process is gone", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
}

/// Memory of a box that has ended is zero for the next one.
#[test]
fn memory_is_zero_for_the_next_box() {
    if !require(Capability::Kvm) {
        return;
    }
    let worker = Worker::start().unwrap();
    for _ in 0..3 {
        let mut sandbox = host().create(Target::Vm(&worker), &settings(1)).unwrap();
        begin(&mut sandbox, "drop");
        let mut port = sandbox.take_port(0).unwrap();
        while port.send(&[0xaa; 2048]).unwrap() {}
        port.publish();
        drop((port, sandbox));
        // The same chunk is allocated again: the packets' bytes are gone.
        let mut next = host().create(Target::Vm(&worker), &settings(1)).unwrap();
        begin(&mut next, "send 2048");
        let mut port = next.take_port(0).unwrap();
        next.doorbell().ring();
        until("packets come", || port.available(1).unwrap() > 0);
        let mut buffer = [1; BUFFER_SIZE];
        let packet = port.receive(&mut buffer).unwrap().unwrap();
        assert!(packet.iter().all(|byte| *byte == 0));
    }
}
