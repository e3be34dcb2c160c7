//! A launcher that is killed: boxes and traffic go on, and the next launcher adopts their fabric.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command, Stdio};
use support::planes::{Planes, is_running, until};
use test_support::{Capability, require, skip};

/// Counts packets, so that a test sees whether the box goes on.
const COUNTER: &str = "RatedSource(RATE 1000, LENGTH 64) -> c :: Counter -> Discard;\n";

/// What is reported when the next launcher has the fabric.
const ADOPTED: &str = "another launcher runs, and has adopted the fabrics of the one before";

/// Creates a box `fw` that counts.
fn create_box(planes: &Planes) {
    let file = planes.file("fw.click", COUNTER);
    planes.check(&["create", "fw", &file, "--sandbox", "process"], 0, &["fw runs"]);
    until("the first packet", || planes.number("fw/c.count") > 0);
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(process.cast_signed()).expect("a process"), Signal::KILL).expect("a signal");
}

/// How often something was reported.
fn count(planes: &Planes, event: &str) -> usize {
    planes.check(&["events"], 0, &[]).matches(event).count()
}

/// Kills the launcher, and waits until the next one has adopted the fabric.
fn replace_launcher(planes: &Planes) {
    let (launcher, before) = (planes.launcher().expect("a launcher"), count(planes, ADOPTED));
    kill(launcher);
    until("another launcher", || count(planes, ADOPTED) > before);
    assert!(planes.launcher().is_some_and(|another| another != launcher));
}

/// A spare is a whole fabric, which no launcher but its own knows.
#[test]
fn a_spare_takes_over_or_ends_with_its_launcher() {
    let planes = Planes::new("spare");
    let mut daemon = planes.start();
    create_box(&planes);
    until("a spare", || planes.spare().is_some());
    let spare = planes.spare().expect("a spare");
    kill(planes.fabric().expect("a fabric"));
    until("the fabric is rebuilt", || count(&planes, "the fabric was restarted with all boxes") > 0);
    // The launcher does not wait for long until it knows the signal.
    let known = count(&planes, "the fabric was ended by signal 9");
    assert_eq!(
        known + count(&planes, "the fabric was killed or crashed"),
        1,
        "{}",
        planes.check(&["events"], 0, &[])
    );
    assert_eq!(planes.fabric(), Some(spare));
    until("packets after the restart", || planes.number("fw/c.count") > 0);
    until("another spare", || planes.spare().is_some_and(|other| other != spare));
    let unused = planes.spare().expect("a spare");
    replace_launcher(&planes);
    until("the unused spare has ended", || !is_running(unused));
    assert!(is_running(spare));
    until("a spare of the next launcher", || planes.spare().is_some());
    let last = planes.spare().expect("a spare");
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    until("all have ended", || !is_running(spare) && !is_running(last));
    daemon.wait().expect("an end");
}

#[test]
fn boxes_go_on_when_their_launcher_is_killed() {
    let planes = Planes::new("adopt");
    let mut daemon = planes.start();
    create_box(&planes);
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let fabric = planes.fabric().expect("a fabric");
    let mut last = 0;
    for round in 0..3 {
        replace_launcher(&planes);
        assert!(is_running(fabric));
        let counted = planes.number("fw/c.count");
        assert!(counted > last, "the box goes on");
        last = counted;
        // The fabric and the new launcher do everything.
        let name = format!("other{round}");
        planes.check(&["create", &name, &planes.path("fw.click"), "--sandbox", "process"], 0, &[]);
        let capture = planes.path(&format!("{round}.pcap"));
        let port = format!("rec{round}");
        planes.check(&["port", "add", "lan", &port, "--driver", "pcap", "--write", &capture], 0, &[]);
        planes.check(&["fabric", "drain"], 0, &["fw"]);
        planes.check(&["fabric", "drain", "--cancel"], 0, &[]);
    }
    assert_eq!(count(&planes, "the launcher has ended; boxes go on"), 3);
    assert_eq!(count(&planes, "fabric_lost"), 0);
    // A fabric that dies later is built again, with the recordings that the first launcher created.
    kill(fabric);
    until("another fabric", || count(&planes, "the fabric was restarted with all boxes") > 0);
    // Its launcher is not its parent, and so does not know its exit status.
    assert_eq!(count(&planes, "the fabric was killed or crashed"), 1);
    until("packets after the restart", || planes.number("fw/c.count") > 0);
    let events = planes.check(&["events"], 0, &[]);
    assert!(!events.contains("does not work") && !events.contains("not be restored"), "{events}");
    let second = planes.fabric().expect("a fabric");
    // An adopted fabric is replaced on request.
    replace_launcher(&planes);
    assert!(is_running(second));
    planes.check(&["fabric", "restart", "--force"], 0, &["4 boxes were away for"]);
    assert!(!is_running(second));
    // The request to end everything comes before anybody has noticed.
    let third = planes.fabric().expect("a fabric");
    kill(planes.launcher().expect("a launcher"));
    planes.check(&["daemon", "stop", "--all"], 0, &["the daemon and all boxes have ended"]);
    assert!(daemon.wait().expect("an end").success());
    until("the end of everything", || !is_running(third) && planes.launcher().is_none());
}

