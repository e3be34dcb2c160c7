//! Boxes under the supervisor: creation, end, and restart.

mod support;

use api::{BoxState, ConfigurationName, CreateBox, ErrorCode, Install, Restart, Sandbox};
use daemon::{OperationError, Settings, Supervisor};
use protocol::fabric::FabricError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{
    Folder, TIMEOUT, handler, in_each, name, process, settings, settings_of, state, supervisor, until,
};
use test_support::{Capability, require};

fn code<T: std::fmt::Debug>(result: Result<T, OperationError>) -> ErrorCode {
    result.unwrap_err().code()
}

fn install(command: &str) -> Install {
    Install { configuration: command.into(), source: None, files: Vec::new(), uploads: Vec::new() }
}

#[test]
fn a_box_is_created_suspended_stopped_and_removed() {
    in_each(|supervisor, sandbox| {
        let detail = supervisor.create_box(CreateBox { sandbox, ..process("fw", "mirror", &["-"]) }).unwrap();
        assert_eq!((detail.status.state, detail.status.sandbox), (BoxState::Running, sandbox));
        assert!(detail.status.boot_ms.is_some_and(|time| time > 0.0));
        assert_eq!(detail.ports.len(), 1);
        assert_eq!(detail.ports[0].mac.octets()[0], 2);
        supervisor.write(&handler("fw/value"), b"seven").unwrap();
        assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"seven");
        assert_eq!(code(supervisor.read(&handler("fw/none"), b"")), ErrorCode::Refused);
        let fw = name("fw");
        assert_eq!(code(supervisor.resume_box(&fw)), ErrorCode::Busy);
        supervisor.suspend_box(&fw).unwrap();
        assert_eq!(state(supervisor, "fw"), BoxState::Suspended);
        assert_eq!(code(supervisor.read(&handler("fw/value"), b"")), ErrorCode::Busy);
        supervisor.resume_box(&fw).unwrap();
        assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"seven");
        supervisor.stop_box(&fw).unwrap();
        assert_eq!(state(supervisor, "fw"), BoxState::Stopped);
        assert_eq!(code(supervisor.stop_box(&fw)), ErrorCode::Busy);
        supervisor.start_box(&fw).unwrap();
        assert_eq!(code(supervisor.start_box(&fw)), ErrorCode::Busy);
        // Its state is fresh.
        assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"");
        supervisor.restart_box(&fw).unwrap();
        until("its lines arrive", || {
            let log = supervisor.log_list(&fw, &api::LogQuery::default()).unwrap();
            log.iter().filter(|line| line.text == "runs `mirror`").count() == 3
        });
        assert_eq!(supervisor.boxes().unwrap().len(), 1);
        supervisor.remove_box(&fw).unwrap();
        assert_eq!(code(supervisor.show_box(&fw)), ErrorCode::NotFound);
        assert!(supervisor.boxes().unwrap().is_empty());
    });
}

#[test]
fn a_rejected_box_leaves_no_trace() {
    let supervisor = supervisor();
    let refused = supervisor.create_box(process("fw", "dance\x1b[2J", &[])).unwrap_err();
    let OperationError::Refused(details) = &refused else { panic!("{refused:?}") };
    assert!(details[0].message.contains("dance") && !details[0].message.contains('\x1b'), "{details:?}");
    assert_eq!(code(supervisor.create_box(process("fw", "drop", &["lan"]))), ErrorCode::NotFound);
    assert_eq!(code(supervisor.create_box(process("fw", "drop", &["-"; 17]))), ErrorCode::Invalid);
    let small = CreateBox { memory: api::Size(1), ..process("fw", "drop", &[]) };
    assert_eq!(code(supervisor.create_box(small)), ErrorCode::Invalid);
    let large = process("fw", &"x".repeat(100 << 20), &[]);
    assert_eq!(code(supervisor.create_box(large)), ErrorCode::TooLarge);
    assert!(supervisor.boxes().unwrap().is_empty());
    supervisor.create_box(process("fw", "drop", &["-"])).unwrap();
    // Many concurrent creations of the same name.
    let start = Instant::now();
    for _ in 0..10_000 {
        assert_eq!(code(supervisor.create_box(process("fw", "drop", &[]))), ErrorCode::Exists);
    }
    assert!(start.elapsed() < TIMEOUT);
    assert_eq!(supervisor.boxes().unwrap().len(), 1);
}

