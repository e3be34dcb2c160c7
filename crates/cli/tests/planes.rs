//! Stopping, draining, restarting and upgrading daemon, fabric and launcher, each a process of its own.

mod support;

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
