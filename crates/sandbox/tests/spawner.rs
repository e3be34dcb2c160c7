//! The spawner of process boxes: what it leaves behind, and what happens when it ends.

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

mod support;

use sandbox::{CreateError, ExitStatus, Host, Layer, Sandbox, SetupError, State, Target};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{WAIT_TIMEOUT, begin, ended, settings, until};

/// Boxes that are created and killed one after the other.
const ROUNDS: usize = 500;

/// A host with a spawner of its own.
fn new_host() -> Host {
    Host::new(image::PROBE).unwrap()
}

fn create(host: &Host) -> Sandbox {
    host.create(Target::Process, &settings(1)).unwrap()
}

fn kill(process: i32) {
    signal(process, libc::SIGKILL);
}

fn signal(process: i32, signal: i32) {
    // SAFETY: the process is a spawner or a box of this test, which was not reaped.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

/// A field of a process's status, as the kernel reports it: 0 is its state, 1 its parent.
fn field(process: i32, number: usize) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    rest.split(' ').nth(number).unwrap().to_string()
}

fn parent(process: i32) -> i32 {
    field(process, 1).parse().unwrap()
}

/// The children of a process, also those that have ended and were not reaped.
fn children(process: i32) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let processes = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let stat = |process: &i32| fs::read_to_string(format!("/proc/{process}/stat")).ok();
    let of = |text: String| Some(text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>() == Ok(process));
    processes.filter(|child| stat(child).and_then(of).unwrap_or(false)).collect()
}

/// The number of a process's descriptors. Without privileges, those of a spawner can't be counted.
fn descriptors(process: i32) -> Option<usize> {
    fs::read_dir(format!("/proc/{process}/fd")).ok().map(Iterator::count)
}

#[test]
fn a_box_is_a_child_of_the_spawner() {
    let host = new_host();
    let boxes = [create(&host), create(&host)];
    boxes.iter().for_each(|sandbox| sandbox.control_handle().start().unwrap());
    let pids: Vec<i32> = boxes.iter().filter_map(Sandbox::process_id).collect();
    let spawner = parent(pids[0]);
    assert_eq!((parent(pids[1]), parent(spawner)), (spawner, std::process::id() as i32));
    let mut found = children(spawner);
    found.sort_unstable();
    let mut expected = pids.clone();
    expected.sort_unstable();
    assert_eq!(found, expected);
    drop((boxes, host));
    until("the spawner is gone", || !std::path::Path::new(&format!("/proc/{spawner}")).exists());
}

#[test]
fn rounds_of_boxes_leave_nothing_behind() {
    let host = new_host();
    let mut first = create(&host);
    begin(&mut first, "drop");
    let spawner = parent(first.process_id().unwrap());
    let own = std::process::id() as i32;
    // When this one is gone, the spawner has closed the descriptors of the first.
    let other = create(&host);
    other.control_handle().start().unwrap();
    drop(other);
    let before = descriptors(spawner);
    let mut own_before = None;
    for round in 0..ROUNDS {
        let mut sandbox = create(&host);
        sandbox.start().unwrap();
        match round % 5 {
            // Its end is noticed before it is killed.
            0 => {
                kill(sandbox.process_id().unwrap());
                assert_eq!(ended(&mut sandbox), ExitStatus::Vanished { status: -libc::SIGKILL });
            }
            1 => {
                sandbox.suspend();
                sandbox.kill();
            }
            2 => {
                sandbox.stop();
                assert_eq!(ended(&mut sandbox), ExitStatus::Stopped);
            }
            _ => sandbox.kill(),
        }
        drop(sandbox);
        if round == 10 {
            own_before = descriptors(own);
        }
    }
    assert_eq!((children(spawner).len(), descriptors(spawner)), (1, before));
    // Other tests of this program run meanwhile.
    until("no descriptors are left", || descriptors(own) <= own_before.map(|count| count + 64));
    assert_eq!(first.state(), State::Running);
}

#[test]
fn boxes_end_with_their_spawner_and_the_host_starts_another() {
    let host = new_host();
    let mut boxes: Vec<Sandbox> = (0..3).map(|_| create(&host)).collect();
    boxes.iter_mut().for_each(|sandbox| begin(sandbox, "mirror"));
    let spawner = parent(boxes[0].process_id().unwrap());
    // One is suspended, and ends as the others do.
    boxes[2].suspend();
    kill(spawner);
    for sandbox in &mut boxes {
        assert_eq!(ended(sandbox), ExitStatus::Vanished { status: -libc::SIGKILL });
    }
    let next = create(&host);
    let failed = next.control_handle().start();
    let gone = |error: &CreateError| matches!(error, CreateError::Process(SetupError::Gone));
    assert!(failed.as_ref().is_ok() || failed.as_ref().is_err_and(gone), "{failed:?}");
    let mut sandbox = create(&host);
    begin(&mut sandbox, "mirror");
    let other = parent(sandbox.process_id().unwrap());
    assert_ne!(other, spawner);
    assert_eq!(children(std::process::id() as i32).iter().filter(|child| **child == spawner).count(), 0);
    sandbox.stop();
    assert_eq!(ended(&mut sandbox), ExitStatus::Stopped);
}

