//! Functions that hand the state of their flows over when they leave.

use super::{Function, PYTHON_SDK, add_boxes_with, built, count, instances, port, published, send, ups};
use crate::support::{Daemon, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use test_support::{Capability, require};

/// What the source sends in turn.
const TURNS: u64 = 32;

/// The flows of the source. The last packets of a turn are errors about the first flows.
const FLOWS: u64 = 30;

/// The elements that make a packet of a flow, and the flow's client and port: UDP, pings between two hosts, a protocol without ports,
/// and ICMP messages that are neither pings nor errors.
fn flow(turn: u64) -> (String, String) {
    let udp = |flow: u64| format!("UDPIPEncap(10.0.1.{flow}, 1000, 10.9.0.1, 53)");
    match turn {
        0..12 => (udp(turn), format!("10.0.1.{turn}:1000")),
        12..22 => {
            (format!("ICMPPingEncap(10.0.1.200, 10.9.0.1, IDENTIFIER {turn})"), format!("10.0.1.200:{turn}"))
        }
        22..26 => (format!("IPEncap(47, 10.0.1.{turn}, 10.9.0.1)"), format!("10.0.1.{turn}:0")),
        26..FLOWS => (format!("IPEncap(1, 10.0.1.{turn}, 10.9.0.1)"), format!("10.0.1.{turn}:0")),
        _ => {
            let of = turn - FLOWS;
            (format!("{} -> ICMPError(10.0.8.8, timeexceeded)", udp(of)), flow(of).1)
        }
    }
}

/// Sends packets of all flows in turn when it is told to.
fn source() -> String {
    let mut text = "
        s :: RatedSource(LENGTH 18, RATE 1000, LIMIT 0, ACTIVE false) -> turns :: RoundRobinSwitch;
        all :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToDevice(0); FromDevice(0) -> Discard;\n"
        .to_string();
    for turn in 0..TURNS {
        writeln!(text, "turns[{turn}] -> {} -> all;", flow(turn).0).expect("a text");
    }
    text
}

/// Counts the packets of flows like the example `flows.c`.
const IN_PYTHON: &str = r#"
import clickbox_function as clickbox

flows, seen = clickbox.Flows(1000, lambda: [0]), []


def start(box):
    seen[:] = [box.counter("flows_seen")]


def track(box, packet):
    state = flows.state(clickbox.flow(packet)[0], box.now)
    seen[0].value += state[0] == 0
    state[0] += 1


def export_flow(box, flow):
    state = flows.take(flow)
    return state and state[0].to_bytes(8, "little")


def import_flow(box, flow, contents):
    flows.put(flow, [int.from_bytes(contents, "little")], box.now)


try:
    hand_over = clickbox.HandOver(1, lambda _: flows, export_flow, import_flow, size=8)
    clickbox.main(packet=track, start=start, hand_over=hand_over)
finally:
    for flow in list(flows):
        address, port = flow.smaller
        print(f"flow {'.'.join(map(str, address))}:{port} packets {flows.take(flow)[0]}")
"#;

/// A function that runs, and the file with what it prints.
struct Tracker(Function, PathBuf);

impl Tracker {
    fn join(daemon: &Daemon, mut command: Command, name: &str) -> Self {
        let path = daemon.folder.join(name);
        let command = command.env("IDLE", "600").stdout(File::create(&path).expect("a file"));
        Self(Function::start(daemon, command, "nf"), path)
    }

    fn terminate(&self) {
        kill_process(Pid::from_child(&self.0.0), Signal::TERM).expect("it runs");
    }

    /// Waits until it has left. Returns the packets of the flows that it still had, by client.
    fn flows(mut self) -> BTreeMap<String, u64> {
        assert!(self.0.0.wait().expect("it ends").success());
        let text = fs::read_to_string(&self.1).expect("what it printed");
        let flow = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let end = words.iter().find(|word| word.starts_with("10.0.1.")).expect("a client");
            let packets = words[words.iter().position(|word| *word == "packets").expect("packets") + 1];
            let packets = packets.split('+').map(|one| one.parse::<u64>().expect("a number")).sum();
            ((*end).to_string(), packets)
        };
        text.lines().map(flow).collect()
    }
}

/// Two trackers count the packets of flows. One leaves under traffic: the other one goes on counting where it was, and no packet is lost.
fn check(name: &str, first: Command, second: Command) {
    let daemon = Daemon::start_with(&format!("handover-{name}"), &["--switch-threads", "2"]);
    add_boxes_with(&daemon, &source(), &[]);
    daemon.check(&["service", "create", "nf", "--container"], 0, &["nf accepts functions"]);
    daemon.check(&["chain", "create", "web", "nf", "--from", "lan.source.0", "--to", "sink.0"], 0, &[]);
    let (first, second) = (Tracker::join(&daemon, first, "first"), Tracker::join(&daemon, second, "second"));
    // More than are sent until the second one has left.
    send(&daemon, 1_000_000);
    wait("packets pass", || count(&daemon, "sink/got.count") > 10 * TURNS);
    let moved = instances(&daemon, "nf")[1]["flows"].as_u64().expect("a number");
    assert!(moved > 4 && moved < FLOWS - 4, "{moved}");
    second.terminate();
    assert_eq!(second.flows(), BTreeMap::new(), "it has handed all of them over");
    let then = count(&daemon, "sink/got.count");
    wait("packets pass", || count(&daemon, "sink/got.count") > then + 10 * TURNS);
    daemon.check(&["write", "source/s.active", "false"], 0, &[]);
    let all = count(&daemon, "source/sent.count");
    wait("all packets arrive", || count(&daemon, "sink/got.count") == all);
    daemon.until(&["events"], "nf-2 left service nf: it left in order\n");
    let event = format!("instance nf-2 of service nf handed {moved} flows over to other instances in ");
    daemon.check(&["events"], 0, &[&event]);
    assert_eq!((ups(&daemon, "nf"), instances(&daemon, "nf")[0]["taken_over"].as_u64()), (1, Some(moved)));
    // No flow was new to the one that took it over.
    wait("counters are shown", || published(&daemon, "nf", 0, "flows_seen") == Some(FLOWS - moved));
    assert_eq!(published(&daemon, "nf", 1, "flows_seen"), Some(moved));
    first.terminate();
    let mut sent: BTreeMap<String, u64> = BTreeMap::new();
    for turn in 0..TURNS {
        *sent.entry(flow(turn).1).or_default() += all / TURNS + u64::from(turn < all % TURNS);
    }
    assert_eq!(first.flows(), sent);
    daemon.until(&["events"], "no other instance is up; flows go on without their state\n");
    let to: u64 = ["nf-1.0", "nf-2.0"]
        .map(|name| {
            let (from, to, drops) = port(&daemon, name);
            assert_eq!((from, drops), (to, serde_json::json!({})), "{name}");
            to
        })
        .iter()
        .sum();
    assert_eq!(to, all);
    assert_eq!(port(&daemon, "source.0"), (all, 0, serde_json::json!({})));
    daemon.check(&["account"], 0, &[]);
}

#[test]
fn a_tracker_goes_on_counting_where_another_one_was() {
    let tracker = || Command::new(built().join("flows"));
    check("c", tracker(), tracker());
}

#[test]
fn a_tracker_in_python_hands_its_flows_over() {
    if !require(Capability::Python) {
        return;
    }
    let script = built().join("tracker.py");
    fs::write(&script, IN_PYTHON).expect("a file");
    let tracker = || {
        let mut command = Command::new("python3");
        command.arg("-B").arg(&script).env("PYTHONPATH", PYTHON_SDK);
        command
    };
    check("python", tracker(), tracker());
}
