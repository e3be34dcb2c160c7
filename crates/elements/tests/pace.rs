//! Sources whose packets others take from queues: several turns at once change nothing but the size of batches.

mod support;

use support::{BATCHES, Run, run, state};

/// What follows `FromDump(testdata/mix.pcap, STOP true)`, which sends 2,500 packets; and whether paced turns fill batches at
/// the Counter `out`.
const CASES: &[(&str, bool)] = &[
    ("q :: Queue -> u :: Unqueue -> out :: Counter -> Discard;", true),
    ("q :: Queue(2) -> u :: Unqueue(4) -> out :: Counter -> Discard;", true),
    ("q :: Queue(40) -> u :: Unqueue(-1) -> out :: Counter -> Discard;", true),
    (
        "c :: Classifier(12/0800, -) -> q :: SimpleQueue(3) -> u :: Unqueue -> out :: Counter -> Discard; c[1] -> q;",
        true,
    ),
    (
        "c :: Classifier(12/0800, -) -> q :: Queue(2) -> d :: Discard; c[1] -> p :: Queue(3) -> u :: Unqueue -> out :: Counter -> d2 :: Discard;",
        true,
    ),
    (
        "Strip(14) -> CheckIPHeader -> q :: Queue(5) -> u :: Unqueue -> n :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1) -> out :: Counter -> Discard; n[1] -> Discard;",
        true,
    ),
    // One packet has no room if the next comes before it leaves.
    ("q :: Queue(1) -> u :: Unqueue -> out :: Counter -> Discard;", false),
    ("q :: Queue(50) -> u :: Unqueue(LIMIT 700) -> out :: Counter -> Discard;", false),
    ("q :: Queue(50) -> u :: Unqueue(ACTIVE false) -> out :: Counter -> Discard;", false),
    // Two packets come in a turn, and one leaves.
    ("t :: Tee -> q :: Queue(50) -> u :: Unqueue -> out :: Counter -> Discard; t[1] -> q;", false),
    ("t :: Tee -> q :: Queue(50) -> u :: Unqueue(2) -> out :: Counter -> Discard; t[1] -> q;", false),
    // Both tasks push to the switch, which takes turns.
    (
        "c :: Classifier(12/0800, -) -> q :: Queue(9) -> u :: Unqueue -> s :: RoundRobinSwitch -> out :: Counter -> Discard; c[1] -> s[1] -> o :: Counter -> Discard;",
        false,
    ),
    // Others run too.
    ("q :: Queue(9) -> u :: Unqueue -> p :: Queue(9) -> v :: Unqueue -> out :: Counter -> Discard;", false),
    (
        "q :: Queue(9) -> u :: Unqueue -> out :: Counter -> Discard; InfiniteSource(LIMIT 70) -> Discard;",
        false,
    ),
    (
        "q :: Queue(9) -> s :: RoundRobinSched -> u :: Unqueue -> out :: Counter -> Discard; Idle -> [1] s;",
        false,
    ),
    ("q :: Queue(9) -> u :: Unqueue -> out :: Counter -> Discard; ScheduleInfo(u 0.5);", false),
];

#[test]
fn paced_turns_give_the_results_of_alternating_tasks() {
    for &(rest, fills) in CASES {
        let text = format!("FromDump(testdata/mix.pcap, STOP true) -> {rest}");
        let runs = BATCHES.map(|batch| run(&text, batch).expect(rest));
        let states = runs.each_ref().map(state);
        assert!(states[0].iter().any(|(path, _)| path.ends_with("highwater_length")), "{rest}");
        for (batch, state) in BATCHES.iter().zip(&states) {
            assert_eq!(state, &states[0], "batches of {batch}: {rest}");
        }
        let number =
            |run: &Run, path| -> u64 { run.router.read(path, "").expect(path).trim().parse().expect(path) };
        let (packets, batches) = (number(&runs[2], "out.count"), number(&runs[2], "out.batches"));
        assert_eq!(batches * 4 < packets, fills, "{packets} packets in {batches} batches: {rest}");
    }
}

/// What follows `FromDump(testdata/mix.pcap, STOP true, BURST ...)`; how many of the 2,500 packets are lost; and whether the packets
/// of a burst stay together at the Counter `out`.
const BURSTS: &[(u32, &str, u64, bool)] = &[
    (8, "Null -> out :: Counter -> q :: Queue(8) -> d :: Discard(BURST 8);", 0, true),
    (8, "q :: Queue(8) -> u :: Unqueue(8) -> out :: Counter -> d :: Discard;", 0, true),
    // Of eight packets, four find room.
    (8, "q :: SimpleQueue(4) -> u :: Unqueue(4) -> out :: Counter -> d :: Discard;", 1248, false),
    (300, "q :: Queue(150) -> u :: Unqueue(-1) -> out :: Counter -> d :: Discard;", 1200, true),
    // Nothing can end between queues and `u`, so one pull brings as many as several.
    (8, "q :: Queue(8) -> PullNull -> u :: Unqueue(8) -> out :: Counter -> d :: Discard;", 0, true),
    (
        8,
        "q :: Queue(8) -> s :: PullSwitch(0) -> u :: Unqueue(8) -> out :: Counter -> d :: Discard; Idle -> [1] s;",
        0,
        true,
    ),
    (
        8,
        "q :: Queue(8) -> t :: PullTee -> u :: Unqueue(8) -> out :: Counter -> d :: Discard; t[1] -> Discard;",
        0,
        true,
    ),
    (
        8,
        "r :: RoundRobinSwitch -> q :: Queue(8) -> s :: PrioSched -> u :: Unqueue(8) -> out :: Counter -> d :: Discard; r[1] -> Queue(8) -> [1] s;",
        0,
        true,
    ),
    // These pull one by one, and send on many.
    (
        8,
        "r :: RoundRobinSwitch -> q :: Queue(8) -> s :: DRRSched(900) -> u :: Unqueue(8) -> out :: Counter -> d :: Discard; r[1] -> Queue(8) -> [1] s;",
        491,
        true,
    ),
    (
        8,
        "r :: RoundRobinSwitch -> q :: Queue(8) -> s :: StrideSched(2, 3, 1) -> u :: Unqueue(8) -> out :: Counter -> d :: Discard; r[1] -> Queue(8) -> [1] s; Idle -> Queue -> [2] s;",
        0,
        true,
    ),
    (
        8,
        "r :: RoundRobinSwitch -> q :: Queue(8) -> s :: TimeSortedSched -> u :: Unqueue(8) -> out :: Counter -> d :: Discard; r[1] -> Queue(8) -> [1] s;",
        0,
        true,
    ),
    (8, "q :: Queue(8) -> l :: LinkUnqueue(0, 4GBps) -> out :: Counter -> d :: Discard;", 0, true),
];

#[test]
fn a_burst_is_one_turn_of_the_source() {
    for &(burst, rest, lost, fills) in BURSTS {
        let text = format!("FromDump(testdata/mix.pcap, STOP true, BURST {burst}) -> {rest}");
        let runs = BATCHES.map(|batch| run(&text, batch).expect(rest));
        let states = runs.each_ref().map(state);
        for (batch, state) in BATCHES.iter().zip(&states) {
            assert_eq!(state, &states[0], "batches of {batch}: {text}");
        }
        let read = |path| -> u64 { runs[2].router.read(path, "").expect(path).trim().parse().expect(path) };
        let lost_in_queue = read("q.drops");
        assert_eq!(lost_in_queue, lost, "{text}");
        assert_eq!(read("out.batches") * 4 < read("out.count"), fills, "{}: {text}", read("out.batches"));
    }
}
