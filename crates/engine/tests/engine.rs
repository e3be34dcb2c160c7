//! The engine without a sandbox: mailbox and rings in plain memory, with simulated time.

mod support;

use boundary::{
    Diagnostic, Event, PacketAccount, PacketFates, PortStats, RefusedWrite, Request, Severity, Stats,
    WriteEffect, Written,
};
use engine::{CONSOLE_LINES, MAX_LINE};
use support::{CallError, NOW, TSC_HZ, TestBox, frames};

const FORWARD: &str = "FromDevice(0) -> c :: Counter -> ToDevice(1);";

fn failed(result: Result<impl std::fmt::Debug, CallError>) -> String {
    match result {
        Err(CallError::Failed(reason)) => reason,
        Err(CallError::Rejected(found)) => found.into_iter().map(|finding| finding.message + "\n").collect(),
        other => panic!("{other:?}"),
    }
}

fn missing(result: Result<impl std::fmt::Debug, CallError>) -> String {
    match result {
        Err(CallError::Missing(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packets_are_forwarded_between_ports() {
    for slots in [64, 256, 2048] {
        let mut test_box = TestBox::new(2, slots);
        test_box.install("", FORWARD).unwrap();
        let packets = frames(5_000, 60);
        let (mut sent, mut received) = (0, Vec::new());
        while received.len() < packets.len() {
            sent += test_box.send(0, &packets[sent..]);
            test_box.engine.round().unwrap();
            received.extend(test_box.receive(1));
        }
        assert_eq!(received, packets);
        assert_eq!(test_box.read("", "c.count").unwrap(), "5000");
        let stats = test_box.stats();
        check_account(&stats);
        let bytes = 5_000 * 60;
        let received = PortStats { received_packets: 5_000, received_bytes: bytes, ..PortStats::default() };
        let sent = PortStats { sent_packets: 5_000, sent_bytes: bytes, ..PortStats::default() };
        assert_eq!((stats.ports, stats.drops), (vec![received, sent], vec![]));
    }
}

#[test]
fn packets_are_dropped_or_queued_if_the_ring_is_full() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", FORWARD).unwrap();
    test_box.send(0, &frames(64, 60));
    test_box.settle();
    test_box.send(0, &frames(10, 60));
    test_box.settle();
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!((stats.ports[1].sent_packets, stats.ports[1].full_drops), (64, 10));
    assert_eq!(stats.drops, [("full".to_string(), 10)]);
    // A queue waits until there is room, and the box sleeps meanwhile.
    test_box.install("", "FromDevice(0) -> q :: Queue(100) -> ToDevice(1);").unwrap();
    test_box.send(0, &frames(20, 60));
    test_box.pass(50);
    assert_eq!(test_box.stats().ports[1].sent_packets, 64);
    assert_eq!(test_box.receive(1).len(), 64);
    test_box.pass(50);
    assert_eq!(test_box.receive(1).len(), 20);
    assert_eq!(test_box.stats().drops, [("full".to_string(), 10)]);
}

/// Checks a box's account: its sides are equal, and so are its own count of waiting packets and that of the pool.
fn check_account(stats: &Stats) {
    let PacketAccount { fates, waiting, in_use, discards, waits, .. } = &stats.account;
    let begun = fates.received + fates.made + fates.copied;
    let lost: u64 = stats.drops.iter().map(|(_, packets)| packets).sum();
    let ended = fates.delivered + fates.discarded + fates.consumed + fates.merged + lost;
    assert_eq!(begun, ended + waiting, "{stats:?}");
    assert_eq!(waiting, in_use, "{stats:?}");
    assert_eq!(waits.iter().map(|place| place.packets).sum::<u64>(), *waiting, "{stats:?}");
    assert!(discards.iter().map(|place| place.packets).sum::<u64>() <= fates.discarded, "{stats:?}");
    let ports = stats.ports.iter().map(|port| (port.received_packets, port.sent_packets));
    let (received, sent) = ports.fold((0, 0), |sum, port| (sum.0 + port.0, sum.1 + port.1));
    assert_eq!((fates.received, fates.delivered), (received, sent), "{stats:?}");
}

#[test]
fn each_packet_has_one_fate() {
    let mut test_box = TestBox::new(2, 64);
    let config = |capacity| {
        format!(
            "FromDevice(0) -> t :: Tee; t[0] -> q :: Queue({capacity}) -> Idle; t[1] -> end :: Discard; Idle -> ToDevice(1);"
        )
    };
    test_box.install("", &config(8)).unwrap();
    test_box.install("side", "s :: InfiniteSource(LIMIT 5) -> d :: Discard").unwrap();
    test_box.send(0, &frames(10, 60));
    test_box.settle();
    test_box.pass(5_000);
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!(stats.drops, [("overflow".to_string(), 2)]);
    let expected = PacketFates { received: 10, made: 5, copied: 10, discarded: 15, ..PacketFates::default() };
    assert_eq!(stats.account.fates, expected);
    let discards: Vec<_> = stats
        .account
        .discards
        .iter()
        .map(|one| (&*one.configuration, &*one.connection, one.packets))
        .collect();
    assert_eq!(discards, [("", "t[1] -> end", 10), ("side", "s -> d", 5)]);
    let [waiting] = &stats.account.waits[..] else { panic!("{stats:?}") };
    assert_eq!((&*waiting.configuration, &*waiting.element, waiting.packets), ("", "q", 8));
    assert_eq!(waiting.oldest, stats.account.oldest);
    assert!((5_000_000_000..5_100_000_000).contains(&waiting.oldest), "{waiting:?}");
    // A swap, in either way, and a removal account for what they leave no room for.
    test_box.install("", &config(6)).unwrap();
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!((stats.account.waiting, stats.account.fates), (6, expected));
    assert!(stats.account.oldest >= 5_000_000_000, "{stats:?}");
    test_box.write("", "hotconfig", &config(4)).unwrap();
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!(stats.drops, [("overflow".to_string(), 2), ("removed".to_string(), 4)]);
    test_box.call(&Request::Remove { name: "" }).unwrap();
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!(stats.drops, [("overflow".to_string(), 2), ("removed".to_string(), 8)]);
    assert_eq!((stats.account.fates, stats.account.waiting, stats.account.in_use), (expected, 0, 0));
}

#[test]
fn packets_that_are_too_long_for_a_port_are_lost() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", "FromDevice(0) -> Pad(5000) -> ToDevice(1); FromDevice(1) -> ToDevice(0);").unwrap();
    test_box.send(0, &frames(3, 60));
    test_box.send(1, &frames(2, 60));
    test_box.settle();
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!(stats.drops, [("too_long".to_string(), 3)]);
    assert_eq!((stats.ports[1].full_drops, stats.ports[0].sent_packets), (3, 2));
}

#[test]
fn a_swap_keeps_state_and_a_rejected_one_changes_nothing() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", FORWARD).unwrap();
    test_box.send(0, &frames(5, 60));
    test_box.settle();
    assert_eq!(test_box.receive(1).len(), 5);
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
        let reason = failed(test_box.install("", bad));
        assert!(reason.contains(message), "{bad}: {reason}");
        test_box.send(0, &frames(1, 60));
        test_box.settle();
        assert_eq!(test_box.receive(1).len(), 1, "after {bad}");
    }
    let result = test_box.install("", "Idle -> Discard;\nIdle -> ToDevice(9);");
    let Err(CallError::Rejected(found)) = result else { panic!("{result:?}") };
    assert_eq!((found.len(), found[0].line, found[0].column), (1, 2, 9), "{found:?}");
    assert_eq!(test_box.read("", "config").unwrap(), FORWARD);
    let next = "FromDevice(0) -> c :: Counter -> d :: Counter -> ToDevice(1);";
    test_box.install("", next).unwrap();
    test_box.send(0, &frames(3, 60));
    test_box.settle();
    assert_eq!(test_box.receive(1).len(), 3);
    assert_eq!(test_box.read("", "c.count").unwrap(), "14");
    assert_eq!(test_box.read("", "d.count").unwrap(), "3");
    assert_eq!(test_box.read("", "config").unwrap(), next);
    // The same through the handler, which a configuration can also write.
    test_box.write("", "hotconfig", FORWARD).unwrap();
    test_box.send(0, &frames(1, 60));
    test_box.settle();
    assert_eq!((test_box.receive(1).len(), test_box.read("", "c.count").unwrap()), (1, "15".into()));
}