#[test]
fn a_rejected_configuration_leaves_the_old_one_running() {
    in_each(|supervisor, sandbox| {
        supervisor.create_box(CreateBox { sandbox, ..process("fw", "drop", &[]) }).unwrap();
        let (fw, main) = (name("fw"), ConfigurationName::main());
        assert_eq!(code(supervisor.install(&fw, &main, &install("dance"))), ErrorCode::Refused);
        assert_eq!(supervisor.show_configuration(&fw, &main).unwrap().configuration, "drop");
        let status = supervisor.install(&fw, &main, &install("mirror")).unwrap();
        assert_eq!(status.swaps, 1);
        let second: ConfigurationName = "second".parse().unwrap();
        assert_eq!(supervisor.install(&fw, &second, &install("drop")).unwrap().swaps, 0);
        let detail = supervisor.show_box(&fw).unwrap();
        let names: Vec<String> = detail.installed.iter().map(|one| one.name.to_string()).collect();
        assert_eq!(names, ["main", "second"]);
        assert_eq!(code(supervisor.remove_configuration(&fw, &main)), ErrorCode::Invalid);
        supervisor.remove_configuration(&fw, &second).unwrap();
        assert_eq!(code(supervisor.remove_configuration(&fw, &second)), ErrorCode::NotFound);
        // The configuration of a stopped box is stored for its next start.
        supervisor.stop_box(&fw).unwrap();
        supervisor.install(&fw, &main, &install("drop")).unwrap();
        supervisor.start_box(&fw).unwrap();
        assert_eq!(supervisor.show_configuration(&fw, &main).unwrap().configuration, "drop");
    });
}

/// A box whose process is killed from outside, and one that is killed on request, restart at once.
#[test]
fn a_killed_box_restarts() {
    in_each(|supervisor, sandbox| {
        let fw = name("fw");
        supervisor.create_box(CreateBox { sandbox, ..process("fw", "mirror", &["-"]) }).unwrap();
        for round in 1..=2 {
            let start = Instant::now();
            match supervisor.show_box(&fw).unwrap().status.pid {
                Some(pid) if round == 1 => {
                    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
                    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                }
                _ => drop(supervisor.kill_box(&fw).unwrap()),
            }
            until("the box is back", || {
                let status = supervisor.show_box(&fw).unwrap().status;
                status.restarts == round && status.state == BoxState::Running
            });
            eprintln!("{sandbox:?}: back after {:?}", start.elapsed());
            supervisor.write(&handler("fw/value"), b"works").unwrap();
            let crash = supervisor.crash(&fw).unwrap();
            assert!(crash.cause.contains("killed"), "{crash:?}");
        }
    });
}

/// The processors on which a process may run, as the kernel reports them.
fn allowed(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim().into()
}

/// A box with a reserved processor is pinned to it and polls, also after it was killed. The last processor is never
/// reserved.
#[test]
fn a_dedicated_box_keeps_its_cpu() {
    // On a large machine two are enough to use up all but one.
    let mut two = CpuSet::new();
    let all = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).take(2).for_each(|core| two.set(core));
    if !require(Capability::Processors) {
        return;
    }
    sched_setaffinity(None, &two).unwrap();
    in_each(|supervisor, sandbox| {
        let shared = supervisor.create_box(process("shared", "mirror", &["-"])).unwrap().status;
        assert_eq!((shared.dedicated, shared.processor), (false, None));
        let everywhere = allowed(shared.pid.unwrap());
        let dedicated =
            |name: &str| CreateBox { sandbox, dedicated: true, ..process(name, "mirror", &["-"]) };
        let fw = name("fw");
        let number = supervisor.create_box(dedicated("fw")).unwrap().status.processor.unwrap();
        let check = || {
            let status = supervisor.show_box(&fw).unwrap().status;
            assert_eq!(status.processor, Some(number));
            if let Some(pid) = status.pid {
                assert_eq!(allowed(pid), number.to_string());
            }
            // Other boxes stay off it, whether they were created earlier or later.
            let late = supervisor.create_box(process("late", "mirror", &["-"])).unwrap().status;
            for pid in [shared.pid.unwrap(), late.pid.unwrap()] {
                assert_ne!(allowed(pid), everywhere);
            }
            supervisor.remove_box(&name("late")).unwrap();
            supervisor.write(&handler("fw/value"), b"seven").unwrap();
            let used = || supervisor.show_box(&fw).unwrap().status.usage.own_ns;
            let before = used();
            until("it has polled", || used() > before + 20_000_000);
            assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"seven");
        };
        check();
        supervisor.kill_box(&fw).unwrap();
        until("the box is back", || {
            let status = supervisor.show_box(&fw).unwrap().status;
            status.restarts == 1 && status.state == BoxState::Running
        });
        check();
        // The last processor cannot be reserved, and a refused box leaves no trace.
        let refused = supervisor.create_box(dedicated("more")).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Limit);
        assert!(refused.to_string().contains("boxes may have 1 of the 2 processors"), "{refused}");
        assert_eq!(supervisor.boxes().unwrap().len(), 2);
        supervisor.remove_box(&fw).unwrap();
        assert_eq!(allowed(shared.pid.unwrap()), everywhere);
        assert_eq!(supervisor.create_box(dedicated("fw")).unwrap().status.processor, Some(number));
    });
}

