//! A fabric for each owner, in processes of their own.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;
use support::{Daemon, TIMEOUT};

/// The fabrics' processes, by owner.
fn fabrics(daemon: &Daemon) -> BTreeMap<String, i32> {
    let report = daemon.json(&["doctor"]);
    let fabrics = report["daemon"]["fabrics"].as_array().expect("a list").iter();
    let entry = |fabric: &Value| {
        let owner = fabric["owner"].as_str().expect("an owner").to_string();
        (owner, fabric["pid"].as_i64().expect("a process") as i32)
    };
    fabrics.map(entry).collect()
}

/// Waits until many more packets have arrived.
fn passes(daemon: &Daemon) {
    let count = || daemon.run(&["read", "sink/c.count"]).1.trim().parse::<u64>().ok();
    let begin = Instant::now();
    let mut first = None;
    loop {
        let now = count();
        // A box that is just being restarted has no count, and then starts from zero.
        match (first, now) {
            (Some(before), Some(now)) if now > before + 500 => return,
            (None, _) => first = now,
            (Some(before), Some(now)) if now < before => first = Some(now),
            _ => {}
        }
        assert!(begin.elapsed() < TIMEOUT, "no packets: {now:?} after {first:?}");
    }
}

#[test]
fn each_owner_has_a_process_that_may_end_alone() {
    let options = ["--no-store", "--fabric-per-owner", "--fabric-share", "alice=200"];
    let daemon = Daemon::start_with("owner-fabrics", &options);
    let sink = daemon.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;");
    let source = "RatedSource(RATE 2000) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);";
    let source = daemon.file("source.click", source);
    daemon.check(&["switch", "create", "lan", "--owner", "alice", "--share-with", "bob"], 0, &[]);
    daemon.check(&["create", "sink", &sink, "--owner", "alice", "--attach", "lan"], 0, &[]);
    daemon.check(&["create", "source", &source, "--owner", "bob", "--attach", "lan,transparent"], 0, &[]);
    passes(&daemon);
    let before = fabrics(&daemon);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["alice", "bob", "default"]);
    daemon.check(&["switch", "show", "lan"], 0, &["from-bob"]);
    let started = daemon.json(&["show", "source"])["started"].clone();
    let of_alice = Pid::from_raw(before["alice"]).expect("a process");
    kill_process(of_alice, Signal::KILL).expect("a signal");
    daemon.until(&["events"], "the fabric of owner alice was restarted");
    passes(&daemon);
    let after = fabrics(&daemon);
    assert_ne!(after["alice"], before["alice"]);
    assert_eq!((after["bob"], after["default"]), (before["bob"], before["default"]));
    assert_eq!(daemon.json(&["show", "source"])["started"], started);
    let (code, text) = daemon.run(&["port", "add", "lan", "third", "--driver", "box", "--to", "source:0"]);
    assert!(code > 0 && text.contains("different owners"), "{code}: {text}");
}

/// Services and chains are in the fabric of their switch's owner. Packets of another owner's boxes pass them, and another fabric
/// gets them.
#[test]
fn services_are_in_the_fabric_of_their_owner() {
    let daemon = Daemon::start_with("owner-services", &["--no-store", "--fabric-per-owner"]);
    let sink = daemon.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;");
    let ids = daemon.file("ids.click", "FromDevice(0) -> c :: Counter -> ToNext;");
    let source =
        "s :: RatedSource(RATE 2000, LIMIT 1000, ACTIVE false) -> UDPIPEncap(10.0.0.1, 9, 10.0.0.2, 53)
        -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);";
    let source = daemon.file("source.click", source);
    let create = ["switch", "create", "lan", "--mode", "steering", "--owner", "alice", "--share-with", "bob"];
    daemon.check(&create, 0, &[]);
    let process = ["--sandbox", "process", "--ring", "2048"];
    let make = |words: &[&str]| daemon.check(&[words, &process].concat(), 0, &[]);
    make(&["create", "sink", &sink, "--owner", "alice", "--attach", "lan"]);
    make(&["create", "source", &source, "--owner", "bob", "--attach", "lan,transparent"]);
    make(&["service", "create", "ids", &ids, "--replicas", "2"]);
    assert_eq!(daemon.json(&["show", "ids-2"])["owner"], "alice");
    daemon.check(&["chain", "create", "web", "ids", "--from", "lan.from-bob", "--to", "sink.0"], 0, &[]);
    let sent = |packets: &str, instances: &str| {
        daemon.check(&["write", "source/s.limit", packets], 0, &[]);
        daemon.check(&["write", "source/s.active", "true"], 0, &[]);
        daemon.until(&["read", "sink/c.count"], "1000");
        let shown = daemon.json(&["service", "show", "ids"]);
        let all = shown["instances"].as_array().expect("instances");
        assert_eq!(all.iter().filter_map(|found| found["packets"].as_u64()).sum::<u64>(), 1000, "{shown}");
        assert_eq!(all.len().to_string(), instances);
        let account = daemon.json(&["account"]);
        for row in account["places"].as_array().expect("places") {
            assert!(row["difference"] == 0 || row["kind"] == "ended", "{row}");
        }
        let has = |kind: &str| {
            account["places"].as_array().is_some_and(|all| all.iter().any(|row| row["kind"] == kind))
        };
        assert!(["service", "chain", "proxy"].into_iter().all(has), "{account}");
    };
    sent("1000", "2");
    daemon.check(&["service", "scale", "ids", "3"], 0, &[]);
    let of_alice = Pid::from_raw(fabrics(&daemon)["alice"]).expect("a process");
    kill_process(of_alice, Signal::KILL).expect("a signal");
    daemon.until(&["events"], "the fabric of owner alice was restarted");
    daemon.until(&["service", "show", "ids"], "up");
    // Another fabric counts from zero, as its boxes do.
    daemon.until(&["switch", "show", "lan"], "from-bob");
    sent("2000", "3");
}