#[test]
fn several_configurations_run_in_one_box() {
    let mut test_box = TestBox::new(4, 64);
    test_box.install("", FORWARD).unwrap();
    test_box.install("second", "FromDevice(2) -> c :: Counter -> ToDevice(3);").unwrap();
    let reason = failed(test_box.install("third", "FromDevice(0) -> Discard;"));
    assert!(reason.contains("0: it is already read by the main configuration"), "{reason}");
    let reason = failed(test_box.install("third", "Idle -> Queue -> ToDevice(3);"));
    assert!(reason.contains("3: it is already written by the configuration ‘second’"), "{reason}");
    test_box.send(0, &frames(2, 60));
    test_box.send(2, &frames(3, 60));
    test_box.settle();
    assert_eq!((test_box.receive(1).len(), test_box.receive(3).len()), (2, 3));
    assert_eq!(test_box.read("", "c.count").unwrap(), "2");
    assert_eq!(test_box.read("second", "c.count").unwrap(), "3");
    // A removed configuration releases its ports.
    test_box.call(&Request::Remove { name: "second" }).unwrap();
    assert!(missing(test_box.read("second", "c.count")).contains("‘second’"));
    test_box.install("third", "FromDevice(2) -> ToDevice(3);").unwrap();
    test_box.call(&Request::Remove { name: "" }).unwrap();
    assert!(missing(test_box.read("", "list")).contains("main configuration"));
    assert!(missing(test_box.call(&Request::Remove { name: "" })).contains("main configuration"));
}