#[test]
fn a_crash_is_reported_and_triggers_the_restart_policy() {
    in_each(|supervisor, sandbox| {
        let (fw, main) = (name("fw"), ConfigurationName::main());
        let never = CreateBox { sandbox, restart: Restart::Never, ..process("fw", "drop", &[]) };
        supervisor.create_box(never).unwrap();
        assert_eq!(code(supervisor.crash(&fw)), ErrorCode::NotFound);
        // The reply may come before the end, or not.
        drop(supervisor.install(&fw, &main, &install("fault null")));
        until("the crash is seen", || state(supervisor, "fw") == BoxState::Crashed);
        let crash = supervisor.crash(&fw).unwrap();
        assert!(crash.cause.starts_with("page fault"), "{crash:?}");
        assert_eq!((crash.address, crash.element.as_deref()), (Some(8), Some("probe")));
        assert_eq!(crash.registers[0].name, "rip");
        assert_eq!(code(supervisor.read(&handler("fw/value"), b"")), ErrorCode::Busy);
        supervisor.remove_box(&fw).unwrap();
        // With another policy it is retried repeatedly, with delays.
        supervisor.create_box(CreateBox { sandbox, ..process("again", "drop", &[]) }).unwrap();
        drop(supervisor.install(&name("again"), &main, &install("panic")));
        until("it waits", || state(supervisor, "again") == BoxState::Waiting);
        supervisor.stop_box(&name("again")).unwrap();
        assert_eq!(state(supervisor, "again"), BoxState::Stopped);
    });
}

#[test]
fn a_looping_box_can_be_killed() {
    in_each(|supervisor, sandbox| {
        let never = CreateBox { sandbox, restart: Restart::Never, ..process("fw", "drop", &[]) };
        supervisor.create_box(never).unwrap();
        let (fw, main) = (name("fw"), ConfigurationName::main());
        let result = std::thread::scope(|scope| {
            // The reply to the installation never comes, or came just before the loop.
            let installing = scope.spawn(|| supervisor.install(&fw, &main, &install("loop")));
            until("it uses time", || {
                supervisor.show_box(&fw).unwrap().status.usage.own_ns > 0 || sandbox == Sandbox::Process
            });
            let start = Instant::now();
            while supervisor.show_configuration(&fw, &main).unwrap().configuration != "loop"
                && start.elapsed() < Duration::from_millis(300)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            supervisor.kill_box(&fw).unwrap();
            installing.join().unwrap()
        });
        drop(result);
        until("it is ended", || state(supervisor, "fw") == BoxState::Crashed);
    });
}

