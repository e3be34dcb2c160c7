//! A hot swap keeps flows, waiting packets, tables and counts, at every batch size.

mod support;

use std::time::Duration;

use support::{BATCHES, books, expectations, run};

/// Simulated time for which the second configuration runs, unless it delays packets.
const SHORT: Duration = Duration::from_millis(20);

/// Runs `first`, replaces it by `second` and checks handlers; then does the same with failed attempts in between.
fn check(first: &str, second: &str, time: Duration, expect: &str) {
    check_losses(first, second, time, (expect, ""));
}

/// Like `check`, where the swap also loses packets. An element shows the losses of the last swap only.
fn check_losses(first: &str, second: &str, time: Duration, (expect, losses): (&str, &str)) {
    // Stops early, because flows and table entries would expire if it ran until it is idle.
    let first = &format!("{first} Script(wait 0.01s, stop);");
    for batch in BATCHES {
        for attempts in [
            &[][..],
            &["Idle -> Nothing", "x :: Counter; FromDump(nothing) -> x -> Discard", second, "Idle ->"],
        ] {
            let mut run = run(first, batch).expect("the first configuration runs");
            let mut swaps = 1;
            for attempt in attempts {
                // A valid configuration takes over before it has run; the next one inherits from it.
                swaps += u64::from(run.router.write("hotconfig", attempt).is_ok());
            }
            run.router.write("hotconfig", second).expect("the second configuration is accepted");
            // Tables with timeouts never become idle.
            run.router.run_for(Some(time));
            let losses = if swaps == 1 { losses } else { "" };
            let expect = format!("{expect}\n{losses}");
            assert_eq!(expectations(&run, &expect), [""; 0], "batch {batch}: {second}");
            assert_eq!(books::check(&run), [""; 0], "batch {batch}: {second}");
            assert_eq!(run.router.swaps(), swaps, "{second}");
        }
    }
}

/// A source of one packet with these addresses and ports, whose IP checksum `SetIPChecksum` computes.
fn packet(source: (u8, u16), destination: (u8, u16), tcp: bool) -> String {
    let ((from, from_port), (to, to_port)) = (source, destination);
    let (protocol, rest) = match tcp {
        true => ("06", "00000001 00000000 5002 2000 0000 0000".replace(' ', "")),
        false => ("11", "0014 0000 000000000000000000000000".replace(' ', "")),
    };
    format!(
        "InfiniteSource(DATA \\<45000028 00000000 40{protocol}0000 {from:02x}000001 {to:02x}000001 {from_port:04x}{to_port:04x} \
         {rest}>, LIMIT 1) -> MarkIPHeader -> SetIPChecksum"
    )
}

#[test]
fn rewriters_keep_their_flows() {
    // From 10.0.0.1 port 1000 to 8.0.0.1 port 53, as 1.0.0.1 port 5000; the answer belongs to that flow.
    let rows = [
        ("IPRewriter", "pattern 1.0.0.1 5000 - - 0 1, drop", true),
        ("IPRewriter", "pattern 1.0.0.1 5000 - - 0 1, drop", false),
        ("UDPRewriter", "pattern 1.0.0.1 5000 - - 0 1, drop", false),
        ("TCPRewriter", "pattern 1.0.0.1 5000 - - 0 1, drop", true),
        ("IPAddrRewriter", "pattern 1.0.0.1 - 0 1, drop", false),
        ("IPAddrPairRewriter", "pattern 1.0.0.1 - 0 1, drop", false),
    ];
    for (class, arguments, tcp) in rows {
        let ports = if class.starts_with("IPAddr") { (1000, 53) } else { (5000, 53) };
        let rest = "nat[0] -> out :: Counter -> Discard;
            nat[1] -> back :: IPClassifier(dst host 10.0.0.1 and dst port 1000, -); back[0] -> in :: Counter -> Discard;
            back[1] -> wrong :: Counter -> Discard;";
        let there = packet((10, 1000), (8, 53), tcp);
        let first = format!("nat :: {class}({arguments}); {there} -> nat; Idle -> [1] nat; {rest}");
        let answer = packet((8, 53), (1, ports.0), tcp);
        let second = format!("nat :: {class}({arguments}); Idle -> nat; {answer} -> [1] nat; {rest}");
        check(&first, &second, SHORT, "out.count = 1\nin.count = 1\nwrong.count = 0");
    }
}