#[test]
fn handlers_return_values_or_errors() {
    let mut test_box = TestBox::new(0, 64);
    let text = "Idle -> s :: Switch(1); s[0] -> Discard; s[1] -> c :: Counter -> Discard;";
    let warnings = test_box.install("", text).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(test_box.read("", "s.switch").unwrap(), "1");
    test_box.write("", "s.switch", "0").unwrap();
    assert_eq!(test_box.read("", "s.switch").unwrap(), "0");
    assert!(test_box.read("", "list").unwrap().starts_with("5\n"));
    assert!(test_box.read("", "c.handlers").unwrap().contains("count\tr\n"));
    assert!(test_box.read("", "flatconfig").unwrap().contains("c :: Counter"));
    assert!(missing(test_box.read("", "absent.count")).contains("no element named ‘absent’"));
    assert!(missing(test_box.read("", "c.nothing")).contains("c.nothing"));
    assert!(failed(test_box.write("", "c.count", "1")).contains("read handler"));
    assert!(!failed(test_box.write("", "s.switch", "many")).is_empty());
    let write = Request::Write { name: "", handler: "s.switch", value: &[0xff] };
    assert!(failed(test_box.call(&write)).contains("UTF-8"));
}

#[test]
fn a_check_reports_all_errors_and_runs_nothing() {
    let mut test_box = TestBox::new(1, 64);
    let mut check = |configuration| {
        let reply = test_box.call(&Request::Check { configuration }).unwrap();
        boundary::Diagnostic::decode(&reply).unwrap()
    };
    assert_eq!(check("FromDevice(0) -> Counter -> ToDevice(0);"), []);
    let found =
        check("FromDevice(0)\n  -> Cuonter -> c :: Counter(1, 2, 3) -> Discard;\nIdle -> [0]Nowhere;");
    let errors: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.iter().any(|error| error.message.contains("Cuonter") && error.line == 2), "{found:?}");
    assert!(errors.iter().any(|error| error.message.contains("Nowhere") && error.line == 3), "{found:?}");
    assert!(errors.iter().any(|error| error.hint.contains("Counter")), "{found:?}");
    assert!(missing(test_box.read("", "list")).contains("no main configuration"));
}