/// A thread that waits for the reply of a looping box, for up to a minute, does not prevent others from stopping and
/// removing it.
#[test]
fn a_looping_box_can_be_stopped_and_removed() {
    in_each(|supervisor, sandbox| {
        let (fw, main) = (name("fw"), ConfigurationName::main());
        for stop in [true, false] {
            supervisor.create_box(CreateBox { sandbox, ..process("fw", "mirror", &[]) }).unwrap();
            std::thread::scope(|scope| {
                // The reply to the first may come just before the loop.
                let first = scope.spawn(|| supervisor.install(&fw, &main, &install("loop")));
                let second = scope.spawn(|| supervisor.install(&fw, &main, &install("loop")));
                let is_asked = || [&first, &second].iter().any(|installing| installing.is_finished());
                let used = || supervisor.show_box(&fw).unwrap().status.usage.own_ns;
                let before = used();
                until("it loops", || is_asked() || used() > before + 20_000_000);
                let start = Instant::now();
                match stop {
                    true => drop(supervisor.stop_box(&fw).unwrap()),
                    false => supervisor.remove_box(&fw).unwrap(),
                }
                assert!(start.elapsed() < TIMEOUT, "it was waited for");
                for installing in [first, second] {
                    drop(installing.join().unwrap());
                }
            });
            if stop {
                supervisor.remove_box(&fw).unwrap();
            }
        }
    });
}

/// A change of a box that is already being changed fails soon, even if the first change takes a minute.
#[test]
fn a_concurrent_change_is_refused_soon() {
    let (supervisor, fw, main) = (supervisor(), name("fw"), ConfigurationName::main());
    supervisor.create_box(process("fw", "drop", &[])).unwrap();
    // The reply comes just before the loop, or never.
    std::thread::scope(|scope| {
        // An installation is refused while the box is suspended below.
        let install_when_resumed = || loop {
            match supervisor.install(&fw, &main, &install("loop")) {
                Err(OperationError::Fabric(FabricError::State { hint, .. })) if hint == "resume it first" => {
                    std::thread::yield_now();
                }
                other => return other,
            }
        };
        let first = scope.spawn(install_when_resumed);
        let second = scope.spawn(install_when_resumed);
        until("the conflict is reported", || {
            let suspended = supervisor.suspend_box(&fw);
            let reported =
                matches!(&suspended, Err(failure) if failure.to_string().contains("being changed"));
            if suspended.is_ok() {
                supervisor.resume_box(&fw).unwrap();
            }
            reported
        });
        supervisor.kill_box(&fw).unwrap();
        for installing in [first, second] {
            drop(installing.join().unwrap());
        }
    });
}

/// Of several concurrent removals of a box only one succeeds: the others must not remove a new box of the same name.
#[test]
fn only_one_of_several_removals_succeeds() {
    let (supervisor, fw) = (supervisor(), name("fw"));
    for _ in 0..10 {
        supervisor.create_box(process("fw", "drop", &[])).unwrap();
        let removed = std::thread::scope(|scope| {
            let removing = [(); 4].map(|()| scope.spawn(|| supervisor.remove_box(&fw).is_ok()));
            removing.map(|removing| removing.join().unwrap())
        });
        assert_eq!(removed.into_iter().filter(|removed| *removed).count(), 1);
    }
}

/// Asserts that box `fw` uses a fifth of a processor: the median of windows of a second. `before` runs before each
/// window.
///
/// Virtual machines that never yield share their worker's time by weight.
#[test]
fn looping_vms_share_a_worker_by_weight() {
    const BOXES: [(&str, u32); 3] = [("less", 50), ("usual", 100), ("more", 300)];
    if !require(Capability::Kvm) {
        return;
    }
    let supervisor = Supervisor::start(&settings_of(image::PROBE, "probe", 1)).unwrap();
    for (box_name, weight) in BOXES {
        supervisor
            .create_box(CreateBox {
                sandbox: Sandbox::Vm,
                cpu_weight: weight.try_into().unwrap(),
                ..process(box_name, "busy", &[])
            })
            .unwrap();
    }
    let used =
        || BOXES.map(|(box_name, _)| supervisor.show_box(&name(box_name)).unwrap().status.usage.own_ns);
    // Each measurement ends when the worker has spent so much time on the boxes, however long that takes: many turns of
    // each.
    let measure = || {
        let before = used();
        let mut gained = [0; 3];
        until("the boxes have used a second of the worker's time", || {
            let now = used();
            gained = [0, 1, 2].map(|index| now[index] - before[index]);
            gained.iter().sum::<u64>() >= 1_000_000_000
        });
        let [less, usual, more] = gained.map(|time| time as f64);
        [usual / less, more / usual]
    };
    let measured = [(); 3].map(|()| measure());
    let [usual_to_less, more_to_usual] = [0, 1].map(|pair| {
        let mut ratios = measured.map(|ratios| ratios[pair]);
        ratios.sort_by(f64::total_cmp);
        ratios[1]
    });
    assert!((1.7..2.3).contains(&usual_to_less), "100 to 50: {measured:?}");
    assert!((2.6..3.4).contains(&more_to_usual), "300 to 100: {measured:?}");
}

