//! Early droppers: batches change nothing, although each packet is judged by the queue as the one before has left it.

mod support;

use support::{BATCHES, run, state};

/// What follows `FromDump(testdata/mix.pcap, STOP true, BURST ...)`, which sends 2,500 packets; each has an early dropper `r`.
/// In the first list, only `r` changes the length of the queue that it watches while it handles a batch.
const ALONE: &[(u32, &str)] = &[
    (32, "r :: RED(5, 50, 0.2) -> q :: Queue(60) -> Unqueue(9) -> Discard;"),
    (32, "r :: RED(5, 50, 0.2, STABILITY 0) -> q :: Queue(200) -> Unqueue(9) -> Discard;"),
    (
        32,
        "r :: RED(5, 50, 0.2, GENTLE false) -> q :: Queue(70) -> Unqueue(9) -> Discard; r[1] -> Counter -> Discard;",
    ),
    // The queue is full before the highest threshold, and what it drops does not make it longer.
    (
        32,
        "r :: RED(8, 30, 0.3, STABILITY 2) -> q :: Queue(25) -> Unqueue(9) -> Discard; q[1] -> Counter -> Discard;",
    ),
    (300, "r :: RED(8, 30, 0.3, STABILITY 2) -> q :: FrontDropQueue(25) -> Unqueue(70) -> Discard;"),
    (7, "r :: AdaptiveRED(20, 0.5) -> q :: SimpleQueue(50) -> Unqueue(4) -> Discard;"),
    (
        32,
        "Counter -> r :: RED(5, 50, 0.2) -> Counter -> Paint(3) -> q :: Queue(60) -> Unqueue(9) -> Counter -> Discard;",
    ),
    (
        32,
        "c :: Classifier(12/0800, -) -> r :: RED(5, 50, 0.2) -> q :: Queue(60) -> Unqueue(9) -> d :: Discard;
         c[1] -> p :: Queue(9) -> Unqueue -> d;",
    ),
    // A source of one packet a turn.
    (1, "r :: RED(50, 90, 0.1) -> q :: Queue(100) -> Idle;"),
    // On pull paths.
    (32, "q :: Queue(90) -> r :: RED(5, 50, 0.2) -> Unqueue(9) -> Counter -> Discard;"),
    (
        32,
        "q :: Queue(90) -> PullNull -> r :: RED(5, 50, 0.2, STABILITY 1) -> Discard(BURST 20); r[1] -> Counter -> Discard;",
    ),
    (
        32,
        "q :: Queue(90) -> r :: AdaptiveRED(10, 0.5) -> s :: RoundRobinSched -> Unqueue(9) -> Discard;
         Idle -> Queue -> [1] s;",
    ),
];

/// In these, others change the length too, or it is not known how much of what passes arrives.
const WITH_OTHERS: &[(u32, &str)] = &[
    (
        32,
        "c :: Classifier(12/0800, -) -> r :: RED(5, 50, 0.2) -> q :: Queue(60) -> Unqueue(9) -> Discard; c[1] -> q;",
    ),
    (32, "r :: RED(5, 50, 0.2) -> RED(5, 50, 0.1) -> q :: Queue(60) -> Unqueue(9) -> Discard;"),
    (32, "r :: RED(5, 50, 0.2) -> t :: Tee -> q :: Queue(60) -> Unqueue(9) -> Discard; t[1] -> Discard;"),
    (32, "r :: RED(5, 50, 0.2) -> Strip(14) -> CheckIPHeader -> q :: Queue(60) -> Unqueue(9) -> Discard;"),
    (
        32,
        "r :: RED(5, 50, 0.2, QUEUES p) -> q :: Queue(60) -> Unqueue(9) -> p :: Queue(60) -> Unqueue(8) -> Discard;",
    ),
    (
        32,
        "r :: RED(5, 50, 0.2) -> w :: RoundRobinSwitch -> q :: Queue(60) -> Unqueue(9) -> Discard;
         w[1] -> Queue(60) -> Unqueue(8) -> Discard;",
    ),
    // Packets come back to where they were.
    (
        32,
        "r :: RED(5, 50, 0.2) -> q :: Queue(60) -> Unqueue(9) -> p :: PaintSwitch -> Paint(1) -> r; p[1] -> Discard;",
    ),
    (
        32,
        "q :: Queue(90) -> r :: RED(5, 50, 0.2) -> Unqueue(9) -> p :: PaintSwitch -> Paint(1) -> q; p[1] -> Discard;",
    ),
];