#[test]
fn files_are_read_from_the_host_and_written_to_it() {
    let mut test_box = TestBox::new(0, 64);
    let capture = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap")).unwrap();
    let contents = &capture[..capture.len().min(200_000)];
    test_box.call(&Request::File { name: "in.pcap", contents }).unwrap();
    let library = b"elementclass Watch { -> w :: Counter -> }";
    test_box.call(&Request::File { name: "watch.click", contents: library }).unwrap();
    let text =
        "require(library watch.click); FromDump(in.pcap, STOP true) -> w :: Watch -> ToDump(out.pcap);";
    test_box.install("", text).unwrap();
    let mut written: Vec<u8> = Vec::new();
    test_box.each_event(|event| {
        let Event::Output { file, position, bytes } = event else { panic!("{event:?}") };
        assert_eq!((file, position), (&b"out.pcap"[..], written.len() as u64), "nothing is lost");
        written.extend_from_slice(bytes);
    });
    let count: usize = test_box.read("", "w/w.count").unwrap().parse().unwrap();
    assert!(count > 100);
    assert_eq!(test_box.stats().lost_events, 0);
    assert!(written.len() > 24 && written.len() <= contents.len(), "{} of {}", written.len(), contents.len());
    test_box.call(&Request::File { name: "small.pcap.gz", contents: &[0x1f, 0x8b, 8] }).unwrap();
    let reason = failed(test_box.install("", "FromDump(small.pcap.gz) -> Discard;"));
    assert!(reason.contains("unpack it"), "{reason}");
}

#[test]
fn log_lines_are_named_limited_and_never_delay_packets() {
    let mut test_box = TestBox::new(2, 2048);
    test_box.install("", "FromDevice(0) -> Print(x) -> ToDevice(1);").unwrap();
    test_box.install("loud", "Script(print \"first\\nsecond\");").unwrap();
    test_box.settle();
    let lines = test_box.lines();
    assert!(lines.contains(&("loud".into(), "first".into())), "{lines:?}");
    assert!(lines.contains(&("loud".into(), "second".into())), "{lines:?}");
    // If the host reads no events, those that exceed the channel and its queue are dropped and counted, and all packets
    // pass.
    let most = 2_000;
    for _ in 0..5 {
        test_box.send(0, &frames(most, 60));
        test_box.settle();
        assert_eq!(test_box.receive(1).len(), most);
    }
    let lost = test_box.stats().lost_events;
    let logged = test_box.lines().len() as u64;
    // A little time has passed, which refills the budget a little.
    assert!(logged > 100 && logged <= CONSOLE_LINES + CONSOLE_LINES / 20, "{logged} lines");
    assert_eq!(lost + logged, 5 * most as u64);
    // A second later the budget is full again, and a long line is cut.
    test_box.pass(1_100);
    test_box.install("loud", &format!("Script(print {});", "x".repeat(2 * MAX_LINE))).unwrap();
    let lines = test_box.lines();
    assert_eq!(lines.last().map(|line| line.1.len()), Some(MAX_LINE), "{lines:?}");
}

#[test]
fn timers_fire_on_time_and_the_box_sleeps_between_them() {
    let mut test_box = TestBox::new(1, 64);
    test_box.install("", "TimedSource(INTERVAL 0.5) -> c :: Counter -> ToDevice(0);").unwrap();
    test_box.settle();
    let sleeps = test_box.platform.sleeps.get();
    test_box.pass(10_000);
    let count = test_box.receive(0).len();
    assert!((19..=21).contains(&count), "{count} packets in 10 s");
    assert!(test_box.platform.sleeps.get() - sleeps < 60, "it sleeps between timers");
    assert!(test_box.platform.alarm.get().is_some());
    test_box.call(&Request::Remove { name: "" }).unwrap();
    test_box.settle();
    assert_eq!(test_box.platform.alarm.get(), None, "no alarm is set");
}

#[test]
fn received_packets_have_timestamps_and_types() {
    let mut test_box = TestBox::new(1, 64);
    let text = "FromDevice(0) -> t :: HostEtherFilter(02:00:00:00:00:00) -> mine :: Counter -> ToDump(o, SNAPLEN 14);
        t[1] -> others :: Counter -> Discard;";
    test_box.install("", text).unwrap();
    let mut other = frames(1, 60);
    other[0][5] = 9;
    test_box.send(0, &frames(2, 60));
    test_box.send(0, &other);
    test_box.settle();
    assert_eq!(
        (test_box.read("", "mine.count").unwrap(), test_box.read("", "others.count").unwrap()),
        ("2".into(), "1".into())
    );
    let mut written = Vec::new();
    test_box.each_event(|event| {
        let Event::Output { bytes, .. } = event else { panic!("{event:?}") };
        written.extend_from_slice(bytes);
    });
    let seconds = u32::from_le_bytes(written[24..28].try_into().unwrap());
    assert_eq!(u64::from(seconds), NOW);
}

