//! Splits whose parts meet again: order is restored where they meet, and batches stay large.

mod support;

use std::rc::Rc;

use support::{BATCHES, Memory, run_with, state};

/// What follows the source of 2,500 packets. The packets in `out` show the order in which they came.
const CASES: &[(&str, bool)] = &[
    ("h :: HashSwitch(26, 8); h[0] -> out :: ToDump(out); h[1] -> out; h[2] -> out;", true),
    ("h :: HashSwitch(26, 8); h[0] -> Paint(1) -> out :: ToDump(out); h[1] -> Strip(2) -> Paint(2) -> out; h[2] -> Null -> Null -> Null -> out;", true),
    // A split between, filters that divert, and packets that end on the way.
    ("h :: HashSwitch(26, 4); h[0] -> c :: Classifier(12/0800 23/06, 12/0800, -); c[0] -> Strip(14) -> CheckIPHeader -> d :: DecIPTTL -> m :: Null -> out :: ToDump(out);
      c[1] -> Strip(14) -> i :: CheckIPHeader -> Unstrip(14) -> m; c[2] -> Discard; d[1] -> Paint(9) -> m; i[1] -> n :: Counter -> Discard; h[1] -> Paint(3) -> m; h[2] -> n;", true),
    // Two splits in a row, the second where the first one's parts meet.
    ("h :: HashSwitch(26, 8); h[0] -> s :: RoundRobinSwitch; h[1] -> Paint(1) -> s; s[0] -> out :: ToDump(out); s[1] -> Strip(4) -> out; s[2] -> Strip(2) -> out;", true),
    // What leaves the first split by another way meets in a second one.
    ("h :: HashSwitch(26, 8); h[0] -> out :: ToDump(out); h[1] -> Paint(1) -> out; h[2] -> x :: HashSwitch(30, 4); x[0] -> Null -> n :: Counter -> Discard; x[1] -> n;", true),
    // The parts meet while another copy of each packet goes to the same element.
    ("t :: Tee; t[0] -> h :: HashSwitch(26, 8); h[0] -> s :: RoundRobinSwitch; h[1] -> Paint(1) -> s; s -> out :: ToDump(out); t[1] -> Strip(3) -> out;", false),
    ("t :: Tee; t[0] -> Strip(3) -> out :: ToDump(out); t[1] -> h :: HashSwitch(26, 8); h[0] -> s :: RoundRobinSwitch; h[1] -> Paint(1) -> s; s -> out;", false),
    // They meet at several inputs of a rewriter, which is a split, too; and before some inputs only.
    ("ip :: Classifier(12/0800, -); ip[1] -> Discard; ip[0] -> Strip(14) -> CheckIPHeader -> h :: HashSwitch(12, 8);
      h[0] -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, keep 1 0, pass 2); h[1] -> Paint(1) -> [1] rw; h[2] -> [2] rw;
      rw[0] -> out :: ToDump(out); rw[1] -> Strip(1) -> out; rw[2] -> Strip(2) -> out;", true),
    ("ip :: Classifier(12/0800, -); ip[1] -> Discard; ip[0] -> Strip(14) -> CheckIPHeader -> c :: IPClassifier(tcp src port < 2000, tcp, udp, -);
      rw :: IPAddrRewriter(keep 0 0, pattern 1.0.0.1-1.0.0.200# - 0 0, drop); c[0] -> [1] rw; c[1] -> Null -> n :: Null -> [0] rw; c[2] -> n; c[3] -> [1] rw;
      Idle -> [2] rw -> out :: ToDump(out);", true),
    // No packet goes to the last of the inputs.
    ("ip :: Classifier(12/0800, -); ip[1] -> Discard; ip[0] -> Strip(14) -> CheckIPHeader -> c :: IPClassifier(tcp, ip proto 200, -);
      rw :: IPRewriter(keep 0 0, pass 0, pass 0) -> out :: ToDump(out); c[0] -> rw; c[1] -> [2] rw; c[2] -> [1] rw;", true),
    // They meet at several inputs of an element that does not mix them.
    ("h :: HashSwitch(26, 8); h[0] -> s :: RoundRobinSwitch; h[1] -> x :: EtherSwitch; h[2] -> [1] x; Idle -> [2] x; s -> [3] x; x[0] -> out :: ToDump(out); x[1] -> out; x[2] -> out; x[3] -> out;", false),
    // Two elements depend on the order, the copies of a Tee meet, packets also come from elsewhere, and a loop.
    ("h :: HashSwitch(26, 8); h[0] -> out :: ToDump(out); h[1] -> Paint(1) -> out; h[2] -> s :: RoundRobinSwitch -> Strip(1) -> out;", false),
    ("t :: Tee; t[0] -> Paint(1) -> out :: ToDump(out); t[1] -> Strip(1) -> out;", false),
    ("h :: HashSwitch(26, 8); h[0] -> p :: Paint(1) -> out :: ToDump(out); h[1] -> Strip(1) -> out; RandomSource(LENGTH 60, LIMIT 50) -> p;", false),
    ("h :: HashSwitch(26, 8); h[0] -> out :: ToDump(out); h[1] -> Strip(1) -> l :: PaintSwitch; l[0] -> Paint(1) -> Strip(1) -> h; l[1] -> out;", false),
];

const SOURCE: &str = "FromDump(testdata/mix.pcap, STOP true)";

/// Runs a configuration; returns what its handlers show, the batches that arrived at `out`, and the bytes of its file.
fn outcome(rest: &str, batch: usize) -> (Vec<(String, String)>, Vec<u8>) {
    let memory = Rc::new(Memory::default());
    let run = run_with(&format!("{SOURCE} -> all :: Counter -> {rest}"), batch, memory.clone()).expect(rest);
    let state = state(&run);
    drop(run);
    (state, memory.file("out").unwrap_or_default())
}

#[test]
fn order_is_restored_where_the_parts_of_a_batch_meet() {
    for &(rest, _) in CASES {
        let single = outcome(rest, 1);
        assert!(single.1.len() > 100_000, "{} bytes: {rest}", single.1.len());
        for batch in BATCHES {
            let run = outcome(rest, batch);
            assert_eq!(run.0, single.0, "batches of {batch}: {rest}");
            assert!(run.1 == single.1, "batches of {batch} come in another order: {rest}");
        }
    }
}

#[test]
fn batches_stay_large_where_parts_meet() {
    for &(rest, is_joined) in CASES {
        // A switch that depends on the order shows the size of the batches that meet.
        let counted =
            rest.replace("out :: ToDump(out)", "out :: RoundRobinSwitch -> size :: Counter -> Discard");
        let memory = Rc::new(Memory::default());
        let run = run_with(&format!("{SOURCE} -> {counted}"), 256, memory).expect(rest);
        let number = |path| -> u64 { run.router.read(path, "").expect(path).trim().parse().expect(path) };
        let (packets, batches) = (number("size.count"), number("size.batches"));
        assert_eq!(batches * 20 < packets, is_joined, "{packets} packets in {batches} batches: {rest}");
    }
}

#[test]
fn parts_that_never_meet_are_gathered_over_a_turn() {
    let mut text = "ip :: Classifier(12/0800, -); ip[1] -> Discard; ip[0] -> h :: HashSwitch(26, 12);
                    o :: Counter -> out :: Counter -> Discard;"
        .to_string();
    for output in 0..40 {
        text += &format!(
            "h[{output}] -> Strip(14) -> Paint({output}) -> k{output} :: CheckIPHeader -> c{output} :: Counter -> o;
             k{output}[1] -> x{output} :: Classifier(0/45, -); x{output}[0] -> o; x{output}[1] -> o;"
        );
    }
    let single = outcome(&text, 1).0;
    for batch in BATCHES {
        assert_eq!(outcome(&text, batch).0, single, "batches of {batch}");
    }
    let run = run_with(&format!("{SOURCE} -> {text}"), 256, Rc::new(Memory::default())).expect("it runs");
    let number =
        |path: String| -> u64 { run.router.read(&path, "").expect(&path).trim().parse().expect(&path) };
    let sum = |handler| (0..40).map(|output| number(format!("c{output}.{handler}"))).sum::<u64>();
    let (packets, batches) = (sum("count"), sum("batches"));
    // Without gathering, 128 packets of a round go to 40 outputs: three at a time.
    assert!(packets > 2_000 && batches * 8 < packets, "{packets} packets in {batches} batches");
}

#[test]
fn parts_of_many_outputs_are_gathered_over_a_turn_before_they_meet() {
    let outputs = |to: &str| -> String {
        (0..30).map(|output| format!("h[{output}] -> Strip(14) -> Paint({output}) -> {to};")).collect()
    };
    let queue =
        "q :: Queue(9) -> u :: Unqueue -> s :: RoundRobinSwitch -> size :: Counter -> out :: ToDump(out);";
    let cases = [
        (
            format!(
                "h :: HashSwitch(26, 12); s :: RoundRobinSwitch -> size :: Counter -> out :: ToDump(out); {}",
                outputs("s")
            ),
            100,
        ),
        (format!("h :: HashSwitch(26, 12); {queue} {}", outputs("q")), 100),
        // Packets also reach the meeting by another way, before or after the split.
        (
            format!(
                "t :: Tee -> h :: HashSwitch(26, 12); s :: RoundRobinSwitch -> size :: Counter -> out :: ToDump(out); t[1] -> s; {}",
                outputs("s")
            ),
            1,
        ),
        (
            format!(
                "t :: Tee; t[1] -> h :: HashSwitch(26, 12); s :: RoundRobinSwitch -> size :: Counter -> out :: ToDump(out); t[0] -> s; {}",
                outputs("s")
            ),
            1,
        ),
    ];
    for (rest, least) in &cases {
        let single = outcome(rest, 1);
        for batch in BATCHES {
            let run = outcome(rest, batch);
            let differences: Vec<_> =
                run.0.iter().zip(&single.0).filter(|(one, other)| one != other).collect();
            assert!(differences.is_empty(), "batches of {batch}: {differences:?}: {rest}");
            assert!(run.1 == single.1, "batches of {batch} come in another order: {rest}");
        }
        let run = run_with(&format!("{SOURCE} -> {rest}"), 128, Rc::new(Memory::default())).expect(rest);
        let number = |path| -> u64 { run.router.read(path, "").expect(path).trim().parse().expect(path) };
        let (packets, batches) = (number("size.count"), number("size.batches"));
        assert!(batches * least <= packets, "{packets} packets in {batches} batches: {rest}");
    }
}
