//! Flows of a steering switch, from the command line to the packets in a box.

mod support;

use support::Daemon;

/// A flow's packets in the list of flows, by number.
fn packets(daemon: &Daemon, id: u64) -> Option<u64> {
    let flows = daemon.json(&["flow", "ls", "lan"]);
    flows.as_array()?.iter().find(|flow| flow["id"] == id)?["packets"].as_u64()
}

#[test]
fn a_user_steers_packets() {
    let daemon = Daemon::start("flows");
    daemon.check(&["switch", "create", "lan", "--mode", "steering"], 0, &[]);
    daemon.check(&["switch", "ls"], 0, &["lan", "steering"]);
    daemon.check(&["flow", "ls", "lan"], 0, &["no flows: it drops what no chain takes"]);
    let sink = daemon.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;\n");
    for name in ["web", "rest"] {
        daemon.check(&["create", name, &sink, "--sandbox", "process", "--attach", "lan"], 0, &[]);
    }
    daemon.check(&["flow", "add", "lan", "--output", "wbe.0"], 4, &["did you mean web.0?"]);
    let mistake = ["flow", "add", "lan", "--output", "web.0", "--match", "tcp dst prt 80"];
    let text = daemon.check(&mistake, 2, &["‘prt’ begins no condition", "condition:1:9", "tcp dst prt 80"]);
    // The caret is under the word.
    let at = |wanted: &str, part: &str| {
        text.lines().find(|line| line.contains(wanted)).and_then(|line| line.find(part)).expect("a line")
    };
    assert_eq!(at("^^^", "^^^"), at("tcp dst prt 80", "prt"), "{text}");
    daemon.check(&["flow", "add", "lan", "--output", "drop", "--idle", "0s"], 2, &["a time, such as 60s"]);
    let web = ["flow", "add", "lan", "--match", "udp dst port 80 or 443", "--output", "web.0"];
    daemon.check(&web, 0, &["flow 1 was added to switch lan"]);
    daemon.check(&web, 5, &["flow 1 matches the same frames"]);
    daemon.check(&["flow", "add", "lan", "--output", "rest.0"], 0, &[]);
    let short = ["flow", "add", "lan", "--match", "icmp", "--output", "drop", "--idle", "10m"];
    daemon.check(&short, 0, &[]);
    daemon.check(&["flow", "ls", "lan"], 0, &["udp dst port 80 or 443", "32768", "rest.0", "idle 10m"]);
    let source = daemon.file(
        "source.click",
        "elementclass Send { $port | InfiniteSource(LIMIT 50, DATA \\<0102>)
           -> UDPIPEncap(10.0.0.1, 9, 10.0.0.2, $port) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue(100)
           -> Unqueue -> output; }
         to :: ToDevice(0); Send(80) -> to; Send(443) -> to; Send(53) -> to;\n",
    );
    let attach = "lan,mac=02:00:00:00:00:01";
    daemon.check(&["create", "source", &source, "--sandbox", "process", "--attach", attach], 0, &[]);
    daemon.until(&["read", "web/c.count"], "100");
    daemon.until(&["read", "rest/c.count"], "50");
    assert_eq!(
        (packets(&daemon, 1), packets(&daemon, 2), packets(&daemon, 3)),
        (Some(100), Some(50), Some(0))
    );
    daemon.check(&["account"], 0, &["switch lan"]);
    // Each of the three kinds of packets was looked up in the tables once.
    let shown = daemon.json(&["switch", "show", "lan"]);
    let expected = serde_json::json!({
        "flows": 3, "controller_entries": 0, "lookups": 150, "cache_hits": 147, "cache_evictions": 0,
        "fragments_followed": 0, "fragments_unknown": 0, "lost_reports": 0
    });
    assert_eq!(shown["steering"], expected);
    daemon.check(&["switch", "show", "lan"], 0, &["LOOKUPS", "150", "98.0%"]);
    daemon.check(
        &["flow", "add", "lan", "--match", "icmp6", "--output", "drop", "--timeout", "1s"],
        0,
        &["flow 4"],
    );
    daemon.until(
        &["events"],
        "flow 4 of switch lan ended: its time of 1 s has passed; it had 0 packets, 0 bytes",
    );
    daemon.check(&["events", "--json"], 0, &["flow_ended", "switch/lan"]);
    daemon.check(&["flow", "rm", "lan", "1", "3"], 0, &[]);
    daemon.check(&["flow", "rm", "lan", "1"], 4, &["no flow 1"]);
    assert_eq!((packets(&daemon, 1), packets(&daemon, 2)), (None, Some(50)));
}