fn check(burst: u32, rest: &str, batch_of: impl Fn(usize) -> usize) {
    let text = format!("FromDump(testdata/mix.pcap, STOP true, BURST {burst}) -> {rest}");
    assert_ne!(compare(&text, batch_of), 0, "{text}");
}

/// Runs a configuration at each batch size, and requires equal results, and the batch size that the router then has. Returns how many
/// packets it drops.
fn compare(text: &str, batch_of: impl Fn(usize) -> usize) -> u64 {
    let mut first = None;
    let mut drops = 0;
    for batch in BATCHES {
        let run = run(text, batch).expect(text);
        assert_eq!(run.router.batch(), batch_of(batch), "{text}");
        drops = run.router.read("r.drops", "").expect(text).parse().expect(text);
        let mut state = state(&run);
        for handler in ["stats", "avg_queue_size"] {
            let value = run.router.read(&format!("r.{handler}"), "");
            state.extend(value.map(|value| (handler.into(), value)));
        }
        let first = first.get_or_insert_with(|| state.clone());
        assert_eq!(&state, first, "batches of {batch}: {text}");
    }
    drops
}

#[test]
fn batches_are_judged_packet_by_packet() {
    for (burst, rest) in ALONE {
        check(*burst, rest, |batch| batch);
    }
}

/// Drops depend on a probability that a timer adapts to the length.
#[test]
fn a_controller_needs_no_single_packets() {
    let text = "RatedSource(LENGTH 60, RATE 20000, LIMIT 9000, STOP true)
        -> r :: PI(0.05, 0.001, 0.0005, 10) -> q :: Queue(90) -> RatedUnqueue(10000) -> Discard; r[1] -> Counter -> Discard;";
    assert_ne!(compare(text, |batch| batch), 0);
}

/// CoDel drops in phases, at the times of pulls, and pulls another packet for each that it drops; at most 20 at once here, from
/// queues or past others that also pull again, or that don't.
#[test]
fn packets_that_waited_too_long_are_replaced() {
    let source = "RatedSource(LENGTH 60, RATE 3000, LIMIT 6000, STOP true) -> s :: RoundRobinSwitch
        -> SetTimestamp(FIRST true) -> q :: Queue(500); s[1] -> SetTimestamp(FIRST true) -> q; s[2] -> q;";
    for (stamped, path) in [
        (2, "q -> r :: CoDel(4ms, 20ms) -> TimedUnqueue(11ms, 20) -> Counter -> Discard;"),
        (2, "q -> r :: CoDel(4ms, 20ms) -> TimedUnqueue(11ms, 20) -> Queue(30) -> Unqueue(7) -> Discard;"),
        (2, "q -> RED(40, 90, 0.2) -> r :: CoDel(4ms, 20ms) -> TimedUnqueue(11ms, 20) -> Discard;"),
        (2, "q -> RandomSample(0.99) -> r :: CoDel(4ms, 20ms) -> TimedUnqueue(11ms, 20) -> Discard;"),
        (3, "q -> r :: CoDel(4ms, 20ms) -> TimedUnqueue(11ms, 20) -> Counter -> Discard;"),
    ] {
        let source = if stamped == 2 { source.replace(" s[2] -> q;", "") } else { source.into() };
        let text = format!("{source} {path}");
        assert_ne!(compare(&text, |batch| batch), 0, "{path}");
    }
}

/// The source and the task behind the queue alternate, so no packet finds one in the queue.
#[test]
fn a_watched_queue_keeps_no_pace() {
    let text = "FromDump(testdata/mix.pcap, STOP true) -> r :: RED(0, 0, 0, STABILITY 0) -> q :: Queue -> Unqueue -> Discard;";
    assert_eq!(compare(text, |batch| batch), 0);
}

#[test]
fn where_others_change_the_length_packets_go_one_by_one() {
    for (burst, rest) in WITH_OTHERS {
        check(*burst, rest, |_| 1);
    }
}