/// A spawner that was stopped blocks one box for a limited time, and no further one.
#[test]
fn a_stopped_spawner_is_replaced() {
    let host = new_host();
    let mut first = create(&host);
    begin(&mut first, "mirror");
    let spawner = parent(first.process_id().unwrap());
    signal(spawner, libc::SIGSTOP);
    let late = create(&host).control_handle().start();
    assert!(matches!(late, Err(CreateError::Process(SetupError::NoReply))), "{late:?}");
    let mut sandbox = create(&host);
    begin(&mut sandbox, "mirror");
    assert_ne!(parent(sandbox.process_id().unwrap()), spawner);
    assert_eq!(ended(&mut first), ExitStatus::Vanished { status: -libc::SIGKILL });
}

/// The environment variable that makes a test run the host that another test kills.
const VICTIM: &str = "CLICKBOX_TEST_VICTIM";

/// Not a test of its own: a host with a box, for [`boxes_end_with_a_host_that_is_killed`]. It prints their processes.
#[test]
fn a_host_that_is_to_be_killed() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let host = new_host();
    let sandbox = create(&host);
    sandbox.control_handle().start().unwrap();
    let process = sandbox.process_id().unwrap();
    println!("\nprocesses {process} {}", parent(process));
    loop {
        std::thread::sleep(WAIT_TIMEOUT);
    }
}

#[test]
fn boxes_end_with_a_host_that_is_killed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_host_that_is_to_be_killed", "--nocapture"]).env(VICTIM, "1");
    let mut victim = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
    let processes = lines.into_iter().find_map(|line| Some(line.strip_prefix("processes ")?.to_string()));
    let processes = processes.unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    for process in processes.split(' ') {
        // A process that has ended stays until its new parent has reaped it.
        let runs = || {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z")
        };
        until("the process ends", || !runs());
    }
}

/// A spawner ends with its host, and has been reaped when the host is gone.
#[test]
fn a_spawner_without_boxes_ends_with_its_host() {
    let host = new_host();
    let sandbox = create(&host);
    sandbox.control_handle().start().unwrap();
    let spawner = parent(sandbox.process_id().unwrap());
    drop(sandbox);
    assert!(children(spawner).is_empty());
    drop(host);
    assert!(!std::path::Path::new(&format!("/proc/{spawner}")).exists());
}

/// A host without capabilities goes on without some layers, and names them. Its boxes work.
#[test]
fn missing_layers_are_named() {
    let unprivileged = std::thread::spawn(|| {
        let header = [0x2008_0522u32, 0];
        let none = [0u32; 6];
        // SAFETY: the kernel reads live memory of the size that this version has. Only this thread is affected.
        let dropped = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
        assert_eq!(dropped, 0);
        let host = new_host();
        let isolation = host.isolation().unwrap();
        eprintln!("{isolation:?}");
        assert!(isolation.holds(Layer::EmptyRoot) == isolation.holds(Layer::Network), "{isolation:?}");
        for missing in isolation.missing() {
            assert!(!missing.step.is_empty() && missing.errno > 0, "{missing}");
        }
        assert!(isolation.holds(Layer::NoNewPrivileges), "{isolation:?}");
        // SAFETY: the call has no preconditions.
        assert_eq!(isolation.holds(Layer::User), unsafe { libc::geteuid() } != 0);
        let mut sandbox = create(&host);
        begin(&mut sandbox, "drop");
        assert!(sandbox.private_memory().unwrap() > 0);
        until("the line is printed", || sandbox.event().unwrap().is_some());
        let snapshot = sandbox.snapshot(WAIT_TIMEOUT).unwrap();
        let mut copy = host.restore(Target::Process, &snapshot, &settings(1)).unwrap();
        copy.start().unwrap();
        for sandbox in [&mut sandbox, &mut copy] {
            sandbox.install("", "mirror", WAIT_TIMEOUT).unwrap();
            sandbox.suspend();
            sandbox.resume();
            sandbox.stop();
            assert_eq!(ended(sandbox), ExitStatus::Stopped);
        }
    });
    unprivileged.join().unwrap();
}

/// A spawner keeps no copy of its host's memory.
#[test]
fn a_spawner_has_no_memory_of_its_host() {
    let secret = vec![0x5a_u8; 32 << 20];
    let host = new_host();
    let sandbox = create(&host);
    sandbox.control_handle().start().unwrap();
    let spawner = parent(sandbox.process_id().unwrap());
    let status = fs::read_to_string(format!("/proc/{spawner}/status")).unwrap();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_ascii_whitespace().next().unwrap().parse::<usize>().unwrap()
    };
    assert!(kilobytes("RssAnon:") < 1 << 10, "{status}");
    // The host reserves more than a terabyte.
    assert!(kilobytes("VmSize:") < 256 << 10, "{status}");
    assert!(secret.iter().all(|byte| *byte == 0x5a));
}

/// Several threads create, suspend and kill boxes at the same time.
#[test]
fn threads_share_the_spawner() {
    let host = new_host();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..15 {
                    let mut sandbox = create(&host);
                    begin(&mut sandbox, "busy");
                    for _ in 0..3 {
                        sandbox.suspend();
                        assert_eq!(field(sandbox.process_id().unwrap(), 0), "T", "it is not stopped");
                        // The kernel reports the stop a little before it accounts the last time slice.
                        std::thread::sleep(Duration::from_micros(500));
                        let before = sandbox.usage().time;
                        std::thread::sleep(Duration::from_micros(500));
                        assert_eq!(sandbox.usage().time, before, "it runs while it is suspended");
                        sandbox.resume();
                    }
                    sandbox.stop();
                    assert_eq!(ended(&mut sandbox), ExitStatus::Stopped);
                }
            });
        }
    });
}
