//! The router's guarantees about order, handlers, swaps and time, tested with elements of the library.

mod support;

use std::rc::Rc;

use packet::Timestamp;
use support::{BATCHES, Memory, books, expectations, run, run_with};

/// Length of the header of a capture file.
const CAPTURE_HEADER: usize = 24;
/// Length of the header of a packet in a capture file.
const RECORD_HEADER: usize = 16;

/// The bytes of the file `out` that the configuration has written, at a batch size.
fn written(config: &str, batch: usize) -> Vec<u8> {
    let memory = Rc::new(Memory::default());
    let run = run_with(config, batch, memory.clone()).expect("it runs");
    assert!(run.router.losses().is_empty(), "{:?}", run.router.losses());
    drop(run);
    memory.file("out").expect("it writes")
}

#[test]
fn order_is_kept_where_outputs_meet() {
    let config = "RandomSource(LENGTH 20, LIMIT 500, STOP true) -> SetTimestamp(7) -> s :: RoundRobinSwitch;
        s[0] -> StoreData(0, one) -> out :: ToDump(out);
        s[1] -> a :: HashSwitch(10, 1); a[0] -> out; a[1] -> StoreData(0, two) -> out;";
    let single = written(config, 1);
    assert_eq!(single.len(), CAPTURE_HEADER + 500 * (RECORD_HEADER + 20));
    for batch in BATCHES {
        assert!(written(config, batch) == single, "batch {batch}");
    }
}

/// A file to which no other element writes needs no batches of one packet.
#[test]
fn lines_printed_to_a_file_are_in_order_in_large_batches() {
    let config = "FromDump(testdata/mix.pcap, STOP true) -> c :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader \
                  -> u :: Classifier(9/11, -) -> print :: IPPrint(OUTFILE out) -> Discard; u[1] -> print; c[1] -> Discard;";
    let run_at = |batch| {
        let memory = Rc::new(Memory::default());
        let run = run_with(config, batch, memory.clone()).expect("it runs");
        assert_eq!(run.router.batch(), batch);
        let printed = run.router.read("print.icounts", "").expect("a count");
        drop(run);
        (printed, memory.file("out").expect("it writes"))
    };
    let [one, several, many] = BATCHES.map(run_at);
    assert!(one == several && one == many);
    let lines = one.1.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 1_000 && one.0.trim() == lines.to_string(), "{lines} lines of {}", one.0);
}

/// The log needs batches of one packet only if another element may write to it while packets pass.
#[test]
fn lines_printed_to_the_log_are_in_the_order_of_packets() {
    const CASES: &[(&str, bool)] = &[
        ("Print(a, 20) -> Discard;", true),
        (
            "c :: Classifier(12/0806, 12/0800 23/11, -) -> print :: Print(a, 30) -> Discard; c[1] -> print; c[2] -> print;",
            true,
        ),
        ("Print(a, 20) -> Strip(14) -> Discard;", false),
        ("t :: Tee -> print :: Print(a, 20) -> Discard; t[1] -> print;", true),
        ("t :: Tee -> Print(a, 20) -> Discard; t[1] -> Print(b, 20) -> Discard;", false),
        (
            "c :: Classifier(12/0800, -) -> MarkIPHeader(14) -> IPPrint(TIMESTAMP false) -> Discard; c[1] -> Discard;",
            true,
        ),
        (
            "c :: Classifier(12/0800, -) -> CheckIPHeader(14) -> IPPrint(TIMESTAMP false) -> Discard; c[1] -> Discard;",
            false,
        ),
        ("Print(a, 20) -> Queue(100) -> Discard;", false),
        (
            "Print(a, 20) -> Counter(COUNT_CALL 700 s.run) -> Discard; s :: Script(TYPE PASSIVE, print here);",
            true,
        ),
    ];
    // Behind the packets comes what is no record: this is logged after all lines.
    let mut capture = std::fs::read("../../testdata/mix.pcap").expect("the capture");
    capture.extend([0xff; 16]);
    for &(rest, is_batched) in CASES {
        let text = format!("FromDump(damaged, STOP true) -> {rest}");
        let run_at = |batch| {
            let memory = Rc::new(Memory::default());
            memory.put("damaged", &capture);
            let run = run_with(&text, batch, memory.clone()).expect(&text);
            assert_eq!(run.router.batch(), if is_batched { batch } else { 1 }, "{text}");
            drop(run);
            memory.console()
        };
        let [one, several, many] = BATCHES.map(run_at);
        assert!(one == several && one == many, "{text}");
        assert!(one.lines().count() > 10, "{text}: {one}");
        assert!(one.lines().last().is_some_and(|line| line.starts_with("damaged: ")), "{text}: {one}");
    }
}