#[test]
fn a_turn_ends_with_the_quantum() {
    let mut test_box = TestBox::new(2, 2048);
    test_box.install("", FORWARD).unwrap();
    test_box.status().set_quantum(512);
    test_box.send(0, &frames(2_000, 60));
    test_box.settle();
    let turns = test_box.platform.turns.get();
    assert!((3..=4).contains(&turns), "{turns} turns for 2,000 packets");
    // While no other box waits, the turn continues.
    test_box.status().set_uncontended_until(u64::MAX);
    test_box.receive(1);
    test_box.send(0, &frames(2_000, 60));
    test_box.settle();
    assert_eq!(test_box.platform.turns.get(), turns);
    // The host preempts a box that only computes: it does not end its own turn.
    test_box.status().set_uncontended_until(0);
    test_box.install("second", "InfiniteSource(LIMIT 1000000) -> Discard;").unwrap();
    test_box.settle();
    assert_eq!(test_box.platform.turns.get(), turns);
}

#[test]
fn a_busy_box_yields_before_it_sleeps() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", FORWARD).unwrap();
    test_box.settle();
    let mut yields = |packets| {
        let before = test_box.platform.yields.get();
        assert_eq!(test_box.send(0, &frames(packets, 60)), packets);
        test_box.settle();
        assert_eq!(test_box.receive(1).len(), packets);
        test_box.platform.yields.get() - before
    };
    assert_eq!(yields(1), 0);
    assert_ne!(yields(60), 0);
}

#[test]
fn a_source_waits_until_several_slots_are_free() {
    let mut test_box = TestBox::new(1, 64);
    test_box.install("", "s :: InfiniteSource(LENGTH 60) -> ToDevice(0);").unwrap();
    test_box.settle();
    let made = test_box.read("", "s.count").unwrap();
    let mut take = |packets: u32| {
        let port = &mut test_box.ports[0];
        port.available(packets).unwrap();
        for _ in 0..packets {
            port.take().unwrap().unwrap();
        }
        port.release();
        test_box.settle();
        test_box.read("", "s.count").unwrap()
    };
    assert_eq!(take(7), made, "seven free slots of 64 are too few");
    assert_ne!(take(1), made);
}

/// Packets that are dropped for lack of room count towards the turn.
#[test]
fn dropped_packets_count_towards_the_turn() {
    let mut test_box = TestBox::new(1, 64);
    test_box.install("", "RatedSource(RATE 100000000) -> ToDevice(0);").unwrap();
    test_box.status().set_quantum(64);
    for _ in 0..100 {
        test_box.engine.round().unwrap();
    }
    assert!(test_box.platform.turns.get() >= 50, "{} turns", test_box.platform.turns.get());
}

#[test]
fn a_polling_box_never_sleeps() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", FORWARD).unwrap();
    test_box.settle();
    test_box.status().set_polling(true);
    for number in 1..50 {
        assert!((0..100).all(|_| !test_box.engine.round().unwrap()), "{number}");
        test_box.send(0, &frames(1, 60));
        test_box.engine.round().unwrap();
        assert_eq!(test_box.receive(1).len(), 1, "{number}");
    }
    test_box.status().set_polling(false);
    test_box.settle();
}

#[test]
fn a_copy_has_its_own_time_seeds_and_addresses() {
    let mut test_box = TestBox::new(1, 64);
    let text = "FromDevice(0) -> Discard; Script(TYPE PASSIVE, return $(now)); AddressInfo(p 0:eth);
        r :: RandomSource(LENGTH 64, LIMIT 1, ACTIVE false) -> c :: Counter -> Discard;";
    test_box.install("", text).unwrap();
    test_box.settle();
    test_box.info.seeds = [9, 9, 9, 9];
    test_box.info.clock_unix_ns += 3_600 * 1_000_000_000;
    test_box.info.ports[0].mac = 7;
    let info = test_box.info.clone();
    info.write(&test_box.region_memory).unwrap();
    test_box.status().set_generation(1);
    test_box.settle();
    test_box.install("late", "FromDevice(0) -> Discard;").unwrap_err();
    test_box.install("", "FromDevice(0) -> d :: ToDump(o, SNAPLEN 14);").unwrap();
    test_box.send(0, &frames(1, 60));
    test_box.settle();
    let mut written = Vec::new();
    test_box.each_event(|event| {
        if let Event::Output { bytes, .. } = event {
            written.extend_from_slice(bytes);
        }
    });
    let seconds = u64::from(u32::from_le_bytes(written[24..28].try_into().unwrap()));
    assert!(seconds >= NOW + 3_600, "{seconds}");
}

