//! The engine in boxes: its behaviour is the same in a virtual machine, a process and a thread.

mod sandboxes;

use boundary::limits::{BUFFER_SIZE, MAX_CRASH_BATCH, MAX_CRASH_START};
use boundary::{CrashBatch, CrashCause, CrashPacket, Request, Stats};
use sandbox::{CallError, ExitStatus, Sandbox, State};
use sandboxes::{TIMEOUT, check, exchange, in_each, install, read, settings, until};
use std::time::{Duration, Instant};

const FORWARD: &str = "FromDevice(0) -> c :: Counter -> ToDevice(1);";
/// The same with the names of DPDK. A port number of DPDK is the number of a port of the box.
const FORWARD_DPDK: &str =
    "FromDPDKDevice(0, N_QUEUES 2) -> EnsureDPDKBuffer -> c :: Counter -> ToDPDKDevice(1, BLOCKING true);";

fn frame(number: u32) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0][..], &[7; 42], &number.to_be_bytes()].concat()
}

#[test]
fn packets_pass_through_a_box() {
    for (slots, config) in [(64, FORWARD), (1024, FORWARD), (256, FORWARD_DPDK)] {
        in_each(&settings(2, slots), |platform, mut sandbox| {
            sandbox.start().unwrap();
            install(&mut sandbox, "", config);
            let (mut to, mut from) = (sandbox.take_port(0).unwrap(), sandbox.take_port(1).unwrap());
            let packets: Vec<_> = (0..3_000).map(frame).collect();
            let received = exchange(&sandbox.doorbell(), &mut to, &mut from, &packets);
            assert!(received == packets, "{platform}");
            assert_eq!(read(&mut sandbox, "c.count"), "3000", "{platform}");
            let stats = Stats::decode(&sandbox.call(&Request::Stats, TIMEOUT).unwrap()).unwrap();
            assert_eq!(
                (stats.ports[0].received_packets, stats.ports[1].sent_packets),
                (3_000, 3_000),
                "{platform}"
            );
            assert_eq!(stats.drops, [], "{platform}");
        });
    }
}

#[test]
fn a_swap_under_traffic_loses_nothing() {
    in_each(&settings(2, 256), |platform, mut sandbox| {
        sandbox.start().unwrap();
        install(&mut sandbox, "", FORWARD);
        let (mut to, mut from) = (sandbox.take_port(0).unwrap(), sandbox.take_port(1).unwrap());
        let packets: Vec<_> = (0..2_000).map(frame).collect();
        let doorbell = sandbox.doorbell();
        let mut received = Vec::new();
        for (round, packets) in packets.chunks(500).enumerate() {
            received.extend(exchange(&doorbell, &mut to, &mut from, packets));
            let next = format!("FromDevice(0) -> c :: Counter -> Paint({round}) -> ToDevice(1);");
            install(&mut sandbox, "", &next);
            let bad = sandbox.install("", "FromDevice(0) -> Nonsense -> ToDevice(1);", TIMEOUT);
            assert!(
                matches!(bad, Err(CallError::Rejected(found)) if found[0].message.contains("Nonsense")),
                "{platform}"
            );
        }
        assert!(received == packets, "{platform}");
        assert_eq!(read(&mut sandbox, "c.count"), "2000", "{platform}");
    });
}

#[test]
fn a_check_runs_nothing() {
    in_each(&settings(1, 64), |platform, mut sandbox| {
        sandbox.start().unwrap();
        assert_eq!(check(&mut sandbox, "FromDevice(0) -> Discard;"), [], "{platform}");
        let found = check(&mut sandbox, "FromDevice(0) -> Cuonter -> Discard;");
        assert!(found.iter().any(|diagnostic| diagnostic.hint.contains("Counter")), "{platform}: {found:?}");
        let none = sandbox.call(&Request::Read { name: "", handler: "list", argument: b"" }, TIMEOUT);
        assert!(matches!(none, Err(CallError::Missing(_))), "{platform}: {none:?}");
    });
}

/// A configuration with timers wakes on its own, and uses almost no CPU time.
#[test]
fn a_box_wakes_for_its_timers() {
    in_each(&settings(1, 64), |_, mut sandbox| {
        sandbox.start().unwrap();
        install(&mut sandbox, "", "TimedSource(INTERVAL 0.01) -> ToDevice(0);");
        let mut port = sandbox.take_port(0).unwrap();
        let mut packets = |count| {
            let (mut received, mut buffer) = (0, [0; BUFFER_SIZE]);
            until("packets come", || {
                port.available(1).unwrap();
                while port.receive(&mut buffer).unwrap().is_some() {
                    received += 1;
                }
                port.release();
                received >= count
            });
        };
        // On a slow machine it first has to catch up with packets that became due during its installation.
        until("it sleeps between its packets", || {
            let (start, before) = (Instant::now(), sandbox.usage().time);
            packets(20);
            sandbox.usage().time - before < start.elapsed() * 3 / 4
        });
    });
}