#[test]
fn packets_that_wait_are_kept() {
    for class in [
        "Queue",
        "SimpleQueue",
        "ThreadSafeQueue",
        "NotifierQueue",
        "FullNoteQueue",
        "QuickNoteQueue",
        "MixedQueue",
        "FrontDropQueue",
    ] {
        let other = if class == "MixedQueue" { "Idle -> [1] q;" } else { "" };
        let first = format!("InfiniteSource(LIMIT 7) -> q :: {class}(10); q -> Idle; {other}");
        let second = format!("InfiniteSource(DATA later, LIMIT 2) -> q :: {class}(20); q -> Idle; {other}");
        check(&first, &second, SHORT, "q.length = 9\nq.capacity = 20");
        let second = format!("Idle -> q :: {class}(20); q -> Unqueue -> c :: Counter -> Discard; {other}");
        check(&first, &second, SHORT, "q.length = 0\nc.count = 7");
    }
    // Any queue takes over from any other; one that is too short drops packets.
    for (old, new, length) in
        [("Queue", "SimpleQueue(4)", 4), ("FrontDropQueue", "QuickNoteQueue", 7), ("MixedQueue", "Queue", 7)]
    {
        let other = if old == "MixedQueue" { "Idle -> [1] q;" } else { "" };
        let first = format!("InfiniteSource(LIMIT 7) -> q :: {old}; q -> Idle; {other}");
        let second = format!("Idle -> q :: {new}; q -> Idle;");
        let lost = if length < 7 { format!("q.losses = removed {}", 7 - length) } else { String::new() };
        let expect = format!("q.length = {length}\nq.highwater_length = {length}");
        check_losses(&first, &second, SHORT, (&expect, &lost));
    }
    // Delayed packets are kept, too.
    for class in ["DelayUnqueue(1s)", "LinkUnqueue(1s, 1Gbps)"] {
        let config = |count| {
            format!(
                "InfiniteSource(LIMIT {count}) -> SetTimestamp(FIRST false) -> Queue(50) -> d :: {class}
                 -> c :: Counter -> Discard;"
            )
        };
        let second = config(1);
        check(&config(3), &second, Duration::from_secs(3), "c.count = 4");
    }
}

#[test]
fn tables_and_counts_are_kept() {
    let flow =
        "InfiniteSource(LENGTH 20, LIMIT 3) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53) -> SetTimestamp(1)";
    for (chain, expect) in [
        ("c :: Counter", "c.count = 6"),
        ("a :: AggregateIP(ip src) -> n :: AggregateCounter", "n.nagg = 1\nn.count = 6"),
        ("f :: AggregateIPFlows -> n :: AggregateCounter", "n.nagg = 1\nn.count = 6"),
    ] {
        let config = format!("{flow} -> {chain} -> Discard;");
        check(&config, &config, SHORT, expect);
    }
    let insert = "t :: ARPTable; Script(write t.insert 10.0.0.9 00:00:00:00:00:09);";
    check(insert, "t :: ARPTable;", SHORT, "t.count = 1");
    let learn =
        "InfiniteSource(DATA \\<020000000001 020000000002 0800>, LIMIT 1) -> s :: EtherSwitch; Idle -> [1] s;
        s[0] -> Discard; s[1] -> flooded :: Counter -> Discard;";
    let answer =
        "Idle -> s :: EtherSwitch; InfiniteSource(DATA \\<020000000002 020000000001 0800>, LIMIT 1) -> [1] s;
        s[0] -> known :: Counter -> Discard; s[1] -> flooded :: Counter -> Discard;";
    check(learn, answer, SHORT, "flooded.count = 1\nknown.count = 1");
}
