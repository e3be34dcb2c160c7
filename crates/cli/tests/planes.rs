//! Stopping, draining, restarting and upgrading daemon, fabric and launcher, each a process of its own.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use support::planes::{Planes, is_running, until};

/// Counts packets, so that a test sees whether the box goes on.
const COUNTER: &str = "RatedSource(RATE 1000, LENGTH 64) -> c :: Counter -> Discard;\n";

/// A daemon with a box `fw` that counts.
fn with_box(name: &str) -> (Planes, std::process::Child) {
    let planes = Planes::new(name);
    let daemon = planes.start();
    let file = planes.file("fw.click", COUNTER);
    planes.check(&["create", "fw", &file, "--sandbox", "process"], 0, &["fw runs"]);
    until("the first packet", || planes.number("fw/c.count") > 0);
    (planes, daemon)
}

#[test]
fn a_daemon_that_is_stopped_leaves_the_boxes() {
    let (planes, mut daemon) = with_box("stop");
    let fabric = planes.fabric().expect("a fabric");
    let before = planes.number("fw/c.count");
    let stopped = planes.json(&["daemon", "stop"]);
    assert_eq!(stopped["daemon"], daemon.id());
    assert_eq!((&stopped["running"], &stopped["ends_boxes"]), (&1.into(), &false.into()));
    assert_eq!(stopped["ended"], true);
    assert!(daemon.wait().expect("an end").success());
    planes.check(&["ps"], 3, &["no daemon is running"]);
    planes.check(&["daemon", "stop"], 3, &["no daemon is running"]);
    assert_eq!(planes.fabric(), Some(fabric));
    let mut daemon = planes.start();
    assert_eq!(planes.fabric(), Some(fabric));
    assert!(planes.number("fw/c.count") > before);
    planes.check(&["daemon", "stop"], 0, &["the daemon has ended; 1 box goes on"]);
    assert!(daemon.wait().expect("an end").success());
}

#[test]
fn everything_is_stopped_and_comes_back() {
    let (planes, mut daemon) = with_box("stop-all");
    let (fabric, launcher) = (planes.fabric().expect("a fabric"), planes.launcher().expect("a launcher"));
    planes.check(&["daemon", "stop", "--all"], 0, &["the daemon and all boxes have ended"]);
    assert!(daemon.wait().expect("an end").success());
    assert!(!is_running(fabric) && !is_running(launcher));
    let mut daemon = planes.start();
    until("packets of the restored box", || planes.number("fw/c.count") > 0);
    // The boxes of a daemon that has ended are stopped too.
    planes.check(&["daemon", "stop"], 0, &["1 box goes on"]);
    assert!(daemon.wait().expect("an end").success());
    let (fabric, launcher) = (planes.fabric().expect("a fabric"), planes.launcher().expect("a launcher"));
    let socket = planes.path("store.launcher");
    let nothing = "no daemon was running; the launcher and all boxes have ended";
    planes.check(&["daemon", "stop", "--all", "--launcher", &socket], 0, &[nothing]);
    assert!(!is_running(fabric) && !is_running(launcher));
    planes.check(&["daemon", "stop", "--all", "--launcher", &socket], 3, &["no daemon is running"]);
}

/// SIGTERM, from a service manager, ends the daemon only; Ctrl-C ends everything.
#[test]
fn a_termination_ends_the_daemon_and_an_interrupt_everything() {
    let (planes, mut daemon) = with_box("signals");
    let (fabric, launcher) = (planes.fabric().expect("a fabric"), planes.launcher().expect("a launcher"));
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("a signal");
    assert!(daemon.wait().expect("an end").success());
    let mut daemon = planes.start();
    assert_eq!((planes.fabric(), planes.launcher()), (Some(fabric), Some(launcher)));
    kill_process(Pid::from_child(&daemon), Signal::INT).expect("a signal");
    assert!(daemon.wait().expect("an end").success());
    until("the end of fabric and launcher", || !is_running(fabric) && !is_running(launcher));
}

