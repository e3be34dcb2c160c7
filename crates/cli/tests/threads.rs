//! Several switch threads, as a user has them: all processes, with their filters, boxes of both kinds, and a fabric that is
//! killed.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use support::planes::{Planes, until};
use test_support::{Capability, require};

/// Sends packets of 300 flows to `mirror`, and counts those that come back.
const SOURCE: &str =
    "s :: FastUDPFlows(20000, 0, 60, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2, 300, 1000000,
    ACTIVE false) -> ToDevice(0);
FromDevice(0) -> r :: Counter -> Discard;\n";

/// Sends packets back.
const MIRROR: &str =
    "FromDevice(0) -> MarkIPHeader(14) -> EtherMirror -> IPMirror -> Queue(4096) -> ToDevice(0);\n";

/// The switch threads of a process, by their names.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("threads").flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<String> = names.map(|name| name.trim().into()).collect();
    names.retain(|name: &String| name.starts_with("switch"));
    names.sort();
    names
}

#[test]
fn a_daemon_runs_switches_in_several_threads() {
    for sandbox in ["process", "vm"] {
        if sandbox == "vm" && !require(Capability::Kvm) {
            continue;
        }
        let planes = Planes::new(&format!("threads-{sandbox}"));
        planes.check(&["daemon", "--switch-threads", "9"], 2, &["9", "1..=8"]);
        let store = planes.path("store");
        let mut daemon = planes.start_with(&["--store", &store, "--switch-threads", "2"]);
        planes.check(&["switch", "create", "lan"], 0, &[]);
        for (name, text, mac) in
            [("mirror", MIRROR, "02:00:00:00:00:02"), ("source", SOURCE, "02:00:00:00:00:01")]
        {
            let file = planes.file(&format!("{name}.click"), text);
            let attach = format!("lan,mac={mac}");
            let create = ["create", name, &file, "--sandbox", sandbox, "--ring", "2048", "--attach", &attach];
            planes.check(&create, 0, &["runs"]);
        }
        let exchange = || {
            let before = planes.number("source/r.count");
            planes.check(&["write", "source/s.limit", "1200"], 0, &[]);
            planes.check(&["write", "source/s.active", "true"], 0, &[]);
            until("all packets are back", || planes.number("source/r.count") == before + 1200);
            let account = planes.json(&["account"]);
            assert!(account.to_string().contains("lan"), "{account}");
            planes.check(&["account"], 0, &["switch lan"]);
        };
        exchange();
        let fabric = planes.fabric().expect("a fabric");
        assert_eq!(threads(fabric), ["switch", "switch 1"]);
        kill_process(Pid::from_raw(fabric.cast_signed()).expect("a process"), Signal::KILL)
            .expect("a signal");
        until("another fabric", || planes.fabric().is_some_and(|other| other != fabric));
        until("the fabric is rebuilt", || {
            planes.check(&["events"], 0, &[]).contains("the fabric was restarted with all boxes")
        });
        exchange();
        assert_eq!(threads(planes.fabric().expect("a fabric")), ["switch", "switch 1"]);
        planes.check(&["daemon", "stop", "--all"], 0, &[]);
        daemon.wait().expect("an end");
    }
}