/// Elements that print to the same file share it.
#[test]
fn lines_printed_to_a_shared_file_are_in_the_order_of_packets() {
    let config = "InfiniteSource(DATA \\<4500001c 00010000 40110000 0a000001 0a000002 04d20035 00080000>, LIMIT 300, STOP true)
        -> MarkIPHeader -> s :: RoundRobinSwitch;
        s[0] -> IPPrint(a, TIMESTAMP false, OUTFILE out) -> Discard; s[1] -> IPPrint(b, TIMESTAMP false, OUTFILE out) -> Discard;
        s[2] -> { input -> StoreData(0, \\<0001 0800 06 04 0001 020000000001 0a000001 000000000000>) -> MarkIPHeader
            -> ARPPrint(c, TIMESTAMP false, OUTFILE out) -> output } -> IPPrint(d, TIMESTAMP false, OUTFILE other) -> Discard;";
    for batch in BATCHES {
        let memory = Rc::new(Memory::default());
        let run = run_with(config, batch, memory.clone()).expect("it runs");
        assert!(run.router.batch() == 1 && run.router.losses().is_empty());
        drop(run);
        let text = |name| String::from_utf8(memory.file(name).expect("it writes")).expect("text");
        let labels = |name| text(name).lines().map(|line| line[..1].to_string()).collect::<String>();
        assert_eq!((labels("out"), labels("other")), ("abc".repeat(100), "d".repeat(100)), "batch {batch}");
        assert_eq!(text("out").lines().nth(2), Some("c: arp who-has 0.8.0.0 tell 10.0.0.1"));
    }
}

#[test]
fn loops_give_the_same_result_as_single_packets() {
    let config = "RandomSource(LENGTH 20, LIMIT 300, STOP true) -> SetTimestamp(7) -> s :: RoundRobinSwitch;
        s[0] -> Null -> s; s[1] -> ToDump(out);";
    let single = written(config, 1);
    assert_eq!(single.len(), CAPTURE_HEADER + 300 * (RECORD_HEADER + 20));
    for batch in BATCHES {
        assert!(written(config, batch) == single, "batch {batch}");
    }
}

#[test]
fn a_write_comes_before_the_packet_that_asked_for_it() {
    let config =
        "InfiniteSource(LIMIT 10, STOP true) -> all :: Counter(COUNT_CALL 4 s.switch 1) -> s :: Switch(0);
        s[0] -> before :: Counter -> Discard; s[1] -> after :: Counter -> Discard;";
    for batch in BATCHES {
        let run = run(config, batch).expect("it runs");
        // Only the packet that calls has to come alone.
        assert_eq!(run.router.batch(), batch);
        assert_eq!(expectations(&run, "all.count = 10\nbefore.count = 3\nafter.count = 7"), [""; 0]);
    }
}

#[test]
fn an_endless_loop_is_cut_and_counted() {
    let run = run("InfiniteSource(LIMIT 1, STOP true) -> s :: Switch(0) -> s; s[1] -> Discard;", 256)
        .expect("it runs");
    assert_eq!(
        run.router.losses().iter().map(|loss| (loss.reason.to_string(), loss.packets)).collect::<Vec<_>>(),
        [("endless_loop".to_string(), 1)]
    );
    assert_eq!(books::check(&run), [""; 0]);
}

#[test]
fn a_swap_carries_state_over() {
    let first = "a :: InfiniteSource(LIMIT 5) -> c :: Counter -> q :: Queue(10);
        Idle -> u :: Unqueue -> Discard; q -> Idle;";
    let second = "b :: InfiniteSource(LIMIT 2) -> c :: Counter -> q :: Queue(10); q -> Idle;";
    let mut run = run(first, 256).expect("it runs");
    run.router.write("hotconfig", second).expect("it is accepted");
    run.router.run(None);
    assert_eq!(run.router.swaps(), 1);
    assert_eq!(expectations(&run, "c.count = 7\nq.length = 7\nlist = 4\\nb\\nc\\nq\\nIdle@4"), [""; 0]);
}

#[test]
fn simulated_time_continues_in_a_swap() {
    let first = "source :: RatedSource(RATE 100) -> c :: Counter -> Discard; Script(wait 2s, stop);";
    let second = "source :: RatedSource(RATE 100) -> c :: Counter -> Discard; Script(wait 1s, stop);";
    let mut run = run(first, 256).expect("it runs");
    let before = run.router.now();
    run.router.write("hotconfig", second).expect("it is accepted");
    run.router.run(None);
    assert_eq!(run.router.now() - before, Timestamp::from_parts(1, 0));
    assert_eq!((run.router.swaps(), expectations(&run, "c.count = 302")), (1, Vec::new()));
}