#[test]
fn boxes_of_a_daemon_without_a_store_end_with_it() {
    let planes = Planes::new("stop-no-store");
    let mut daemon = planes.start_with(&["--no-store"]);
    let fabric = planes.fabric().expect("a fabric");
    planes.check(&["daemon", "stop"], 0, &["the daemon and all boxes have ended"]);
    assert!(daemon.wait().expect("an end").success());
    until("the end of the fabric", || !is_running(fabric));
    // Its launcher ends when it is no longer used.
    planes.check(&["daemon", "stop", "--all", "--launcher", &planes.path("socket.launcher")], 0, &[]);
}

#[test]
fn a_drained_fabric_takes_no_new_boxes() {
    let (planes, mut daemon) = with_box("drain");
    let file = planes.path("fw.click");
    planes.check(&["fabric", "drain"], 0, &["takes no new boxes", "1 box still runs: fw"]);
    let refused = ["is drained", "clickbox fabric drain --cancel"];
    planes.check(&["create", "other", &file, "--sandbox", "process"], 6, &refused);
    planes.check(&["restart", "fw"], 6, &refused);
    let stack =
        planes.file("edge.toml", "[boxes.new]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\n");
    planes.check(&["up", &stack], 6, &refused);
    assert!(planes.number("fw/c.count") > 0);
    // A crashed box restarts, and changes of boxes that run are fine.
    planes.check(&["kill", "fw"], 0, &["fw was killed, and restarts"]);
    until("the restart", || planes.json(&["show", "fw"])["state"] == "running");
    planes.check(&["reload", "fw", &file], 0, &[]);
    planes.check(&["stop", "fw"], 0, &[]);
    planes.check(&["start", "fw"], 6, &refused);
    planes.check(&["doctor"], 0, &["the fabric is drained"]);
    // The next daemon goes on with it.
    planes.check(&["daemon", "stop"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
    let mut daemon = planes.start();
    planes.check(&["start", "fw"], 6, &refused);
    let status = planes.json(&["fabric", "drain", "--cancel"]);
    assert_eq!((&status["draining"], status["running"].as_array().map(Vec::len)), (&false.into(), Some(0)));
    planes.check(&["start", "fw"], 0, &["fw is running"]);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

#[test]
fn a_fabric_is_restarted_with_all_boxes() {
    let (planes, mut daemon) = with_box("restart");
    let file = planes.path("fw.click");
    planes.check(&["switch", "create", "lan"], 0, &[]);
    planes.check(&["create", "other", &file, "--sandbox", "process", "--attach", "lan"], 0, &[]);
    planes.check(&["create", "still", &file, "--sandbox", "process"], 0, &[]);
    planes.check(&["stop", "still"], 0, &[]);
    let (fabric, launcher) = (planes.fabric().expect("a fabric"), planes.launcher());
    planes.check(
        &["fabric", "restart"],
        6,
        &["interrupts 2 boxes that run", "add --force to restart it anyway"],
    );
    assert_eq!(planes.fabric(), Some(fabric));
    planes.check(&["fabric", "drain"], 0, &[]);
    let done = planes.json(&["fabric", "restart", "--force"]);
    assert_eq!(done["boxes"], serde_json::json!(["fw", "other"]));
    assert_eq!(done["missing"], serde_json::json!([]));
    assert!(done["away_ms"].as_f64().is_some_and(|away| away > 0.0));
    assert!(!is_running(fabric) && planes.fabric().is_some_and(|new| new != fabric));
    assert_eq!(planes.launcher(), launcher);
    until("packets after the restart", || planes.number("fw/c.count") > 0);
    planes.check(&["port", "ls", "lan"], 0, &["other.0"]);
    assert_eq!(planes.json(&["show", "still"])["state"], "stopped");
    let events = planes.check(&["events"], 0, &["the fabric was restarted on request", "takes new boxes"]);
    assert!(!events.contains("the fabric has ended"), "{events}");
    // What the restart lets in again.
    planes.check(&["start", "still"], 0, &[]);
    planes.check(&["fabric", "restart", "--force"], 0, &["3 boxes were away for"]);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

#[test]
fn a_fabric_is_started_by_a_launcher_only() {
    let planes = Planes::new("by-hand");
    planes.check(&["fabric"], 1, &["a launcher must start the fabric"]);
}
