//! The commands of boxes against a daemon of the test's own, with boxes in processes: what a user types, and what comes of
//! it.

mod support;

use std::process::{Command, Stdio};
use std::time::Instant;
use support::{Daemon, PATIENCE};

const FIREWALL: &str = "source :: InfiniteSource(LIMIT 5) -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53)
    -> filter :: IPFilter(allow all) -> c :: Counter -> Discard;\n";

#[test]
fn a_box_from_its_creation_to_its_end() {
    let daemon = Daemon::start("life");
    let file = daemon.file("fw.click", FIREWALL);
    daemon.check(&["ps"], 0, &["clickbox create"]);
    daemon.check(
        &["create", "fw", &file, "--sandbox", "process", "--restart", "on-failure"],
        0,
        &["fw runs"],
    );
    daemon.check(&["create", "fw", &file, "--sandbox", "process"], 6, &["fw"]);
    daemon.check(&["ps"], 0, &["fw", "running", "process"]);
    daemon.check(&["top"], 0, &["1 boxes, 1 running", "fw"]);
    daemon.until(&["read", "fw/c.count"], "5");

    daemon.check(&["handlers", "fw", "c"], 0, &["fw/c.count", "read"]);
    daemon.check(&["write", "fw/filter.rules", "deny udp dst port 53, allow all"], 0, &[]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny udp dst port 53, allow all"]);
    daemon.check(&["write", "fw/filter.rules", "allow nonsense"], 5, &["nonsense"]);
    daemon.check(&["read", "fw/nothing.count"], 4, &["nothing"]);
    daemon.check(&["read", "nobody/c.count"], 4, &["nobody"]);

    // The count is carried over, a mistake changes nothing.
    let better = daemon.file("better.click", &FIREWALL.replace("allow all", "deny all"));
    daemon.check(&["reload", "fw", &better], 0, &["main is swapped, for the 1st time"]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny all"]);
    let wrong = daemon.file("wrong.click", "Idle -> Cuonter -> Discard;\n");
    daemon.check(&["reload", "fw", &wrong], 5, &["Idle -> Cuonter -> Discard;", "^^^^^^^", "Counter"]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny all"]);
    daemon.check(&["create", "other", &wrong, "--sandbox", "process"], 5, &["Cuonter"]);

    let second = daemon.file("second.click", "i :: Idle -> Discard; Script(print \"hello\");\n");
    daemon.check(&["install", "fw", &format!("second={second}")], 0, &["second is installed"]);
    daemon.check(&["read", "fw/second:i.class"], 0, &["Idle"]);
    daemon.until(&["logs", "fw"], "second: hello");
    daemon.check(&["uninstall", "fw", "second"], 0, &[]);
    daemon.check(&["read", "fw/second:i.class"], 4, &["second"]);

    daemon.check(&["suspend", "fw"], 0, &["fw is suspended"]);
    daemon.check(&["resume", "fw"], 0, &["fw is running"]);
    daemon.check(&["kill", "fw"], 0, &["fw is"]);
    daemon.until(&["show", "fw"], "1 restarts");
    daemon.until(&["ps"], "running");
    daemon.check(&["stop", "fw"], 0, &["fw is stopped"]);
    daemon.check(&["read", "fw/c.count"], 6, &["fw"]);
    daemon.check(&["start", "fw"], 0, &["fw is running"]);
    daemon.check(&["restart", "fw"], 0, &["fw is running"]);
    daemon.check(&["events"], 0, &["box/fw"]);
    daemon.check(&["rm", "fw"], 0, &[]);
    daemon.check(&["rm", "fw"], 4, &["fw"]);
    daemon.check(&["doctor"], 0, &["Boxes can run here."]);
}

/// What a box writes comes out as other tools read it, and its name is no path.
#[test]
fn what_a_box_writes_is_fetched() {
    let daemon = Daemon::start("files");
    let file = daemon.file(
        "dump.click",
        "i :: InfiniteSource(LENGTH 60, LIMIT 1000, BURST 7) -> ToDump(../out.pcap, UNBUFFERED true);\n",
    );
    daemon.check(&["create", "fw", &file, "--sandbox", "process"], 0, &[]);
    let size = 24 + 1000 * (16 + 60);
    daemon.until(&["files", "fw"], "76,024");
    assert_eq!(daemon.json(&["files", "fw"])[0]["name"], "../out.pcap");
    let copy = daemon.folder.join("copy.pcap");
    let path = copy.to_str().expect("a plain path");
    daemon.check(&["files", "fw", "../out.pcap", "-w", path], 0, &[]);
    assert_eq!(std::fs::read(&copy).expect("the copy").len(), size);
    assert!(!daemon.folder.join("../out.pcap").exists());
    let read = [
        "run",
        "-q",
        "-e",
        &format!("FromDump({path}, STOP true) -> c :: Counter -> Discard"),
        "--handler",
        "c.count",
    ];
    daemon.check(&read, 0, &["1000"]);
    daemon.check(&["files", "fw", "other.pcap"], 4, &["clickbox files fw"]);
    daemon.check(&["files", "fw", "-w", path], 2, &[]);
    daemon.check(&["logs", "fw"], 0, &["the box writes a file ../out.pcap"]);
    // It is gone with the box.
    daemon.check(&["restart", "fw"], 0, &[]);
    daemon.until(&["files", "fw"], "76,024");
    daemon.check(&["rm", "fw"], 0, &[]);
    daemon.check(&["files", "fw"], 4, &["no box fw"]);
}

#[test]
fn boxes_run_in_threads_for_development() {
    let daemon = Daemon::start("threads");
    let file = daemon.file("fw.click", FIREWALL);
    daemon.check(&["create", "fw", &file, "--sandbox", "none", "--restart", "always"], 0, &["fw runs"]);
    daemon.until(&["read", "fw/c.count"], "5");
    daemon.check(&["kill", "fw"], 0, &["fw is"]);
    daemon.until(&["show", "fw"], "1 restarts");
    daemon.until(&["read", "fw/c.count"], "5");
    daemon.check(&["rm", "fw"], 0, &[]);
}

#[test]
fn boxes_are_joined_by_switches() {
    let daemon = Daemon::start("switches");
    let source = daemon.file(
        "source.click",
        "RatedSource(DATA \\<020000000002 020000000001 0800 00>, LENGTH 64, RATE 1000) -> Queue(100) -> ToDevice(0);\n",
    );
    let sink = daemon.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;\n");
    daemon.check(&["switch", "create", "lan", "--mode", "static"], 0, &[]);
    daemon.check(&["create", "sink", &sink, "--sandbox", "process", "--attach", "lan"], 0, &[]);
    daemon.check(&["create", "source", &source, "--sandbox", "process", "--attach", "lan"], 0, &[]);
    daemon.check(&["port", "ls", "lan"], 0, &["sink.0", "source.0"]);
    daemon.check(&["address", "add", "lan", "02:00:00:00:00:02", "sink.0"], 0, &[]);
    daemon.check(&["address", "ls", "lan"], 0, &["02:00:00:00:00:02", "sink.0", "static"]);
    let begin = Instant::now();
    while daemon.check(&["read", "sink/c.count"], 0, &[]).trim().parse::<u64>().expect("a number") < 10 {
        assert!(begin.elapsed() < PATIENCE, "no packet comes through the switch");
    }
    let capture = daemon.folder.join("out.pcap");
    let path = capture.to_str().expect("a plain path");
    daemon.check(&["capture", "sink", "--port", "0", "--count", "3", "-w", path], 0, &[]);
    // A header, and three packets of 64 bytes, each with one of its own.
    assert_eq!(std::fs::read(&capture).expect("the capture").len(), 24 + 3 * (16 + 64));
    daemon.check(&["port", "add", "lan", "nowhere", "--driver", "null"], 0, &[]);
    daemon.check(&["port", "rm", "lan", "nowhere"], 0, &[]);
    daemon.check(&["port", "rm", "lan", "nowhere"], 4, &["nowhere"]);
    daemon.check(&["address", "rm", "lan", "02:00:00:00:00:02"], 0, &[]);
    daemon.check(&["switch", "rm", "lan"], 0, &[]);
    daemon.check(&["ps", "--quiet"], 0, &["sink", "source"]);
}

#[test]
fn a_stack_is_applied_changed_and_removed() {
    let daemon = Daemon::start("stack");
    daemon.file("fw.click", "FromDevice(0) -> c :: Counter -> Queue -> ToDevice(1);\n");
    let text = "chains = [[\"lan\", \"one\", \"two\"]]\n[switches.lan]\n\
         [boxes.one]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\n\
         [boxes.two]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\nattach = [\"-\"]\n";
    let file = daemon.file("edge.toml", text);
    daemon.check(&["diff", &file], 0, &["create", "box/one", "switch/lan"]);
    daemon.check(&["up", &file], 0, &["create", "box/one", "box/two", "switch/lan"]);
    daemon.check(&["up", &file], 0, &["everything is as it is to be"]);
    daemon.check(&["stacks"], 0, &["edge", "2", "1"]);
    daemon.check(&["ps"], 0, &["one", "two", "running"]);
    daemon.file("fw.click", "FromDevice(0) -> c :: Counter -> Queue(7) -> ToDevice(1);\n");
    daemon.check(&["diff", "--exit-code", &file], 1, &["reload", "box/one"]);
    daemon.check(&["up", &file], 0, &["reload"]);
    daemon.file("fw.click", "FromDevice(0) -> Cuonter;\n");
    daemon.check(&["up", &file], 5, &["Cuonter"]);
    daemon.check(&["down", "edge"], 0, &["remove", "box/one"]);
    daemon.check(&["ps"], 0, &["there are no boxes"]);
}

#[test]
fn one_socket_has_one_daemon() {
    let daemon = Daemon::start("one");
    let socket = daemon.folder.join("socket");
    daemon.check(
        &["daemon", "--no-store", "--socket", socket.to_str().expect("a plain path")],
        1,
        &["another daemon"],
    );
    daemon.check(&["daemon", "--listen", "127.0.0.1:0"], 2, &["certificate"]);
}

#[test]
fn the_demonstration_tells_what_became_of_each_packet() {
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["demo", "--seconds", "0", "--rate", "5000", "--sandbox", "process"])
        .stdin(Stdio::null())
        .output()
        .expect("the program ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let number = |line: &str| {
        let words = line.split_whitespace().rev();
        words.skip(2).find_map(|word| word.replace(',', "").parse::<u64>().ok())
    };
    let went_in = out.lines().find(|line| line.contains("the capture")).and_then(number);
    let sums: Vec<u64> = out.lines().filter(|line| line.contains("in all")).filter_map(number).collect();
    assert_eq!(went_in, Some(2500), "{out}");
    assert_eq!((sums.len(), sums.iter().sum::<u64>()), (2, 2500), "{out}");
    for text in ["firewall  runs", "the rule `deny udp dst port 53` stands before", "later it runs again"] {
        assert!(err.contains(text), "no {text:?} in: {err}");
    }
}