#[test]
fn boxes_go_on_when_launcher_and_daemon_are_killed() {
    let planes = Planes::new("adopt-both");
    let mut daemon = planes.start();
    create_box(&planes);
    let fabric = planes.fabric().expect("a fabric");
    let mut last = 0;
    for is_launcher_first in [true, false] {
        let launcher = planes.launcher().expect("a launcher");
        let order = if is_launcher_first { [launcher, daemon.id()] } else { [daemon.id(), launcher] };
        order.into_iter().for_each(kill);
        daemon.wait().expect("an end");
        daemon = planes.start();
        assert!(is_running(fabric));
        let counted = planes.number("fw/c.count");
        assert!(counted > last, "the box goes on");
        last = counted;
        planes.check(&["fabric", "drain"], 0, &["1 box still runs"]);
        planes.check(&["fabric", "drain", "--cancel"], 0, &[]);
    }
    // If no launcher comes, the box must end too.
    let launcher = planes.launcher().expect("a launcher");
    [launcher, daemon.id()].into_iter().for_each(kill);
    daemon.wait().expect("an end");
    until("the end of the fabric", || !is_running(fabric));
}

/// A launcher of a service manager, which starts it again.
#[test]
fn a_daemon_waits_for_the_launcher_of_a_service_manager() {
    let planes = Planes::new("adopt-service");
    let socket = planes.path("launcher.sock");
    let start_launcher = || -> Child {
        let mut command = Command::new(&planes.program);
        command.args(["launcher", "--stay", "--json", "--socket", &socket]).env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a launcher")
    };
    let mut launcher = start_launcher();
    until("the launcher", || fs::exists(&socket).is_ok_and(|exists| exists));
    let store = planes.path("store");
    let mut daemon = planes.start_with(&["--store", &store, "--launcher", &socket, "--expect-launcher"]);
    create_box(&planes);
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let fabric = planes.fabric().expect("a fabric");
    launcher.kill().expect("a signal");
    launcher.wait().expect("an end");
    std::thread::scope(|scope| {
        // A request that needs the launcher waits for the next one.
        let capture = planes.path("waits.pcap");
        let add = ["port", "add", "lan", "rec", "--driver", "pcap", "--write", &capture].map(String::from);
        let planes = &planes;
        scope.spawn(move || planes.check(&add.each_ref().map(String::as_str), 0, &[]));
        std::thread::sleep(std::time::Duration::from_millis(300));
        launcher = start_launcher();
    });
    until("another launcher", || count(&planes, ADOPTED) == 1);
    assert!(is_running(fabric) && planes.number("fw/c.count") > 0);
    // One that stays away is reported, and the boxes go on.
    launcher.kill().expect("a signal");
    launcher.wait().expect("an end");
    until("a report", || count(&planes, "the launcher has ended; no other one runs") == 1);
    assert!(is_running(fabric));
    launcher = start_launcher();
    until("another launcher", || count(&planes, ADOPTED) == 2);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
    until("the end of the fabric", || !is_running(fabric));
    let pid = Pid::from_raw(launcher.id().cast_signed()).expect("a process");
    kill_process(pid, Signal::TERM).expect("a signal");
    assert!(launcher.wait().expect("an end").success());
}

#[test]
fn a_tap_outlives_launcher_and_fabric() {
    if !require(Capability::Root) {
        return;
    }
    let planes = Planes::new("adopt-tap");
    let mut daemon = planes.start();
    let device = format!("cba{}", std::process::id());
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let (code, text) = planes.run(&["port", "add", "lan", "tap", "--driver", "tap", "--device", &device]);
    if code != 0 {
        planes.check(&["daemon", "stop", "--all"], 0, &[]);
        let _ = daemon.wait();
        return skip(Capability::Root, format!("TAP device: {text}"));
    }
    let index = || fs::read_to_string(format!("/sys/class/net/{device}/ifindex")).ok();
    let (first, fabric) = (index(), planes.fabric().expect("a fabric"));
    assert!(first.is_some());
    replace_launcher(&planes);
    assert_eq!(index(), first);
    kill(fabric);
    until("another fabric", || count(&planes, "the fabric was restarted with all boxes") > 0);
    assert_eq!(index(), first, "the device is still there");
    let events = planes.check(&["events"], 0, &[]);
    assert!(!events.contains("does not work"), "{events}");
    // The launcher lets go of a removed one.
    planes.check(&["port", "rm", "lan", "tap"], 0, &[]);
    until("the end of the device", || index().is_none());
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}