#[test]
fn there_is_no_crash_context_between_calls() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", FORWARD).unwrap();
    test_box.settle();
    assert!(test_box.engine.crash_context().is_none());
}

/// What a write changed, as the box says.
fn written(test_box: &mut TestBox, handler: &str, value: &str) -> (WriteEffect, bool) {
    let reply = test_box.call(&Request::Write { name: "", handler, value: value.as_bytes() }).unwrap();
    let Written { effect, in_config } = Written::decode(&reply).unwrap();
    (effect, in_config)
}

#[test]
fn a_write_tells_what_it_changed() {
    let mut test_box = TestBox::new(1, 64);
    let text = "FromDevice(0) -> s :: Switch(0) -> c :: Counter -> f :: IPFilter(allow all) -> Discard;
                s[1] -> r :: RadixIPLookup(10.0.0.0/8 0) -> Discard;
                script :: Script(TYPE PASSIVE, write s.switch 1); p :: HandlerProxy;";
    test_box.install("", text).unwrap();
    assert_eq!(written(&mut test_box, "c.reset", ""), (WriteEffect::Action, false));
    assert_eq!(written(&mut test_box, "s.switch", "1"), (WriteEffect::Setting, true));
    assert_eq!(written(&mut test_box, "f.rules", "deny all"), (WriteEffect::Setting, true));
    assert_eq!(written(&mut test_box, "f.config", "allow udp"), (WriteEffect::Setting, true));
    assert_eq!(test_box.read("", "f.config").unwrap(), "allow udp");
    assert_eq!(written(&mut test_box, "r.add", "11.0.0.0/8 0"), (WriteEffect::Edit, true));
    assert_eq!(test_box.read("", "r.config").unwrap(), "10.0.0.0/8 0, 11.0.0.0/8 0");
    // What a write causes in other elements counts too.
    assert_eq!(written(&mut test_box, "script.run", ""), (WriteEffect::Edit, false));
    assert_eq!(written(&mut test_box, "p.f.rules", "deny all"), (WriteEffect::Edit, false));
    assert_eq!(written(&mut test_box, "p.c.reset", ""), (WriteEffect::Action, false));
}

#[test]
fn prepared_writes_come_before_the_first_packet() {
    let mut test_box = TestBox::new(1, 64);
    let text =
        "FromDevice(0) -> s :: Switch(0); s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;
                InfiniteSource(LIMIT 7) -> s;";
    let prepare = |test_box: &mut TestBox, name, handler, value: &str| {
        test_box.call(&Request::Prepare { name, handler, value: value.as_bytes() }).unwrap();
    };
    test_box.send(0, &frames(5, 60));
    prepare(&mut test_box, "", "s.switch", "0");
    prepare(&mut test_box, "side", "x.y", "1");
    prepare(&mut test_box, "", "gone.rules", "");
    prepare(&mut test_box, "", "s.switch", "1");
    test_box.install("", text).unwrap();
    let refused = test_box.call(&Request::Prepared).unwrap();
    let refused = RefusedWrite::decode(&refused).unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].number, 1);
    assert!(refused[0].reason.contains("gone"), "{refused:?}");
    test_box.settle();
    let counts = |test_box: &mut TestBox| ["a.count", "b.count"].map(|path| test_box.read("", path).unwrap());
    assert_eq!(counts(&mut test_box), ["0", "12"]);
    // A swap forgets what was written, unless it is prepared again; those of the last one are gone.
    test_box.install("", text).unwrap();
    assert_eq!(RefusedWrite::decode(&test_box.call(&Request::Prepared).unwrap()), Ok(Vec::new()));
    test_box.send(0, &frames(2, 60));
    test_box.settle();
    assert_ne!(counts(&mut test_box)[0], "0");
}