#[test]
fn a_bad_swap_changes_nothing() {
    let mut run = run("InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;", 256).expect("it runs");
    let before = run.router.read("flatconfig", "").expect("it is readable");
    let not_initialized = "Router could not be initialized!";
    for (bad, message) in [
        ("c :: Counter -> ", "config:1: syntax error near ‘’".into()),
        ("Idle -> c :: Cuonter -> Discard", "config:1: unknown element class ‘Cuonter’".into()),
        (
            "Idle -> c :: Counter(5) -> Discard",
            format!("config:1: While configuring ‘c :: Counter’:\n  too many arguments\n{not_initialized}"),
        ),
        ("Idle -> c :: Counter", format!("config:1: ‘c :: Counter’ output 0 unused\n{not_initialized}")),
        (
            "RatedSource -> Discard; InfiniteSource -> Queue -> Discard -> Idle",
            format!("config:1: ‘Discard@5 :: Discard’ has no output 0\n{not_initialized}"),
        ),
        (
            "FromDump(nowhere.pcap) -> c :: Counter -> Discard",
            format!(
                "config:1: While initializing ‘FromDump@1 :: FromDump’:\n  \
                 nowhere.pcap: No such file or directory\n{not_initialized}"
            ),
        ),
    ] {
        let error = run.router.write("hotconfig", bad).expect_err(bad).to_string();
        assert_eq!(error, message, "{bad}");
        run.router.run(None);
        assert_eq!(run.router.read("flatconfig", ""), Ok(before.clone()));
        assert_eq!(expectations(&run, "c.count = 5"), [""; 0]);
    }
    assert_eq!(run.router.swaps(), 0);
}

#[test]
fn simulated_time_is_the_same_in_every_run() {
    // The environment's clock stands still, so packets with other times show that it is not read.
    let config = "RatedSource(RATE 100, LIMIT 50, STOP true) -> s :: RandomSwitch;
        s[0] -> q :: Queue -> DelayUnqueue(0.1) -> out :: ToDump(out); s[1] -> r :: RatedSplitter(20) -> out; r[1] -> StoreData(0, late) -> out;";
    let first = written(config, 256);
    // When the source stops, five packets are still delayed.
    assert_eq!(first.len(), CAPTURE_HEADER + 45 * (RECORD_HEADER + 69));
    assert!(written(config, 256) == first);
}

/// An error in the name of another element is reported with the other errors, in the order of the elements. A reference
/// to an element that could not be created is not an error.
#[test]
fn errors_follow_configuration_order() {
    let config = "Idle -> IPRewriter(later) -> Paint(x) -> Discard;
        Idle -> f :: FTPPortMapper(control, data, 1) -> Discard;
        Idle -> control :: TCPRewriter(pattern wrong 0) -> Discard;
        Idle -> data :: IPRewriter(drop) -> Discard;
        Idle -> AggregateIPFlows(SOURCE nothing) -> Counter(1) -> RED(1, 5, 0.1, QUEUES nothing) -> Discard;
        Idle -> ICMPRewriter(broken) -> Discard; Idle -> broken :: UDPRewriter(drop, drop) -> Discard;
        ControlSocket(TCP, 0, PROXY nothing);";
    let error = run(config, 1).map(|_| ()).expect_err("it is rejected");
    let expected = [
        "test:1: While configuring ‘IPRewriter@2 :: IPRewriter’:",
        "  input spec 0: unknown specification",
        "test:1: While configuring ‘Paint@3 :: Paint’:",
        "  COLOR: invalid number",
        "test:2: While configuring ‘f :: FTPPortMapper’:",
        "  DATA_REWRITER_INPUT out of range",
        "test:3: While configuring ‘control :: TCPRewriter’:",
        "  input spec 0: syntax error",
        "test:5: While configuring ‘AggregateIPFlows@15 :: AggregateIPFlows’:",
        "  SOURCE: does not name an element",
        "test:5: While configuring ‘Counter@16 :: Counter’:",
        "  too many arguments",
        "test:5: While configuring ‘RED@17 :: RED’:",
        "  no element named ‘nothing’",
        "test:6: While configuring ‘broken :: UDPRewriter’:",
        "  need 1 arguments, one per input port",
        "test:7: While configuring ‘ControlSocket@25 :: ControlSocket’:",
        "  PROXY: does not name an element",
    ];
    assert_eq!(error.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn results_that_a_test_does_not_list_are_differences() {
    let config = "InfiniteSource(LIMIT 7, STOP true) -> c :: Counter -> q :: SimpleQueue(3) -> Idle;";
    let run = run(config, 256).expect("it runs");
    let all = ["c.count = 7", "q.length = 3", "q.losses = overflow 4"];
    assert_eq!(expectations(&run, &all.join("\n")), [""; 0]);
    for (index, unlisted) in all.iter().enumerate() {
        let listed = [&all[..index], &all[index + 1..]].concat().join("\n");
        assert_eq!(expectations(&run, &listed), [format!("not listed: {unlisted}")]);
    }
    assert_eq!(expectations(&run, "c.count = 7\nq.length = 3\nq.losses = overflow 5").len(), 1);
}
