//! What the daemon and its fabric may do: which system calls and capabilities they have.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Instant;
use support::{Daemon, TIMEOUT};
use test_support::{Capability, require, skip};

const CONFIGURATION: &str = "i :: InfiniteSource(LIMIT 3) -> c :: Counter -> Discard;\n";

/// The fields of `/proc/PID/task/TID/status` of each thread of a process.
fn threads(process: u32) -> Vec<BTreeMap<String, String>> {
    let fields = |text: String| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(":\t"));
        pairs.map(|(name, value)| (name.to_string(), value.trim().to_string())).collect()
    };
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("a process").flatten();
    tasks.filter_map(|task| Some(fields(fs::read_to_string(task.path().join("status")).ok()?))).collect()
}

/// The processes whose parent is this one.
fn children(process: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let processes = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |process: u32| -> Option<u32> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    processes.filter(|child| parent(*child) == Some(process)).collect()
}

/// The descendant of a process that was started with this command.
fn descendant(process: u32, command: &str) -> Option<u32> {
    let arguments = |process: u32| fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    children(process).into_iter().find_map(|child| match arguments(child).split('\0').nth(1) {
        Some(found) if found == command => Some(child),
        _ => descendant(child, command),
    })
}

/// Every thread of a process has a system call filter, no capabilities, and no way to new privileges.
fn check_confined(process: u32) {
    let threads = threads(process);
    assert!(threads.len() > 1);
    for thread in threads {
        let field = |name: &str| thread.get(name).map_or("", String::as_str);
        assert_eq!(field("Seccomp"), "2", "{thread:?}");
        assert_eq!(field("NoNewPrivs"), "1", "{thread:?}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(set), "0000000000000000", "{set}: {thread:?}");
        }
    }
}

#[test]
fn the_daemon_and_the_fabric_are_confined() {
    let daemon = Daemon::start("confined");
    let file = daemon.file("a.click", CONFIGURATION);
    for sandbox in ["process", "auto"] {
        daemon.check(&["create", sandbox, &file, "--sandbox", sandbox], 0, &[]);
        daemon.until(&["read", &format!("{sandbox}/c.count")], "3");
    }
    check_confined(descendant(daemon.child.id(), "fabric").expect("a fabric"));
    check_confined(daemon.child.id());
}

/// The daemon may not start programs, so another process does it.
#[test]
fn a_filtered_daemon_gets_another_launcher() {
    let daemon = Daemon::start("relaunch");
    let launcher = descendant(daemon.child.id(), "launcher").and_then(|starter| children(starter).pop());
    let launcher = launcher.expect("a launcher");
    kill_process(Pid::from_raw(launcher.cast_signed()).expect("a process"), Signal::KILL).expect("a signal");
    // A device is opened by the launcher.
    daemon.check(&["switch", "create", "lan"], 0, &[]);
    let capture = daemon.folder.join("new.pcap");
    let begin = Instant::now();
    let path = capture.to_str().expect("a plain path");
    let recording = ["port", "add", "lan", "rec", "--driver", "pcap", "--write", path];
    while daemon.run(&recording).0 != 0 {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", daemon.run(&recording));
    }
}

/// The fabrics of root are another user, so that boxes have a user namespace of their own. They can store what boxes write,
/// and read the memory of boxes to copy them.
#[test]
fn a_fabric_of_root_runs_boxes_as_another_user() {
    if !require(Capability::Root) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("clickbox-user-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let store = folder.join("store");
    let daemon = Daemon::start_with("user", &["--store", store.to_str().expect("a plain path")]);
    let text = "i :: InfiniteSource(LIMIT 3) -> c :: Counter -> ToDump(out.pcap, UNBUFFERED true);\n";
    let file = daemon.file("a.click", text);
    for name in ["a", "b", "c"] {
        daemon.check(&["create", name, &file, "--sandbox", "process"], 0, &[]);
        daemon.until(&["files", name], "out.pcap");
    }
    let fabric = descendant(daemon.child.id(), "fabric").expect("a fabric");
    let user = |process: u32| threads(process)[0]["Uid"].clone();
    assert_eq!(user(fabric), ["65533"; 4].join("\t"));
    let forker = children(fabric)[0];
    let spawner = children(forker)[0];
    let state = threads(spawner);
    assert_eq!((state.len(), state[0]["Seccomp"].as_str(), state[0]["NoNewPrivs"].as_str()), (1, "2", "1"));
    // There may be a spare sandbox, too.
    let pid = |name: &str| daemon.json(&["show", name])["pid"].as_u64().expect("a process") as u32;
    let boxes = ["a", "b", "c"].map(pid);
    assert!(boxes.iter().all(|process| children(spawner).contains(process)), "{boxes:?}");
    let namespace = |process: u32| fs::read_link(format!("/proc/{process}/ns/user")).expect("a namespace");
    for process in boxes {
        assert_eq!(user(process), user(fabric));
        assert_ne!(namespace(process), namespace(fabric));
        assert_ne!(namespace(process), namespace(std::process::id()));
    }
    check_confined(fabric);
    drop(daemon);
    fs::remove_dir_all(&folder).expect("the folder");
}

/// The fabric may not fork, so another process does it: boxes in processes can be created again when their spawner has
/// ended, and boxes in virtual machines do not notice.
#[test]
fn a_filtered_fabric_gets_another_spawner() {
    let daemon = Daemon::start("respawn");
    let file = daemon.file("a.click", CONFIGURATION);
    daemon.check(&["create", "a", &file, "--sandbox", "process"], 0, &[]);
    daemon.until(&["read", "a/c.count"], "3");
    let fabric = descendant(daemon.child.id(), "fabric").expect("a fabric");
    let forker = children(fabric)[0];
    let spawner = children(forker)[0];
    kill_process(Pid::from_raw(spawner.cast_signed()).expect("a process"), Signal::KILL).expect("a signal");
    let begin = Instant::now();
    // The one that just notices the end of the spawner may fail.
    while daemon.run(&["create", "b", &file, "--sandbox", "process"]).0 != 0 {
        assert!(begin.elapsed() < TIMEOUT, "the box is not created");
    }
    daemon.until(&["read", "b/c.count"], "3");
    assert_eq!(children(fabric), [forker]);
    assert_ne!(children(forker), [spawner]);
    check_confined(fabric);
}

/// The units say how exposed they are. The daemon's is below 2.0.
#[test]
fn the_units_state_their_exposure() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").canonicalize().expect("dist");
    for (unit, most) in [("clickbox.service", 2.0), ("clickbox-launcher.service", 3.5)] {
        let path = folder.join(unit);
        let text = fs::read_to_string(&path).expect("a unit");
        let level = |text: &str, before: &str| -> Option<f64> {
            text.split(before).nth(1)?.split_ascii_whitespace().next()?.trim_end_matches('.').parse().ok()
        };
        let stated = level(&text, "an exposure level of ").expect("the unit states its exposure");
        assert!(stated <= most, "{unit}: {stated}");
        let mut analyze = Command::new("systemd-analyze");
        let Ok(output) = analyze.args(["security", "--offline=true", "--no-pager"]).arg(&path).output()
        else {
            skip(Capability::Systemd, "there is no systemd-analyze");
            return;
        };
        let report = String::from_utf8_lossy(&output.stdout);
        match level(&report, &format!("exposure level for {unit}: ")) {
            Some(found) => assert!((found - stated).abs() < 0.05, "{unit}: it states {stated}:\n{report}"),
            None => skip(Capability::Systemd, "it does not check units offline"),
        }
    }
}