/// A report of own writes as text: the configuration, what was written, its effect and how often.
fn own_writes(test_box: &mut TestBox) -> Vec<String> {
    let mut reports = Vec::new();
    test_box.each_event(|event| match event {
        Event::OwnWrites { name, handler, value, written, count } => {
            let [name, handler, value] =
                [name, handler, value].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            let Written { effect, in_config } = written;
            reports.push(format!("{name}:{handler} {value} {effect:?} {in_config} {count}"));
        }
        Event::MoreOwnWrites { name, count } => {
            reports.push(format!("{} and {count} more", String::from_utf8_lossy(name)));
        }
        Event::OwnWritesGone { name } => reports.push(format!("{} gone", String::from_utf8_lossy(name))),
        Event::Console { line, .. } => panic!("{}", String::from_utf8_lossy(line)),
        Event::Output { .. } => panic!("no file"),
    });
    reports
}

#[test]
fn writes_of_elements_are_reported() {
    let mut test_box = TestBox::new(1, 64);
    let text =
        "FromDevice(0) -> c :: Counter(COUNT_CALL 3 s.switch 1) -> s :: Switch(0) -> d :: Counter -> Discard;
                s[1] -> Discard; Idle -> r :: RadixIPLookup(10.0.0.0/8 0) -> Discard;
                Script(write r.add 9.0.0.0/8 0);
                Script(wait 1s, write r.add 11.0.0.0/8 0, write r.add 12.0.0.0/8 0, write d.reset, wait 10s,
                       write s.switch 0);";
    test_box.install("second", text).unwrap();
    // What a script writes while it starts is a part of the text.
    assert_eq!(own_writes(&mut test_box), [""; 0]);
    assert!(test_box.read("second", "r.table").unwrap().contains("9.0.0.0/8"));
    test_box.send(0, &frames(2, 60));
    test_box.settle();
    assert_eq!(own_writes(&mut test_box), [""; 0]);
    test_box.send(0, &frames(1, 60));
    test_box.settle();
    assert_eq!(own_writes(&mut test_box), ["second:s.switch 1 Setting true 1"]);
    // A client's write, and what it causes, is none of them.
    test_box.write("second", "s.switch", "0").unwrap();
    test_box.pass(12_000);
    let reports = own_writes(&mut test_box);
    assert_eq!(reports, ["second:r.add 12.0.0.0/8 0 Edit true 2", "second:s.switch 0 Setting true 2"]);
    assert_eq!(own_writes(&mut test_box), [""; 0]);
    // Another text has none of them.
    test_box.install("second", "Idle -> s :: Switch(0) -> Discard;").unwrap();
    assert_eq!(own_writes(&mut test_box), ["second gone"]);
    test_box.install("second", "Idle -> Discard;").unwrap();
    assert_eq!(own_writes(&mut test_box), [""; 0]);
}

/// A script begins with its configuration until it waits, even if it has waited long enough when the first turn comes.
#[test]
fn writes_after_a_wait_are_reported_however_late_the_first_turn_comes() {
    let mut test_box = TestBox::new(1, 64);
    let script = "write s.switch -1, wait 1ms, write t.switch 1";
    for (delay, script) in [(0, script), (TSC_HZ / 500, script), (TSC_HZ / 500, &script[19..])] {
        test_box.platform.delay.set(delay);
        let text = format!(
            "Idle -> s :: Switch(0) -> Discard; s[1] -> Discard; Idle -> t :: Switch(0) -> Discard; t[1] -> Discard;
             Script({script});"
        );
        let name = format!("c{delay}{}", script.len());
        test_box.install(&name, &text).unwrap();
        test_box.platform.delay.set(0);
        test_box.pass(200);
        assert_eq!(own_writes(&mut test_box), [format!("{name}:t.switch 1 Setting true 1")], "{script}");
    }
}