/// A stop at any moment of a start is refused because it comes too early, or leaves the box stopped. The box can be
/// used afterwards either way.
#[test]
fn a_box_can_be_stopped_while_it_boots() {
    in_each(|supervisor, sandbox| {
        let fw = name("fw");
        supervisor
            .create_box(CreateBox { sandbox, start: false, ..process("fw", "mirror", &["-"]) })
            .unwrap();
        assert_eq!(state(supervisor, "fw"), BoxState::Created);
        let mut interrupted = 0;
        let begin = Instant::now();
        // Enough rounds for all moments, and until some stops have come in the middle.
        for round in 0.. {
            if round >= 40 && interrupted >= 3 {
                break;
            }
            assert!(begin.elapsed() < TIMEOUT, "{interrupted} of {round} stops came while it booted");
            let (started, stopped) = std::thread::scope(|scope| {
                let starting = scope.spawn(|| supervisor.start_box(&fw));
                std::thread::sleep(Duration::from_micros(round % 40 * 50));
                let stopped = supervisor.stop_box(&fw);
                (starting.join().unwrap(), stopped)
            });
            let now = state(supervisor, "fw");
            match stopped {
                Ok(status) => {
                    assert_eq!((status.state, now), (BoxState::Stopped, BoxState::Stopped), "{started:?}");
                    interrupted += usize::from(started.is_err());
                }
                Err(early) => {
                    assert!(early.to_string().contains("nothing to stop"), "{early}");
                    assert_eq!((started.unwrap().state, now), (BoxState::Running, BoxState::Running));
                    supervisor.write(&handler("fw/value"), b"whole").unwrap();
                    supervisor.stop_box(&fw).unwrap();
                    assert_eq!(state(supervisor, "fw"), BoxState::Stopped);
                }
            }
        }
        supervisor.start_box(&fw).unwrap();
        supervisor.write(&handler("fw/value"), b"whole").unwrap();
        assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"whole");
    });
}

/// Boxes that write random bytes over all their shared memory do not affect others.
#[test]
fn boxes_that_scribble_do_not_affect_others() {
    in_each(|supervisor, sandbox| {
        supervisor.create_switch(api::CreateSwitch::new(support::switch("lan"))).unwrap();
        let main = ConfigurationName::main();
        supervisor.create_box(CreateBox { sandbox, ..process("good", "mirror", &["lan"]) }).unwrap();
        for seed in 0..6 {
            let bad = format!("bad{seed}");
            supervisor
                .create_box(CreateBox { sandbox, restart: Restart::Never, ..process(&bad, "drop", &["lan"]) })
                .unwrap();
            std::thread::scope(|scope| {
                // The box may die before it answers.
                let configuration = install(&format!("scribble {seed}"));
                let at = name(&bad);
                scope.spawn({
                    let main = main.clone();
                    let configuration = configuration.clone();
                    move || drop(supervisor.install(&at, &main, &configuration))
                });
                for round in 0..200u32 {
                    supervisor.write(&handler("good/value"), &round.to_le_bytes()).unwrap();
                    assert_eq!(
                        supervisor.read(&handler("good/value"), b"").unwrap().value.0,
                        round.to_le_bytes()
                    );
                }
                let _ = supervisor.kill_box(&name(&bad));
            });
        }
        assert_eq!(state(supervisor, "good"), BoxState::Running);
        let events = supervisor.boxes().unwrap();
        assert_eq!(events.len(), 7);
        for seed in 0..6 {
            supervisor.remove_box(&name(&format!("bad{seed}"))).unwrap();
        }
    });
}

/// A daemon adopts the boxes of the one before; if these have ended, it starts them again.
#[test]
fn a_restarted_daemon_restores_everything() {
    restores_everything(false);
    restores_everything(true);
}

