//! What a router promises of order, handlers, swaps and time, shown with the library's elements.

mod support;

use std::rc::Rc;

use packet::Timestamp;
use support::{BATCHES, Memory, expectations, run, run_with};

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
    assert!(single.len() > 500 * 36);
    for batch in BATCHES {
        assert!(written(config, batch) == single, "batch {batch}");
    }
}

#[test]
fn loops_give_what_single_packets_give() {
    let config = "RandomSource(LENGTH 20, LIMIT 300, STOP true) -> SetTimestamp(7) -> s :: RoundRobinSwitch;
        s[0] -> Null -> s; s[1] -> ToDump(out);";
    let single = written(config, 1);
    assert!(single.len() > 300 * 36);
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
        assert_eq!(run.router.batch(), 1, "who acts on others takes packets one by one");
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
}

#[test]
fn a_bad_swap_changes_nothing() {
    let mut run = run("InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;", 256).expect("it runs");
    let before = run.router.read("flatconfig", "").expect("it is readable");
    for (bad, message) in [
        ("c :: Counter -> ", "syntax error"),
        ("Idle -> c :: Cuonter -> Discard", "Cuonter"),
        ("Idle -> c :: Counter(5) -> Discard", "too many arguments"),
        ("Idle -> c :: Counter", "unused"),
        ("RatedSource -> Discard; InfiniteSource -> Queue -> Discard -> Idle", "Discard"),
        ("FromDump(nowhere.pcap) -> c :: Counter -> Discard", "nowhere.pcap"),
    ] {
        let error = run.router.write("hotconfig", bad).expect_err(bad).to_string();
        assert!(error.contains(message), "{bad}: {error}");
        run.router.run(None);
        assert_eq!(run.router.read("flatconfig", ""), Ok(before.clone()));
        assert_eq!(expectations(&run, "c.count = 5"), [""; 0]);
    }
    assert_eq!(run.router.swaps(), 0);
}

#[test]
fn simulated_time_is_the_same_in_every_run() {
    // The environment's clock stands still: that the packets have their times shows that nothing looks at it.
    let config = "RatedSource(RATE 100, LIMIT 50, STOP true) -> s :: RandomSwitch;
        s[0] -> q :: Queue -> DelayUnqueue(0.1) -> out :: ToDump(out); s[1] -> r :: RatedSplitter(20) -> out; r[1] -> StoreData(0, late) -> out;";
    let first = written(config, 256);
    assert!(first.len() > 40 * 60);
    assert!(written(config, 256) == first);
}

/// Whoever names another element is told of it beside what is wrong with others, each in its place; not of what an
/// element that could not be made would have had.
#[test]
fn errors_follow_configuration_order() {
    let config = "Idle -> IPRewriter(later) -> Paint(x) -> Discard;
        Idle -> f :: FTPPortMapper(control, data, 1) -> Discard;
        Idle -> control :: TCPRewriter(pattern wrong 0) -> Discard;
        Idle -> data :: IPRewriter(drop) -> Discard;
        Idle -> AggregateIPFlows(SOURCE nothing) -> Counter(1) -> RED(1, 5, 0.1, QUEUES nothing) -> Discard;
        Idle -> ICMPRewriter(broken) -> Discard; Idle -> broken :: UDPRewriter(drop, drop) -> Discard;
        ControlSocket(TCP, 0, PROXY nothing);";
    let told = run(config, 1).map(|_| ()).expect_err("nothing of it is right");
    let wanted = [
        "input spec 0: unknown specification",
        "COLOR: invalid number",
        "DATA_REWRITER_INPUT out of range",
        "input spec 0: syntax error",
        "SOURCE: does not name an element",
        "too many arguments",
        "no element named ‘nothing’",
        "need 1 arguments, one per input port",
        "PROXY: does not name an element",
    ];
    let lines: Vec<&str> =
        told.lines().map(str::trim).filter(|line| !line.contains("While configuring")).collect();
    assert_eq!(lines, wanted, "{told}");
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
