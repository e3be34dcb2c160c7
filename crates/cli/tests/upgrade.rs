//! `clickbox upgrade`, with a daemon, a launcher and a fabric as processes of their own.

mod support;

use api::client::{Address, Client, Credentials};
use api::operation;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::planes::{Planes, is_running, until};

/// Packets that one box sends to another, and their rate.
const PACKETS: u64 = 12_000;
const RATE: u64 = 4000;

/// The longest time between the old daemon's answer and a handler's value from the new one, in an unoptimised build, in the fastest
/// of several replacements: a loaded machine delays some. The promise is 100 ms.
const AWAY_MS: f64 = 2000.0;

/// The program that runs the test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_clickbox");

fn pid(planes: &Planes) -> u32 {
    let client = Client::new(Address::Unix(planes.path("socket").into()), &Credentials::default());
    client.expect("a client").ask(&operation::HOST, &[]).expect("a daemon").pid
}

/// Writes an executable script.
fn script(planes: &Planes, name: &str, text: &str) -> String {
    let path = planes.file(name, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

/// A script that describes itself like this program, and does something else as a daemon.
fn impostor(planes: &Planes, name: &str, as_daemon: &str) -> String {
    let text = format!("#!/bin/sh\n[ \"$1\" = upgrade ] && exec {PROGRAM} \"$@\"\n{as_daemon}\n");
    script(planes, name, &text)
}

#[test]
fn a_daemon_is_replaced_under_traffic() {
    let planes = Planes::new("upgrade");
    let mut daemon = planes.start();
    let fabric = planes.fabric().expect("a fabric");
    let sink = planes.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;\n");
    let source = planes.file(
        "source.click",
        &format!("RatedSource(RATE {RATE}, LIMIT {PACKETS}, LENGTH 64) -> c :: Counter -> ToDevice(0);\n"),
    );
    planes.check(&["create", "sink", &sink, "--sandbox", "process", "--attach", "pipe:p"], 0, &[]);
    planes.check(&["create", "source", &source, "--sandbox", "process", "--attach", "pipe:p"], 0, &[]);
    until("the first packet", || planes.number("sink/c.count") > 0);
    let mut process = daemon.id();
    assert_eq!(pid(&planes), process);
    // Another file, as a package manager leaves it.
    let copy = planes.path("clickbox-2");
    std::fs::copy(PROGRAM, &copy).expect("a copy");
    let mut away = Vec::new();
    for program in [None, Some(copy.as_str()), None] {
        let seen = planes.number("sink/c.count");
        let arguments = [&["upgrade"], program.as_slice()].concat();
        let done = planes.json(&arguments);
        assert_eq!(done["running"], 2);
        away.push(done["away_ms"].as_f64().expect("a time"));
        assert!(planes.number("sink/c.count") >= seen);
        assert_ne!(pid(&planes), process);
        until("the end of the old daemon", || !is_running(process) || process == daemon.id());
        process = pid(&planes);
        assert_eq!(planes.fabric(), Some(fabric));
    }
    assert!(away.iter().any(|time| *time < AWAY_MS), "{away:?}");
    assert!(daemon.wait().expect("an end").success());
    // The program that was named stays.
    let executed = std::fs::read_link(format!("/proc/{process}/exe")).expect("a program");
    assert_eq!(executed, Path::new(&copy));
    until("the last packet", || planes.number("source/c.count") == PACKETS);
    until("all packets", || planes.number("sink/c.count") == PACKETS);
    let events = planes.check(&["events"], 0, &["was replaced by"]);
    let numbers: Vec<u64> = planes
        .check(&["events", "--json"], 0, &[])
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?["sequence"].as_u64())
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert_eq!(events.matches("was replaced by").count(), 3, "{events}");
    // The socket is still the daemon's, and its lock too.
    planes.check(&["daemon", "--socket", &planes.path("socket"), "--no-store"], 1, &["another daemon"]);
    planes.check(&["daemon", "stop", "--all"], 0, &["have ended"]);
    assert!(!Path::new(&planes.path("socket")).exists());
}

#[test]
fn a_daemon_goes_on_if_it_cannot_be_replaced() {
    let planes = Planes::new("no-upgrade");
    let mut daemon = planes.start();
    let file = planes.file("fw.click", "RatedSource(RATE 1000, LENGTH 64) -> c :: Counter -> Discard;\n");
    planes.check(&["create", "fw", &file, "--sandbox", "process"], 0, &[]);
    let goes_on = || {
        assert_eq!(pid(&planes), daemon.id());
        planes.number("fw/c.count")
    };
    planes.check(&["upgrade", "/nowhere/clickbox"], 5, &["/nowhere/clickbox can't be read"]);
    planes.check(&["upgrade", &file], 5, &["can't be executed"]);
    let other = script(&planes, "other", "#!/bin/sh\necho hello\n");
    planes.check(&["upgrade", &other], 5, &["is not a version of clickbox that can take over"]);
    // It describes itself as this program does, but for one number.
    let describing = |name: &str, number: u16| {
        let change = format!("s/\"{name}\":[0-9]*/\"{name}\":{number}/");
        script(&planes, "describing", &format!("#!/bin/sh\n{PROGRAM} \"$@\" | sed '{change}'\n"))
    };
    for (name, number, refusal) in [
        ("store_format", 1, "reads stores up to format 1"),
        ("fabric_protocol", 77, "version 77 of the fabric's protocol"),
        ("launcher_protocol", 77, "version 77 of the launcher's protocol"),
    ] {
        planes.check(&["upgrade", &describing(name, number)], 5, &[refusal]);
    }
    let open = script(&planes, "open", "#!/bin/sh\n");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("permissions");
    planes.check(&["upgrade", &open], 5, &["only root and the daemon's user can change"]);
    let before = goes_on();
    // It passes all checks, and then fails.
    let failing = impostor(&planes, "failing", "exit 3");
    planes.check(&["upgrade", &failing], 1, &["was not replaced", "ended with status 3"]);
    assert!(goes_on() >= before);
    let killed = impostor(&planes, "killed", "kill -9 $$");
    planes.check(&["upgrade", &killed], 1, &["was ended by a signal"]);
    assert!(goes_on() >= before);
    planes.check(&["events"], 0, &["was not replaced"]);
    // After failures, an upgrade succeeds.
    planes.check(&["upgrade"], 0, &["1 box went on"]);
    assert!(daemon.wait().expect("an end").success());
    assert!(planes.number("fw/c.count") >= before);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
}

#[test]
fn a_daemon_without_a_store_is_not_replaced() {
    let planes = Planes::new("upgrade-no-store");
    let mut daemon = planes.start_with(&["--no-store"]);
    planes.check(&["upgrade"], 5, &["its boxes end with it"]);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

/// A killed daemon leaves no helper that holds its socket or its lock.
#[test]
fn a_killed_daemon_is_started_again() {
    let planes = Planes::new("upgrade-killed");
    let mut daemon = planes.start();
    kill_process(Pid::from_child(&daemon), Signal::KILL).expect("a signal");
    daemon.wait().expect("an end");
    let mut daemon = planes.start();
    planes.check(&["upgrade"], 0, &["the daemon is now clickbox"]);
    assert!(daemon.wait().expect("an end").success());
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
}
