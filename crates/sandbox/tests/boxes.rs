//! A box from creation to end, in each kind of sandbox.

mod support;

use boundary::{CrashCause, Event, Request, Stats};
use sandbox::{CallError, ExitStatus, Sandbox, Settings, State};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{WAIT_TIMEOUT, begin, ended, exchange, in_each, settings, until};

fn frame(number: usize, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|byte| (byte * 31 + number) as u8).collect();
    frame[..6].fill(1);
    frame[6..12].fill(2);
    frame
}

/// The box's own counters.
fn stats(sandbox: &mut Sandbox) -> Stats {
    Stats::decode(&sandbox.call(&Request::Stats, WAIT_TIMEOUT).unwrap()).unwrap()
}

#[test]
fn packets_come_back_mirrored() {
    in_each(&settings(1), |kind, mut sandbox| {
        begin(&mut sandbox, "mirror");
        let mut port = sandbox.take_port(0).unwrap();
        let lengths = [60, 64, 1514, 2048, 14];
        let packets: Vec<_> =
            (0..5_000).map(|number| frame(number, lengths[number % lengths.len()])).collect();
        let received = exchange(&sandbox.doorbell(), (&mut port, None), &packets, packets.len());
        for (sent, received) in packets.iter().zip(&received) {
            assert_eq!(received[..6], sent[6..12], "{kind}");
            assert_eq!(received[6..12], sent[..6], "{kind}");
            assert_eq!(received[12..], sent[12..], "{kind}");
        }
        let stats = stats(&mut sandbox);
        assert_eq!(stats.ports[0].received_packets, 5_000, "{kind}");
        assert_eq!(stats.ports[0].sent_bytes, packets.iter().map(|packet| packet.len() as u64).sum::<u64>());
    });
}

#[test]
fn packets_are_forwarded_between_ports() {
    in_each(&settings(2), |_, mut sandbox| {
        begin(&mut sandbox, "forward");
        let (mut left, mut right) = (sandbox.take_port(0).unwrap(), sandbox.take_port(1).unwrap());
        let packets: Vec<_> = (0..1_000).map(|number| frame(number, 60)).collect();
        let doorbell = sandbox.doorbell();
        assert_eq!(exchange(&doorbell, (&mut left, Some(&mut right)), &packets, 1_000), packets);
        assert_eq!(exchange(&doorbell, (&mut right, Some(&mut left)), &packets, 1_000), packets);
        assert!(sandbox.take_port(0).is_none() && sandbox.take_port(2).is_none());
    });
}

#[test]
fn requests_are_answered_whatever_their_size() {
    in_each(&settings(0), |_, mut sandbox| {
        sandbox.start().unwrap();
        for size in [0, 1, 4096, 65_536, 100_003] {
            let value: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
            let write = Request::Write { name: "", handler: "value", value: &value };
            assert_eq!(sandbox.call(&write, WAIT_TIMEOUT), Ok(Vec::new()));
            let read = Request::Read { name: "", handler: "value", argument: b"" };
            assert_eq!(sandbox.call(&read, WAIT_TIMEOUT), Ok(value));
        }
        let unknown = Request::Read { name: "", handler: "none", argument: b"" };
        assert!(
            matches!(sandbox.call(&unknown, WAIT_TIMEOUT), Err(CallError::Refused(reason)) if reason.as_str().contains("none"))
        );
        assert!(sandbox.install("", "dance", WAIT_TIMEOUT).is_err());
    });
}

/// Withdrawn requests are not executed later, and take no memory.
#[test]
fn what_was_given_up_is_not_done_later() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin(&mut sandbox, "drop");
        sandbox.suspend();
        let long = vec![7; 100_000];
        let write = |value| Request::Write { name: "", handler: "value", value };
        for value in [&long[..], b"late", &long, b"later"] {
            assert_eq!(sandbox.call(&write(value), Duration::ZERO), Err(CallError::TimedOut), "{kind}");
        }
        sandbox.resume();
        // A part of the first request was already sent.
        let read = Request::Read { name: "", handler: "value", argument: b"" };
        assert_eq!(sandbox.call(&read, WAIT_TIMEOUT).unwrap(), long, "{kind}");
    });
}

/// A control handle works while another thread waits for a reply, which wakes that thread.
#[test]
fn a_box_is_controlled_while_a_request_is_in_progress() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin(&mut sandbox, "drop");
        let (control, events) = (sandbox.control_handle(), sandbox.events());
        sandbox.suspend();
        // Long enough that the caller sleeps.
        let pause = Duration::from_millis(20);
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| sandbox.call(&Request::Stats, WAIT_TIMEOUT));
            assert_eq!(control.wait(pause), None, "{kind}");
            assert_eq!(control.state(), State::Suspended, "{kind}");
            assert!(control.usage().time < WAIT_TIMEOUT, "{kind}");
            let start = Instant::now();
            control.resume();
            assert!(caller.join().unwrap().is_ok(), "{kind}");
            assert!(start.elapsed() < WAIT_TIMEOUT / 2, "{kind}: {:?}", start.elapsed());
        });
        while events.next_event().unwrap().is_some() {}
        sandbox.suspend();
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| sandbox.call(&Request::Stats, WAIT_TIMEOUT));
            assert_eq!(control.wait(pause), None, "{kind}");
            control.kill();
            assert_eq!(control.wait(WAIT_TIMEOUT), Some(ExitStatus::Killed), "{kind}");
            assert_eq!(caller.join().unwrap(), Err(CallError::Ended), "{kind}");
        });
    });
}