fn restores_everything(ended: bool) {
    let folder = Folder::new(&format!("restore-{ended}"));
    let settings = Settings { store: Some(folder.file("store")), ..settings() };
    let (mac, started) = {
        let supervisor = Supervisor::start(&settings).unwrap();
        let mut lan = api::CreateSwitch::new(support::switch("lan"));
        lan.mode = api::SwitchMode::Static;
        supervisor.create_switch(lan).unwrap();
        let detail = supervisor.create_box(process("fw", "mirror", &["lan", "pipe:a"])).unwrap();
        supervisor.create_box(process("nat", "drop", &["pipe:a"])).unwrap();
        supervisor.create_box(CreateBox { start: false, ..process("idle", "drop", &[]) }).unwrap();
        let main = ConfigurationName::main();
        supervisor.install(&name("nat"), &main, &install("mirror")).unwrap();
        supervisor
            .set_address(
                &support::switch("lan"),
                api::MacAddr::new([2, 9, 9, 9, 9, 9]),
                &"fw.0".parse().unwrap(),
            )
            .unwrap();
        // A second daemon cannot open the store.
        assert!(Supervisor::start(&settings).unwrap_err().to_string().contains("another daemon"));
        supervisor.write(&handler("fw/value"), b"before").unwrap();
        let started = supervisor.show_box(&name("fw")).unwrap().status.started;
        match ended {
            true => supervisor.end_all(),
            false => supervisor.end(),
        }
        (detail.ports[0].mac, started)
    };
    let supervisor = loop {
        // The last thread of the first daemon may still be ending.
        match Supervisor::start(&settings) {
            Ok(supervisor) => break supervisor,
            Err(error) => assert!(error.to_string().contains("another daemon"), "{error}"),
        }
    };
    let detail = supervisor.show_box(&name("fw")).unwrap();
    assert_eq!((detail.status.state, detail.ports[0].mac), (BoxState::Running, mac));
    assert_eq!(detail.ports[1].attach.to_string(), "pipe:a");
    assert_eq!(detail.status.started == started, !ended, "it is the same box");
    let value = supervisor.read(&handler("fw/value"), b"").unwrap().value;
    assert_eq!(value.0 == b"before", !ended, "{value:?}");
    assert_eq!(state(&supervisor, "idle"), if ended { BoxState::Stopped } else { BoxState::Created });
    let main = ConfigurationName::main();
    assert_eq!(supervisor.show_configuration(&name("nat"), &main).unwrap().configuration, "mirror");
    let addresses = supervisor.addresses(&support::switch("lan")).unwrap();
    let macs: Vec<_> = addresses.iter().map(|entry| entry.mac).collect();
    assert!(macs.contains(&mac) && macs.contains(&api::MacAddr::new([2, 9, 9, 9, 9, 9])), "{addresses:?}");
    supervisor.write(&handler("fw/value"), b"works").unwrap();
}