#[test]
fn a_box_is_suspended_resumed_and_stopped() {
    in_each(&settings(2, 64), |platform, mut sandbox| {
        sandbox.start().unwrap();
        install(&mut sandbox, "", FORWARD);
        let (mut to, mut from) = (sandbox.take_port(0).unwrap(), sandbox.take_port(1).unwrap());
        sandbox.suspend();
        assert_eq!(sandbox.state(), State::Suspended, "{platform}");
        assert!(to.send(&frame(1)).unwrap());
        to.publish();
        sandbox.doorbell().ring();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(from.available(1), Ok(0), "{platform}");
        sandbox.resume();
        until("the packet comes", || from.available(1).unwrap() == 1);
        sandbox.stop();
        until("it stops", || sandbox.state() == State::Ended(ExitStatus::Stopped));
    });
}

#[test]
fn a_box_is_killed() {
    in_each(&settings(1, 64), |platform, mut sandbox| {
        sandbox.start().unwrap();
        install(&mut sandbox, "", "InfiniteSource -> Discard;");
        sandbox.kill();
        assert_eq!(sandbox.state(), State::Ended(ExitStatus::Killed), "{platform}");
    });
}

/// A box that runs out of memory leaves a report with the configuration, the element and the packet.
#[test]
fn a_crash_report_names_the_element_and_contains_the_packet() {
    let greedy = "FromDevice(0) -> Counter(COUNT_CALL 1 s.run) -> Discard;
        s :: Script(TYPE PASSIVE, set x 0123456789, label again, set x $x$x, goto again);";
    let crash = |platform: &str, sandbox: &mut Sandbox| {
        sandbox.start().unwrap();
        install(sandbox, "second", greedy);
        let mut port = sandbox.take_port(0).unwrap();
        assert!(port.send(&frame(77)).unwrap());
        if port.publish() {
            sandbox.doorbell().ring();
        }
        until("it crashes", || matches!(sandbox.state(), State::Ended(_)));
        let State::Ended(ExitStatus::Crashed(report)) = sandbox.state() else {
            panic!("{platform}: {:?}", sandbox.state())
        };
        assert_eq!(report.cause, CrashCause::OutOfMemory, "{platform}: {report:?}");
        assert_eq!(String::from_utf8_lossy(&report.element), "second:s", "{platform}");
        assert_eq!(report.packet, frame(77), "{platform}");
    };
    let small = sandbox::Settings { memory: 1 << 20, ..settings(1, 64) };
    in_each(&small, |platform, mut sandbox| match platform {
        // A thread shares the heap of the whole process.
        "thread" => {}
        _ => crash(platform, &mut sandbox),
    });
}

/// A UDP packet of a distinct flow.
fn flow(number: u32) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[..14].copy_from_slice(&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0]);
    packet[14..26].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    packet[26..30].copy_from_slice(&(0x0a00_0000 + number).to_be_bytes());
    packet[30..42].copy_from_slice(&[192, 0, 2, 1, 4, 0, 0, 53, 0, 26, 0, 0]);
    packet
}

#[test]
fn a_crash_report_contains_the_current_batch() {
    // At some flow the memory is exhausted.
    let greedy = "FromDevice(0) -> MarkIPHeader(14) -> r :: IPRewriter(keep 0 0) -> Discard;";
    let small = sandbox::Settings { memory: 1 << 20, ..settings(1, 64) };
    in_each(&small, |platform, mut sandbox| {
        // A thread shares the heap of the whole process.
        if platform == "thread" {
            return;
        }
        sandbox.start().unwrap();
        install(&mut sandbox, "", greedy);
        let mut port = sandbox.take_port(0).unwrap();
        let mut numbers = 0..;
        until("it crashes", || {
            for number in (&mut numbers).take(port.room(64).unwrap() as usize) {
                assert!(port.send(&flow(number)).unwrap());
            }
            if port.publish() {
                sandbox.doorbell().ring();
            }
            matches!(sandbox.state(), State::Ended(_))
        });
        let State::Ended(ExitStatus::Crashed(report)) = sandbox.state() else {
            panic!("{platform}: {:?}", sandbox.state())
        };
        assert_eq!((report.cause, &report.element[..]), (CrashCause::OutOfMemory, &b"r"[..]), "{platform}");
        let CrashBatch { count, packets } = report.batch;
        assert_eq!(packets.len() as u64, count.min(MAX_CRASH_BATCH as u64), "{platform}");
        // These packets were sent consecutively, and the first one is recorded at greater length.
        let number = u32::from_be_bytes(report.packet[26..30].try_into().unwrap()) - 0x0a00_0000;
        assert_eq!(report.packet, flow(number), "{platform}");
        for (number, packet) in (number..).zip(packets) {
            let start = flow(number)[..MAX_CRASH_START].to_vec();
            assert_eq!(packet, CrashPacket { length: 60, start }, "{platform}");
        }
    });
}