#[test]
fn console_lines_arrive() {
    in_each(&settings(0), |_, mut sandbox| {
        begin(&mut sandbox, "drop");
        let mut line = None;
        until("a line comes", || {
            line = sandbox.event().unwrap();
            line.is_some()
        });
        let expected = Event::Console { name: b"", line: b"runs `drop`" };
        assert_eq!(Event::decode(&line.unwrap()), Ok(expected));
    });
}

/// An idle box is woken by its alarm, without other events, and idles until then; also after it was suspended.
#[test]
fn a_box_is_woken_by_its_alarm() {
    in_each(&settings(1), |kind, mut sandbox| {
        sandbox.start().unwrap();
        // Measured from before the first alarm is set: a test that is descheduled finds several lines at once.
        let (start, before) = (Instant::now(), sandbox.usage().time);
        sandbox.install("", "alarm 2000", WAIT_TIMEOUT).unwrap();
        let alarms = |sandbox: &mut Sandbox, count: usize| {
            let mut seen = 0;
            until("alarms come", || {
                while let Some(event) = sandbox.event().unwrap() {
                    let line = Event::decode(&event).unwrap();
                    seen += usize::from(line == Event::Console { name: b"", line: b"runs `alarm`" });
                }
                seen >= count
            });
        };
        alarms(&mut sandbox, 11);
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(20), "{kind}: eleven alarms in {took:?}");
        assert!(sandbox.usage().time - before < took, "{kind}: it was never idle");
        sandbox.suspend();
        sandbox.resume();
        alarms(&mut sandbox, 2);
    });
}

/// Every kind of fault results in a report that names it; the host keeps running.
#[test]
fn faults_end_in_reports() {
    let cases = [
        ("fault null", 14),
        ("fault stack", 14),
        ("fault write-text", 14),
        ("fault execute-data", 14),
        ("fault invalid", 6),
        ("fault divide", 0),
        ("fault privileged", 13),
        ("fault non-canonical", 13),
    ];
    for (command, expected) in cases {
        in_each(&settings(0), |kind, mut sandbox| {
            let ExitStatus::Crashed(report) = crash(&mut sandbox, command) else {
                panic!("{kind}: {command}: no report")
            };
            let CrashCause::Exception { vector, .. } = report.cause else {
                panic!("{kind}: {command}: {report:?}")
            };
            assert_eq!(vector, expected, "{kind}: {command}");
            assert!(report.registers.rip != 0 && report.registers.rsp != 0, "{kind}: {command}");
            assert_eq!(report.element, b"probe");
            if command == "fault null" {
                assert_eq!(report.address, 8, "{kind}");
            }
        });
    }
}

fn crash(sandbox: &mut Sandbox, command: &str) -> ExitStatus {
    sandbox.start().unwrap();
    // The reply may come before the end, or not.
    match sandbox.install("", command, WAIT_TIMEOUT) {
        Ok(()) | Err(CallError::Ended) => ended(sandbox),
        Err(error) => panic!("{command}: {error}"),
    }
}

#[test]
fn panics_and_used_up_memory_end_in_reports() {
    in_each(&settings(0), |kind, mut sandbox| {
        let ExitStatus::Crashed(report) = crash(&mut sandbox, "panic") else { panic!("{kind}: no report") };
        assert_eq!(report.cause, CrashCause::Panic);
        assert!(String::from_utf8_lossy(&report.message).contains("as commanded"), "{kind}: {report:?}");
    });
    in_each(&settings(0), |kind, mut sandbox| {
        let ExitStatus::Crashed(report) = crash(&mut sandbox, "memory") else { panic!("{kind}: no report") };
        assert_eq!(report.cause, CrashCause::OutOfMemory, "{kind}: {report:?}");
    });
}

/// A forbidden system call or port ends the box.
#[test]
fn forbidden_system_calls_and_ports_end_the_box() {
    for command in ["fault system-call", "fault other-port"] {
        in_each(&settings(0), |kind, mut sandbox| {
            let end = crash(&mut sandbox, command);
            assert!(
                matches!(end, ExitStatus::Crashed(_) | ExitStatus::Vanished { .. }),
                "{kind}: {command}: {end:?}"
            );
        });
    }
}

#[test]
fn an_endless_loop_is_killed() {
    in_each(&settings(0), |kind, mut sandbox| {
        sandbox.start().unwrap();
        let _ = sandbox.install("", "loop", WAIT_TIMEOUT);
        until("it has used time", || sandbox.usage().time >= Duration::from_millis(2));
        assert_eq!(sandbox.state(), State::Running, "{kind}");
        let start = Instant::now();
        sandbox.kill();
        assert_eq!(sandbox.state(), State::Ended(ExitStatus::Killed));
        assert!(start.elapsed() < Duration::from_secs(1), "{kind}: {:?}", start.elapsed());
    });
}