/// Events are kept across restarts. After a clean end their numbers continue without a gap.
#[test]
fn events_survive_the_daemon() {
    let folder = Folder::new("events");
    let settings = Settings { store: Some(folder.file("store")), ..settings() };
    let start = || loop {
        // The last thread of the previous daemon may still be ending.
        match Supervisor::start(&settings) {
            Ok(supervisor) => break supervisor,
            Err(error) => assert!(error.to_string().contains("another daemon"), "{error}"),
        }
    };
    let numbers = |supervisor: &Supervisor| -> Vec<u64> {
        let events = supervisor.event_list(&api::EventQuery::default());
        events.iter().map(|event| event.sequence).collect()
    };
    let is_whole = |numbers: &[u64]| numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mut last = 0;
    for is_clean in [true, true, false, true] {
        let supervisor = start();
        let found = numbers(&supervisor);
        assert!(found.contains(&last) || last == 0, "{last} in {found:?}");
        supervisor.create_box(process("fw", "mirror", &["-"])).unwrap();
        supervisor.remove_box(&name("fw")).unwrap();
        if is_clean {
            supervisor.end();
            last = numbers(&supervisor).pop().unwrap();
            supervisor.close_store();
        } else {
            assert!(is_whole(&numbers(&supervisor)));
            last = numbers(&supervisor).pop().unwrap();
            // The monitor stores events in each of its rounds.
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    let supervisor = start();
    let found = numbers(&supervisor);
    let gaps = found.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert_eq!((found[0], gaps), (1, 1), "{found:?}");
    let events = supervisor.event_list(&api::EventQuery::default());
    let started = events.iter().filter(|event| event.kind == api::EventKind::DaemonStarted).count();
    assert_eq!(started, 5);
}

/// An entry that is readable, but breaks a limit, does not keep the others from being restored.
#[test]
fn an_entry_that_cannot_be_restored_is_reported() {
    let folder = Folder::new("unrestorable");
    let settings = Settings { store: Some(folder.file("store")), ..settings() };
    {
        let supervisor = Supervisor::start(&settings).unwrap();
        supervisor.create_box(process("odd", "mirror", &["-"])).unwrap();
        supervisor.create_box(process("fw", "mirror", &["-"])).unwrap();
        supervisor.end();
        supervisor.close_store();
    }
    until("the first supervisor has ended", || {
        let store = rusqlite::Connection::open(folder.file("store")).unwrap();
        let long = "x".repeat(1 << 16);
        let order = "UPDATE boxes SET definition = json_set(definition, '$.labels', json_object('note', ?1))
                     WHERE name = 'odd'";
        store.execute(order, [long]).is_ok_and(|rows| rows == 1)
    });
    let supervisor = Supervisor::start(&settings).unwrap();
    assert_eq!(state(&supervisor, "fw"), BoxState::Running);
    assert_eq!(code(supervisor.show_box(&name("odd"))), ErrorCode::NotFound);
    let events = supervisor.event_list(&api::EventQuery::default());
    let damage = events.iter().find(|event| event.kind == api::EventKind::StoreDamaged).unwrap();
    assert_eq!(damage.subject, "box/odd");
    assert!(damage.message.contains("was set aside") && damage.message.contains("labels"), "{damage:?}");
    // Its name is free.
    supervisor.create_box(process("odd", "mirror", &["-"])).unwrap();
}

#[test]
fn a_full_store_changes_nothing() {
    let supervisor = Supervisor::start(&Settings { store_pages: Some(80), ..settings() }).unwrap();
    supervisor.create_box(process("fw", "mirror", &["-"])).unwrap();
    supervisor.write(&handler("fw/value"), b"kept").unwrap();
    // A configuration that is mostly white space, which the probe ignores.
    let large = format!("drop{}", " ".repeat(1 << 20));
    assert_eq!(code(supervisor.create_box(process("large", &large, &["-"]))), ErrorCode::Store);
    let (fw, main) = (name("fw"), ConfigurationName::main());
    let failed = supervisor.install(&fw, &main, &install(&large)).unwrap_err();
    assert_eq!(failed.code(), ErrorCode::Store);
    assert!(failed.to_string().contains("free some space"), "{failed}");
    assert_eq!(supervisor.boxes().unwrap().len(), 1);
    assert_eq!(supervisor.show_configuration(&fw, &main).unwrap().configuration, "mirror");
    assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"kept");
    assert_eq!(supervisor.show_box(&fw).unwrap().installed[0].swaps, 0);
    supervisor.remove_box(&fw).unwrap();
}

/// Requests that come while the fabric is being replaced wait, or are refused with a reason.
#[test]
fn the_fabric_is_replaced_under_requests() {
    let supervisor = supervisor();
    let names = ["a", "b", "c"];
    for name in names {
        supervisor.create_box(process(name, "mirror", &[])).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let creating = scope.spawn(|| {
            let mut created = 0;
            while !done.load(Ordering::SeqCst) {
                match supervisor.create_box(process("other", "mirror", &[])) {
                    Ok(_) => {
                        created += 1;
                        supervisor.remove_box(&name("other")).unwrap();
                    }
                    Err(OperationError::Draining) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            created
        });
        let asking = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                // The old fabric may end before it has answered.
                match supervisor.boxes() {
                    Ok(_) | Err(OperationError::Fabric(FabricError::Disconnected)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        for _ in 0..5 {
            let refused = supervisor.restart_fabric(false).unwrap_err();
            assert!(matches!(refused, OperationError::FabricInUse(_) | OperationError::Changing(_)));
            match supervisor.restart_fabric(true) {
                Ok(restarted) => {
                    assert!(restarted.missing.is_empty(), "{restarted:?}");
                    assert!(names.iter().all(|wanted| restarted.boxes.contains(&name(wanted))));
                }
                Err(OperationError::Changing(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::SeqCst);
        assert!(creating.join().unwrap() > 0);
        asking.join().unwrap();
    });
    for wanted in names {
        assert_eq!(state(&supervisor, wanted), BoxState::Running);
    }
}