#[test]
fn reports_of_own_writes_are_limited() {
    let mut test_box = TestBox::new(1, 64);
    // A write for each packet, which is sent with a pause.
    let text = "FromDevice(0) -> c :: Counter(COUNT_CALL 1 script.run) -> s :: Switch(0) -> Discard; s[1] -> Discard;
                script :: Script(TYPE PASSIVE, write s.switch 1, write c.reset);";
    test_box.install("", text).unwrap();
    let mut reports = Vec::new();
    for _ in 0..1_000 {
        test_box.send(0, &frames(1, 60));
        test_box.engine.round().unwrap();
        reports.extend(own_writes(&mut test_box));
    }
    test_box.pass(200);
    reports.extend(own_writes(&mut test_box));
    assert!((2..=12).contains(&reports.len()), "{reports:?}");
    assert_eq!(reports[0], ":s.switch 1 Setting true 1");
    assert_eq!(reports.last().unwrap(), ":s.switch 1 Setting true 1000");
    // Many handlers, of which only some are named.
    let switches: String =
        (0..70).map(|number| format!("Idle -> s{number} :: Switch(0) -> Discard;")).collect();
    let writes: String = (0..70).map(|number| format!(", write s{number}.switch -1")).collect();
    test_box.install("many", &format!("{switches} Script(wait 1s{writes});")).unwrap();
    test_box.pass(2_000);
    let reports = own_writes(&mut test_box);
    assert_eq!(reports.len(), 65);
    assert_eq!(reports.last().unwrap(), "many and 6 more");
}

#[test]
fn rules_are_replaced_between_batches() {
    let mut test_box = TestBox::new(2, 64);
    let allow = "FromDevice(0) -> Strip(14) -> MarkIPHeader -> f :: IPFilter(allow all) -> ToDevice(1);";
    test_box.install("", allow).unwrap();
    let rule = |number| format!("deny src 10.0.{}.{}, ", number / 200, number % 200);
    let rules = (0..400).map(rule).collect::<String>() + "deny all";
    let replies = test_box.call_all(&[
        Request::Write { name: "", handler: "f.rules", value: rules.as_bytes() },
        Request::Read { name: "", handler: "f.rules", argument: b"" },
    ]);
    let written = Written { effect: WriteEffect::Setting, in_config: true };
    assert_eq!(replies, [Ok(written.encode()), Ok(rules.into_bytes())]);
    test_box.send(0, &frames(10, 60));
    test_box.settle();
    assert_eq!(test_box.stats().drops, [("denied".to_string(), 10)]);
    assert_eq!(test_box.receive(1).len(), 0);
}

#[test]
fn a_long_configuration_is_installed_between_batches() {
    let mut test_box = TestBox::new(2, 64);
    let firewall = |last: &str| {
        let rule = |number| format!("deny src 10.0.{}.{}, ", number / 200, number % 200);
        let rules = (0..400).map(rule).collect::<String>() + last;
        format!(
            "FromDevice(0) -> Strip(14) -> MarkIPHeader -> c :: Counter -> f :: IPFilter({rules}) -> ToDevice(1);"
        )
    };
    test_box.install("", &firewall("allow all")).unwrap();
    test_box.send(0, &frames(10, 60));
    test_box.settle();
    assert_eq!(test_box.receive(1).len(), 10);
    let (new, wrong) = (firewall("deny all"), firewall("allow nonsense"));
    // Later requests wait, so they see the new configuration.
    let replies = test_box.call_all(&[
        Request::Install { name: "", configuration: &new },
        Request::Read { name: "", handler: "config", argument: b"" },
        Request::Install { name: "", configuration: &wrong },
        Request::Read { name: "", handler: "config", argument: b"" },
    ]);
    assert_eq!(replies[0], Ok(Diagnostic::encode(&[])));
    assert_eq!(replies[1], Ok(new.clone().into_bytes()));
    let Err(CallError::Rejected(found)) = &replies[2] else { panic!("{:?}", replies[2]) };
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(replies[3], Ok(new.into_bytes()));
    test_box.send(0, &frames(10, 60));
    test_box.settle();
    let stats = test_box.stats();
    check_account(&stats);
    assert_eq!(stats.drops, [("denied".to_string(), 10)]);
    assert_eq!((stats.ports[0].received_packets, stats.ports[1].sent_packets), (20, 10));
    assert_eq!(test_box.read("", "c.count").as_deref(), Ok("20"));
}
