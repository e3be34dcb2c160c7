//! Counters that call a handler: everything is then as with single packets, and batches are large as long as the call is far away.

mod support;

use std::rc::Rc;

use support::{BATCHES, Memory, run_with, state};

/// Configurations; whether their batches are large. The script `seen` writes what all counters and queues show when it is called.
const CASES: &[(&str, bool)] = &[
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 1700 stop) -> b :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> c :: Counter(BYTE_COUNT_CALL 100000000 seen.run) -> b :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 1234 seen.run, BYTE_COUNT_CALL 150000 seen.run) -> b :: Counter -> Discard;", false),
    // Two calls, one behind a classifier, and ways that meet again.
    ("FROM -> a :: Counter(COUNT_CALL 2001 seen.run) -> k :: Classifier(12/0800, -); k[0] -> c :: Counter(COUNT_CALL 777 seen.run) -> b :: Counter -> Discard; k[1] -> b;", true),
    ("FROM -> a :: Counter -> h :: HashSwitch(26, 4); h[0] -> s :: RoundRobinSwitch; h[1] -> Paint(1) -> s; h[2] -> n :: Counter -> s; h[3] -> s;
      s[0] -> c :: Counter(COUNT_CALL 1000 seen.run) -> b :: Counter -> Discard; s[1] -> d :: Counter -> b;", true),
    // What the call changes is upstream, downstream, the counter itself, or the source.
    ("FROM -> a :: Counter -> s :: Switch(0); s[0] -> c :: Counter(COUNT_CALL 900 s.switch 1) -> b :: Counter -> Discard; s[1] -> d :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 900 s.switch 1) -> s :: Switch(0); s[0] -> b :: Counter -> Discard; s[1] -> d :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 400 again.run) -> b :: Counter -> Discard; again :: Script(TYPE PASSIVE, write seen.run, write c.reset);", true),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 400 again.run) -> b :: Counter -> Discard; again :: Script(TYPE PASSIVE, write seen.run, write c.count_call 1900 seen.run);", true),
    ("i :: InfiniteSource(LIMIT 3000, BURST 900, STOP true) -> a :: Counter -> c :: Counter(COUNT_CALL 1700 halt.run) -> b :: Counter -> Discard; halt :: Script(TYPE PASSIVE, write seen.run, write i.active false);", true),
    // A burst longer than a batch, queues, and tasks that alternate.
    ("InfiniteSource(LIMIT 3000, BURST 600, STOP true) -> a :: Counter -> q :: Queue(5000) -> u :: Unqueue(400) -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> q :: Queue(3000) -> u :: Unqueue -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 1700 seen.run) -> q :: Queue(3000) -> u :: Unqueue -> b :: Counter -> Discard;", true),
    ("FROM -> a :: Counter -> q :: Queue(3000) -> l :: LinkUnqueue(0, 10MBps) -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard;", false),
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard; InfiniteSource(LIMIT 2000) -> d :: Counter(COUNT_CALL 1001 seen.run) -> b;", false),
    // Copies, packets that wait on the way, and packets that are pulled: the router works without batches.
    ("FROM -> a :: Counter -> t :: Tee -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard; t[1] -> c;", false),
    ("FROM -> a :: Counter -> q :: Queue(3000) -> c :: Counter(COUNT_CALL 1700 seen.run) -> u :: Unqueue(100) -> b :: Counter -> Discard;", false),
    ("FROM -> a :: Counter -> f :: Strip(14) -> IPFragmenter(100) -> c :: Counter(COUNT_CALL 1700 seen.run) -> b :: Counter -> Discard;", false),
    // A way back to the counter.
    ("FROM -> a :: Counter -> c :: Counter(COUNT_CALL 1700 seen.run) -> p :: PaintSwitch; p[0] -> Paint(1) -> c; p[1] -> b :: Counter -> Discard;", false),
];

const SOURCE: &str = "FromDump(testdata/mix.pcap, STOP true)";

/// The script `seen`, which writes to a file what these elements show, and what `before` adds to the configuration.
fn with_script(rest: &str, burst: &str) -> String {
    let shown = |name: &&str| rest.contains(&format!(" {name} :: Counter"));
    let mut texts: Vec<_> = ["a", "b", "c", "d", "n"]
        .iter()
        .filter(|name| shown(name))
        .map(|name| format!("{name} $({name}.count) $({name}.byte_count)"))
        .collect();
    if rest.contains(" q :: Queue") {
        texts.push("q $(q.length) $(q.highwater_length)".into());
    }
    let source = format!("FromDump(testdata/mix.pcap{burst})");
    let rest = rest.replace("FROM", &source);
    format!("{rest} seen :: Script(TYPE PASSIVE, print >>seen \"{}\");", texts.join(" "))
}

/// What the handlers show after a run, what the calls saw, and how many batches arrived at `b` for how many packets.
fn outcome(text: &str, batch: usize) -> (Vec<(String, String)>, String, (u64, u64)) {
    let memory = Rc::new(Memory::default());
    let run = run_with(text, batch, memory.clone()).expect(text);
    let number = |path| -> u64 { run.router.read(path, "").expect(path).trim().parse().expect(path) };
    let size = (number("b.batches"), number("b.count"));
    let seen = memory.file("seen").map(|bytes| String::from_utf8(bytes).expect("text"));
    (state(&run), seen.unwrap_or_default(), size)
}

#[test]
fn a_call_sees_and_changes_what_it_does_with_single_packets() {
    for &(rest, has_batches) in CASES {
        for burst in ["", ", BURST 32"] {
            let text = with_script(rest, burst);
            let single = outcome(&text, 1);
            assert_eq!(single.2.0, single.2.1, "{text}");
            assert_ne!(
                single.1.is_empty(),
                rest.contains("seen.run") && !rest.contains("100000000"),
                "{text}"
            );
            for batch in BATCHES {
                let run = outcome(&text, batch);
                assert_eq!(run.1, single.1, "batches of {batch}: {text}");
                assert_eq!(run.0, single.0, "batches of {batch}: {text}");
            }
        }
        let text = with_script(rest, "");
        let (batches, packets) = outcome(&text, 256).2;
        assert_eq!(batches * 10 < packets, has_batches, "{packets} packets in {batches} batches: {text}");
    }
}

/// The call may be set while packets pass.
#[test]
fn a_call_that_is_set_later_comes_with_its_packet() {
    let text = format!(
        "{SOURCE} -> a :: Counter(COUNT_CALL 1000 c.count_call 1500 seen.run) -> c :: Counter -> b :: Counter -> Discard;
         seen :: Script(TYPE PASSIVE, print >>seen \"$(a.count) $(b.count) $(c.count)\");"
    );
    for batch in BATCHES {
        assert_eq!(outcome(&text, batch).1, "1500 1499 1500\n", "batches of {batch}");
    }
}