/// If a box that does not reply is killed, the thread that waits for its reply is notified at once.
#[test]
fn a_caller_learns_of_the_end_of_its_box() {
    in_each(&settings(0), |kind, mut sandbox| {
        sandbox.start().unwrap();
        let remote = sandbox.control_handle();
        let _ = sandbox.install("", "loop", Duration::from_millis(20));
        let start = Instant::now();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| sandbox.call(&Request::Stats, WAIT_TIMEOUT));
            remote.kill();
            assert_eq!(asked.join().unwrap(), Err(CallError::Ended), "{kind}");
        });
        assert!(start.elapsed() < WAIT_TIMEOUT / 2, "{kind}: {:?}", start.elapsed());
        assert_eq!(sandbox.state(), State::Ended(ExitStatus::Killed), "{kind}");
    });
}

/// The end of each box is reported: by the bell for virtual machines, by a descriptor for processes.
#[test]
fn an_end_is_reported() {
    let exit_event = Arc::new(sandbox::EventFd::new().unwrap());
    let settings = Settings { exit_event: Some(exit_event.clone()), ..settings(0) };
    in_each(&settings, |kind, mut sandbox| {
        begin(&mut sandbox, "drop");
        let process = sandbox.end_descriptor().map(sandbox::EventFd::from);
        assert!(!exit_event.rang(), "{kind}");
        sandbox.stop();
        // A process's descriptor is readable, though nothing can be read from it.
        let reported = process.is_some() || exit_event.wait(WAIT_TIMEOUT);
        assert!(reported, "{kind}: its end is not reported");
        assert_eq!(ended(&mut sandbox), ExitStatus::Stopped, "{kind}");
    });
}

#[test]
fn a_suspended_box_stands_still_and_goes_on() {
    in_each(&settings(1), |kind, mut sandbox| {
        begin(&mut sandbox, "mirror");
        let mut port = sandbox.take_port(0).unwrap();
        sandbox.suspend();
        assert_eq!(sandbox.state(), State::Suspended);
        assert!(port.send(&frame(1, 60)).unwrap());
        port.publish();
        sandbox.doorbell().ring();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(port.available(1), Ok(0), "{kind}");
        sandbox.resume();
        until("the packet comes back", || port.available(1).unwrap() == 1);
        assert_eq!(sandbox.state(), State::Running);
    });
}

/// A box's memory usage is what it has touched, and includes a value that it was given.
#[test]
fn private_memory_is_what_the_box_touched() {
    in_each(&Settings::new(8 << 20), |kind, mut sandbox| {
        begin(&mut sandbox, "drop");
        let before = sandbox.private_memory().unwrap();
        assert!((16 << 10..1 << 20).contains(&before), "{kind}: {before}");
        let write = Request::Write { name: "", handler: "value", value: &vec![1; 1 << 20] };
        sandbox.call(&write, WAIT_TIMEOUT).unwrap();
        let after = sandbox.private_memory().unwrap();
        assert!((before + (1 << 20)..before + (4 << 20)).contains(&after), "{kind}: {before}, {after}");
        sandbox.kill();
        assert_eq!(sandbox.private_memory().unwrap(), 0, "{kind}");
    });
}

#[test]
fn a_box_stops_when_it_is_asked() {
    in_each(&settings(1), |kind, mut sandbox| {
        begin(&mut sandbox, "mirror");
        sandbox.stop();
        assert_eq!(ended(&mut sandbox), ExitStatus::Stopped, "{kind}");
        let late = sandbox.install("", "mirror", Duration::from_millis(50));
        assert_eq!(late, Err(CallError::Ended), "{kind}");
    });
}

#[test]
fn a_box_rings_when_its_host_sleeps() {
    let settings = settings(1);
    let bell = settings.wake_event.clone().unwrap();
    in_each(&settings, |kind, mut sandbox| {
        begin(&mut sandbox, "mirror");
        let mut port = sandbox.take_port(0).unwrap();
        bell.rang();
        for number in 0..20 {
            assert_eq!(port.prepare_sleep(), Ok(true), "{kind}");
            port.room(1).unwrap();
            assert!(port.send(&frame(number, 60)).unwrap());
            if port.publish() {
                sandbox.doorbell().ring();
            }
            assert!(bell.wait(WAIT_TIMEOUT), "{kind}: packet {number} came without a ring");
            assert_eq!(port.available(1), Ok(1));
            port.receive(&mut [0; 2048]).unwrap();
            port.release();
        }
    });
}

#[test]
fn settings_out_of_range_are_refused() {
    let host = support::host();
    for settings in [Settings::new(0), Settings::new(usize::MAX), settings(17)] {
        assert!(host.create(sandbox::Target::Process, &settings).is_err());
    }
}
