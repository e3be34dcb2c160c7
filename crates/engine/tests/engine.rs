//! The engine without a sandbox: mailbox and rings in plain memory, with simulated time.

mod support;

use boundary::{Event, PortStats, Request, Severity};
use engine::{CONSOLE_LINES, MAX_LINE};
use support::{Bench, NOW, Refused, frames};

const FORWARD: &str = "FromDevice(0) -> c :: Counter -> ToDevice(1);";

fn failed(result: Result<impl std::fmt::Debug, Refused>) -> String {
    match result {
        Err(Refused::Failed(reason)) => reason,
        Err(Refused::Rejected(found)) => found.into_iter().map(|finding| finding.message + "\n").collect(),
        other => panic!("{other:?}"),
    }
}

fn missing(result: Result<impl std::fmt::Debug, Refused>) -> String {
    match result {
        Err(Refused::Missing(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packets_go_from_port_to_port() {
    for slots in [64, 256, 2048] {
        let mut bench = Bench::new(2, slots);
        bench.install("", FORWARD).unwrap();
        let packets = frames(5_000, 60);
        let (mut sent, mut received) = (0, Vec::new());
        while received.len() < packets.len() {
            sent += bench.send(0, &packets[sent..]);
            bench.engine.round().unwrap();
            received.extend(bench.receive(1));
        }
        assert_eq!(received, packets);
        assert_eq!(bench.read("", "c.count").unwrap(), "5000");
        let stats = bench.stats();
        let bytes = 5_000 * 60;
        let received = PortStats { received_packets: 5_000, received_bytes: bytes, ..PortStats::default() };
        let sent = PortStats { sent_packets: 5_000, sent_bytes: bytes, ..PortStats::default() };
        assert_eq!((stats.ports, stats.drops), (vec![received, sent], vec![]));
    }
}

#[test]
fn packets_that_find_no_room_are_dropped_or_wait() {
    let mut bench = Bench::new(2, 64);
    bench.install("", FORWARD).unwrap();
    bench.send(0, &frames(64, 60));
    bench.settle();
    bench.send(0, &frames(10, 60));
    bench.settle();
    let stats = bench.stats();
    assert_eq!((stats.ports[1].sent_packets, stats.ports[1].full_drops), (64, 10));
    assert_eq!(stats.drops, [("full".to_string(), 10)]);
    // A queue waits until there is room, and the box sleeps meanwhile.
    bench.install("", "FromDevice(0) -> q :: Queue(100) -> ToDevice(1);").unwrap();
    bench.send(0, &frames(20, 60));
    bench.pass(50);
    assert_eq!(bench.stats().ports[1].sent_packets, 64);
    assert_eq!(bench.receive(1).len(), 64);
    bench.pass(50);
    assert_eq!(bench.receive(1).len(), 20);
    assert_eq!(bench.stats().drops, [("full".to_string(), 10)]);
}

#[test]
fn a_swap_keeps_state_and_a_bad_one_changes_nothing() {
    let mut bench = Bench::new(2, 64);
    bench.install("", FORWARD).unwrap();
    bench.send(0, &frames(5, 60));
    bench.settle();
    assert_eq!(bench.receive(1).len(), 5);
    for (bad, message) in [
        ("FromDevice(0) -> c :: Cuonter -> ToDevice(1);", "Cuonter"),
        ("FromDevice(0) -> c :: Counter -> ToDevice(2);", "this box has ports 0 to 1"),
        ("FromDevice(eth0) -> c :: Counter -> ToDevice(1);", "this box has ports 0 to 1"),
        (
            "FromDevice(0) -> Discard; FromDevice(0) -> c :: Counter -> ToDevice(1);",
            "already read by another element",
        ),
        ("FromDevice(0) -> Queue -> Discard; FromDevice(1) -> c :: Counter(", "expected"),
        ("FromDump(nowhere.pcap) -> c :: Counter -> Discard", "ship it with the configuration"),
    ] {
        let reason = failed(bench.install("", bad));
        assert!(reason.contains(message), "{bad}: {reason}");
        bench.send(0, &frames(1, 60));
        bench.settle();
        assert_eq!(bench.receive(1).len(), 1, "after {bad}");
    }
    let refused = bench.install("", "Idle -> Discard;\nIdle -> ToDevice(9);");
    let Err(Refused::Rejected(found)) = refused else { panic!("{refused:?}") };
    assert_eq!((found.len(), found[0].line, found[0].column), (1, 2, 9), "{found:?}");
    assert_eq!(bench.read("", "config").unwrap(), FORWARD);
    let next = "FromDevice(0) -> c :: Counter -> d :: Counter -> ToDevice(1);";
    bench.install("", next).unwrap();
    bench.send(0, &frames(3, 60));
    bench.settle();
    assert_eq!(bench.receive(1).len(), 3);
    assert_eq!(bench.read("", "c.count").unwrap(), "14");
    assert_eq!(bench.read("", "d.count").unwrap(), "3");
    assert_eq!(bench.read("", "config").unwrap(), next);
    // The same through the handler, which a configuration can also write.
    bench.write("", "hotconfig", FORWARD).unwrap();
    bench.send(0, &frames(1, 60));
    bench.settle();
    assert_eq!((bench.receive(1).len(), bench.read("", "c.count").unwrap()), (1, "15".into()));
}

#[test]
fn configurations_stand_side_by_side() {
    let mut bench = Bench::new(4, 64);
    bench.install("", FORWARD).unwrap();
    bench.install("second", "FromDevice(2) -> c :: Counter -> ToDevice(3);").unwrap();
    let reason = failed(bench.install("third", "FromDevice(0) -> Discard;"));
    assert!(reason.contains("0: it is already read by the main configuration"), "{reason}");
    let reason = failed(bench.install("third", "Idle -> Queue -> ToDevice(3);"));
    assert!(reason.contains("3: it is already written by the configuration ‘second’"), "{reason}");
    bench.send(0, &frames(2, 60));
    bench.send(2, &frames(3, 60));
    bench.settle();
    assert_eq!((bench.receive(1).len(), bench.receive(3).len()), (2, 3));
    assert_eq!(bench.read("", "c.count").unwrap(), "2");
    assert_eq!(bench.read("second", "c.count").unwrap(), "3");
    // A removed configuration releases its ports.
    bench.call(&Request::Remove { name: "second" }).unwrap();
    assert!(missing(bench.read("second", "c.count")).contains("‘second’"));
    bench.install("third", "FromDevice(2) -> ToDevice(3);").unwrap();
    bench.call(&Request::Remove { name: "" }).unwrap();
    assert!(missing(bench.read("", "list")).contains("main configuration"));
    assert!(missing(bench.call(&Request::Remove { name: "" })).contains("main configuration"));
}

#[test]
fn handlers_answer_or_say_why_not() {
    let mut bench = Bench::new(0, 64);
    let text = "Idle -> s :: Switch(1); s[0] -> Discard; s[1] -> c :: Counter -> Discard;";
    let warnings = bench.install("", text).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(bench.read("", "s.switch").unwrap(), "1");
    bench.write("", "s.switch", "0").unwrap();
    assert_eq!(bench.read("", "s.switch").unwrap(), "0");
    assert!(bench.read("", "list").unwrap().starts_with("5\n"));
    assert!(bench.read("", "c.handlers").unwrap().contains("count\tr\n"));
    assert!(bench.read("", "flatconfig").unwrap().contains("c :: Counter"));
    assert!(missing(bench.read("", "nobody.count")).contains("no element named ‘nobody’"));
    assert!(missing(bench.read("", "c.nothing")).contains("c.nothing"));
    assert!(failed(bench.write("", "c.count", "1")).contains("read handler"));
    assert!(!failed(bench.write("", "s.switch", "many")).is_empty());
    let write = Request::Write { name: "", handler: "s.switch", value: &[0xff] };
    assert!(failed(bench.call(&write)).contains("UTF-8"));
}

#[test]
fn a_check_tells_everything_and_runs_nothing() {
    let mut bench = Bench::new(1, 64);
    let mut check = |configuration| {
        let reply = bench.call(&Request::Check { configuration }).unwrap();
        boundary::Diagnostic::decode(&reply).unwrap()
    };
    assert_eq!(check("FromDevice(0) -> Counter -> ToDevice(0);"), []);
    let found =
        check("FromDevice(0)\n  -> Cuonter -> c :: Counter(1, 2, 3) -> Discard;\nIdle -> [0]Nowhere;");
    let errors: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.iter().any(|error| error.message.contains("Cuonter") && error.line == 2), "{found:?}");
    assert!(errors.iter().any(|error| error.message.contains("Nowhere") && error.line == 3), "{found:?}");
    assert!(errors.iter().any(|error| error.hint.contains("Counter")), "{found:?}");
    assert!(missing(bench.read("", "list")).contains("no main configuration"));
}

#[test]
fn shipped_files_are_found_and_written_ones_arrive() {
    let mut bench = Bench::new(0, 64);
    let capture = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap")).unwrap();
    let contents = &capture[..capture.len().min(200_000)];
    bench.call(&Request::File { name: "in.pcap", contents }).unwrap();
    let library = b"elementclass Watch { -> w :: Counter -> }";
    bench.call(&Request::File { name: "watch.click", contents: library }).unwrap();
    let text =
        "require(library watch.click); FromDump(in.pcap, STOP true) -> w :: Watch -> ToDump(out.pcap);";
    bench.install("", text).unwrap();
    let mut written: Vec<u8> = Vec::new();
    bench.each_event(|event| {
        let Event::Output { file, position, bytes } = event else { panic!("{event:?}") };
        assert_eq!((file, position), (&b"out.pcap"[..], written.len() as u64), "nothing is lost");
        written.extend_from_slice(bytes);
    });
    let count: usize = bench.read("", "w/w.count").unwrap().parse().unwrap();
    assert!(count > 100);
    assert_eq!(bench.stats().lost_events, 0);
    assert!(written.len() > 24 && written.len() <= contents.len(), "{} of {}", written.len(), contents.len());
    bench.call(&Request::File { name: "small.pcap.gz", contents: &[0x1f, 0x8b, 8] }).unwrap();
    let reason = failed(bench.install("", "FromDump(small.pcap.gz) -> Discard;"));
    assert!(reason.contains("unpack it"), "{reason}");
}

#[test]
fn lines_are_named_limited_and_never_hold_packets_up() {
    let mut bench = Bench::new(2, 2048);
    bench.install("", "FromDevice(0) -> Print(x) -> ToDevice(1);").unwrap();
    bench.install("loud", "Script(print \"first\\nsecond\");").unwrap();
    bench.settle();
    let lines = bench.lines();
    assert!(lines.contains(&("loud".into(), "first".into())), "{lines:?}");
    assert!(lines.contains(&("loud".into(), "second".into())), "{lines:?}");
    // If the host reads no events, those that exceed the channel and its queue are dropped and counted, and all packets
    // pass.
    let most = 2_000;
    for _ in 0..5 {
        bench.send(0, &frames(most, 60));
        bench.settle();
        assert_eq!(bench.receive(1).len(), most);
    }
    let lost = bench.stats().lost_events;
    let said = bench.lines().len() as u64;
    // A little time has passed, which refills the budget a little.
    assert!(said > 100 && said <= CONSOLE_LINES + CONSOLE_LINES / 20, "{said} lines");
    assert_eq!(lost + said, 5 * most as u64);
    // A second later the budget is full again, and a long line is cut.
    bench.pass(1_100);
    bench.install("loud", &format!("Script(print {});", "x".repeat(2 * MAX_LINE))).unwrap();
    let lines = bench.lines();
    assert_eq!(lines.last().map(|line| line.1.len()), Some(MAX_LINE), "{lines:?}");
}

#[test]
fn timers_come_in_time_and_the_box_rests_between_them() {
    let mut bench = Bench::new(1, 64);
    bench.install("", "TimedSource(INTERVAL 0.5) -> c :: Counter -> ToDevice(0);").unwrap();
    bench.settle();
    let rests = bench.platform.rests.get();
    bench.pass(10_000);
    let count = bench.receive(0).len();
    assert!((19..=21).contains(&count), "{count} packets in 10 s");
    assert!(bench.platform.rests.get() - rests < 60, "it rests between timers");
    assert!(bench.platform.alarm.get().is_some());
    bench.call(&Request::Remove { name: "" }).unwrap();
    bench.settle();
    assert_eq!(bench.platform.alarm.get(), None, "nothing is left to wake for");
}

#[test]
fn packets_have_times_and_types() {
    let mut bench = Bench::new(1, 64);
    let text = "FromDevice(0) -> t :: HostEtherFilter(02:00:00:00:00:00) -> mine :: Counter -> ToDump(o, SNAPLEN 14);
        t[1] -> others :: Counter -> Discard;";
    bench.install("", text).unwrap();
    let mut other = frames(1, 60);
    other[0][5] = 9;
    bench.send(0, &frames(2, 60));
    bench.send(0, &other);
    bench.settle();
    assert_eq!(
        (bench.read("", "mine.count").unwrap(), bench.read("", "others.count").unwrap()),
        ("2".into(), "1".into())
    );
    let mut written = Vec::new();
    bench.each_event(|event| {
        let Event::Output { bytes, .. } = event else { panic!("{event:?}") };
        written.extend_from_slice(bytes);
    });
    let seconds = u32::from_le_bytes(written[24..28].try_into().unwrap());
    assert_eq!(u64::from(seconds), NOW);
}

#[test]
fn a_turn_ends_with_the_quantum() {
    let mut bench = Bench::new(2, 2048);
    bench.install("", FORWARD).unwrap();
    bench.status().set_quantum(512);
    bench.send(0, &frames(2_000, 60));
    bench.settle();
    let turns = bench.platform.turns.get();
    assert!((3..=4).contains(&turns), "{turns} turns for 2,000 packets");
    // While no other box waits, the turn continues.
    bench.status().set_uncontended_until(u64::MAX);
    bench.receive(1);
    bench.send(0, &frames(2_000, 60));
    bench.settle();
    assert_eq!(bench.platform.turns.get(), turns);
    // The host preempts a box that only computes: it does not end its own turn.
    bench.status().set_uncontended_until(0);
    bench.install("second", "InfiniteSource(LIMIT 1000000) -> Discard;").unwrap();
    bench.settle();
    assert_eq!(bench.platform.turns.get(), turns);
}

#[test]
fn a_box_lets_others_run_before_a_rest_after_much_work() {
    let mut bench = Bench::new(2, 64);
    bench.install("", FORWARD).unwrap();
    bench.settle();
    let mut yields = |packets| {
        let before = bench.platform.yields.get();
        assert_eq!(bench.send(0, &frames(packets, 60)), packets);
        bench.settle();
        assert_eq!(bench.receive(1).len(), packets);
        bench.platform.yields.get() - before
    };
    assert_eq!([yields(60), yields(1), yields(60)], [1, 0, 1]);
}

#[test]
fn a_source_waits_for_room_that_is_worth_it() {
    let mut bench = Bench::new(1, 64);
    bench.install("", "s :: InfiniteSource(LENGTH 60) -> ToDevice(0);").unwrap();
    bench.settle();
    let made = bench.read("", "s.count").unwrap();
    let mut take = |packets: u32| {
        let port = &mut bench.ports[0];
        port.available(packets).unwrap();
        for _ in 0..packets {
            port.take().unwrap().unwrap();
        }
        port.release();
        bench.settle();
        bench.read("", "s.count").unwrap()
    };
    assert_eq!(take(7), made, "seven slots of 64 are not");
    assert_ne!(take(1), made);
}

/// Packets that are dropped for lack of room count towards the turn.
#[test]
fn a_turn_ends_though_nothing_leaves() {
    let mut bench = Bench::new(1, 64);
    bench.install("", "RatedSource(RATE 100000000) -> ToDevice(0);").unwrap();
    bench.status().set_quantum(64);
    for _ in 0..100 {
        bench.engine.round().unwrap();
    }
    assert!(bench.platform.turns.get() >= 50, "{} turns", bench.platform.turns.get());
}

#[test]
fn a_box_that_polls_never_rests() {
    let mut bench = Bench::new(2, 64);
    bench.install("", FORWARD).unwrap();
    bench.settle();
    bench.status().set_polling(true);
    for number in 1..50 {
        assert!((0..100).all(|_| !bench.engine.round().unwrap()), "{number}");
        bench.send(0, &frames(1, 60));
        bench.engine.round().unwrap();
        assert_eq!(bench.receive(1).len(), 1, "{number}");
    }
    bench.status().set_polling(false);
    bench.settle();
}

#[test]
fn a_copy_has_its_own_time_seeds_and_addresses() {
    let mut bench = Bench::new(1, 64);
    let text = "FromDevice(0) -> Discard; Script(TYPE PASSIVE, return $(now)); AddressInfo(p 0:eth);
        r :: RandomSource(LENGTH 64, LIMIT 1, ACTIVE false) -> c :: Counter -> Discard;";
    bench.install("", text).unwrap();
    bench.settle();
    bench.info.seeds = [9, 9, 9, 9];
    bench.info.clock_unix_ns += 3_600 * 1_000_000_000;
    bench.info.ports[0].mac = 7;
    let info = bench.info.clone();
    info.write(&bench.area).unwrap();
    bench.status().set_generation(1);
    bench.settle();
    bench.install("late", "FromDevice(0) -> Discard;").unwrap_err();
    bench.install("", "FromDevice(0) -> d :: ToDump(o, SNAPLEN 14);").unwrap();
    bench.send(0, &frames(1, 60));
    bench.settle();
    let mut written = Vec::new();
    bench.each_event(|event| {
        if let Event::Output { bytes, .. } = event {
            written.extend_from_slice(bytes);
        }
    });
    let seconds = u64::from(u32::from_le_bytes(written[24..28].try_into().unwrap()));
    assert!(seconds >= NOW + 3_600, "{seconds}");
}

#[test]
fn there_is_no_crash_context_between_calls() {
    let mut bench = Bench::new(2, 64);
    bench.install("", FORWARD).unwrap();
    bench.settle();
    assert!(bench.engine.crash_context().is_none());
}
