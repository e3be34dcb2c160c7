//! How fabrics are started, found again and ended.

use super::support::{TIMEOUT, TestLauncher, ask, exists, kill, wait_for};
use protocol::launcher::{LauncherError, Refusal, Shortfall, Step};
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use test_support::{Capability, require};

#[test]
fn a_fabric_runs_without_privileges() {
    let launcher = TestLauncher::start();
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    let facts = ask(&fabric, &[]);
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    let none = "0000000000000000";
    let missing = |step| fabric.state.shortfalls.iter().any(|shortfall| shortfall.step == step);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(fact(set), none, "{set}");
    }
    if !missing(Step::DropCapabilities) && geteuid().is_root() {
        assert_eq!(fact("CapBnd"), none);
    }
    let sets = ["Inh", "Prm", "Eff", "Amb"];
    assert!(
        sets.iter().all(|set| fact("child").contains(&format!("Cap{set}:\\t{none}"))),
        "{}",
        fact("child")
    );
    assert_eq!(fact("NoNewPrivs"), "1");
    assert_eq!(fact("leads its session"), "true");
    assert_eq!(fact("store"), format!("{:?}", super::support::STORE));
    assert_eq!(fact("folder"), "Ok(\"/\")");
    assert_eq!(fact("may lower its niceness"), (!missing(Step::RaiseNiceLimit)).to_string());
    if !missing(Step::LowerOomScore) {
        assert_eq!(fact("oom score"), "Ok(\"-500\")");
    }
    let has_kvm = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    assert_eq!(fact("has kvm"), has_kvm.to_string());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    assert_eq!(fact("files"), format!("{:?}", rustix::process::Rlimit { current: limit, maximum: limit }));
    // Standard input, output and error, the channel, the socket for the next launcher, /dev/kvm, and the folder that is
    // read: nothing of the launcher.
    let descriptors = fact("descriptors");
    assert_eq!(descriptors.matches("socket:").count(), 2, "{descriptors}");
    assert!(!descriptors.contains("launcher.sock") && !descriptors.contains("pidfd"), "{descriptors}");
    if missing(Step::MakeCgroup) {
        assert!(fabric.state.cgroups.is_empty());
    } else {
        assert!(!fabric.state.cgroups.is_empty());
    }
    for group in &fabric.state.cgroups {
        let members = fs::read_to_string(group.join("cgroup.procs")).expect("a group");
        assert_eq!(members.trim(), fabric.state.pid.to_string());
    }
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| fabric.state.cgroups.iter().all(|group| !group.exists()));
}

#[test]
fn a_fabric_of_root_becomes_another_user() {
    if !require(Capability::Root) {
        return;
    }
    const USER: u32 = 65_533;
    let launcher = TestLauncher::start_with_user(USER);
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    let facts = ask(&fabric, &[]);
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    for name in ["Uid", "Gid"] {
        assert_eq!(fact(name), [USER.to_string().as_str(); 4].join("\t"));
    }
    assert_eq!(fact("Groups"), "");
    let none = "0000000000000000";
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(fact(set), none, "{set}");
    }
    let sets = ["Inh", "Prm", "Eff", "Amb"];
    assert!(
        sets.iter().all(|set| fact("child").contains(&format!("Cap{set}:\\t{none}"))),
        "{}",
        fact("child")
    );
    // What this machine lets that user do without a launcher.
    let user = format!("--reuid={USER}");
    let can = Command::new("setpriv")
        .args([&user, "--clear-groups", "unshare", "--user", "--map-root-user", "--net", "true"])
        .output()
        .expect("setpriv");
    assert_eq!(fact("may make namespaces"), can.status.success().to_string());
    assert!(fabric.state.shortfalls.iter().all(|shortfall| shortfall.step != Step::DelegateCgroup));
    for group in &fabric.state.cgroups {
        assert_eq!(fs::metadata(group).expect("a group").uid(), USER);
    }
    let pid = fabric.state.pid;
    launcher.connect().stop(0).expect("an end");
    assert!(!exists(pid));
}

#[test]
fn a_fabric_is_started_once() {
    let launcher = TestLauncher::start();
    let mut first = launcher.connect();
    assert_eq!(first.fabrics().expect("a list"), []);
    let one = first.connect_fabric(3).expect("a fabric");
    assert!(one.is_new);
    let mut second = launcher.connect();
    let again = second.connect_fabric(3).expect("a fabric");
    assert!(!again.is_new);
    assert_eq!(again.state, one.state);
    let other = second.connect_fabric(4).expect("a fabric");
    assert!(other.is_new && other.state.pid != one.state.pid);
    assert_eq!(first.fabrics().expect("a list"), [one.state.clone(), other.state.clone()]);
    // Both connections reach it, also when the first daemon is gone.
    let pid = one.state.pid.to_string();
    for fabric in [&one, &again] {
        assert_eq!(ask(fabric, &[]).get("Tgid"), Some(&pid));
    }
    drop((one, first));
    assert_eq!(ask(&again, &[]).get("Tgid"), Some(&pid));
}

#[test]
fn a_fabric_that_ended_is_started_again() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let mut last = 0;
    for round in 0..30 {
        // A fabric that was killed has a moment left in which it may be connected once more.
        let mut fabric = client.connect_fabric(0).expect("a fabric");
        while fabric.state.pid == last {
            assert!(!fabric.is_new && fabric.channel.receive::<String>(1_000).expect("no message").is_none());
            fabric = client.connect_fabric(0).expect("a fabric");
        }
        assert!(fabric.is_new, "round {round}");
        last = fabric.state.pid;
        match round % 4 {
            // Killed before it does anything; the next request comes at any time after that.
            0 => kill(last, Signal::KILL),
            1 => {
                kill(last, Signal::KILL);
                assert!(fabric.channel.receive::<String>(1_000).expect("no message").is_none());
            }
            2 => fabric.channel.send(&"exit", &[]).expect("a fabric"),
            _ => {
                assert_eq!(ask(&fabric, &[]).get("Tgid"), Some(&last.to_string()));
                kill(last, Signal::KILL);
                wait_for(|| client.fabrics().expect("a list").is_empty());
            }
        }
    }
    // No zombie is left.
    client.stop_all().expect("an end");
    assert!(!exists(last));
}

#[test]
fn fabrics_are_stopped_on_request() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let fabrics = [0, 1, 2].map(|number| client.connect_fabric(number).expect("a fabric"));
    let pids = fabrics.each_ref().map(|fabric| fabric.state.pid);
    assert!(matches!(client.stop(9), Err(LauncherError::Refused(Refusal::NoFabric(9)))));
    client.stop(1).expect("an end");
    assert_eq!(pids.map(exists), [true, false, true]);
    assert_eq!(client.fabrics().expect("a list").len(), 2);
    // Another client may wait for the same end, or come too late.
    let mut other = launcher.connect();
    std::thread::scope(|scope| {
        scope.spawn(|| match other.stop(2) {
            Ok(()) | Err(LauncherError::Refused(Refusal::NoFabric(2))) => {}
            Err(error) => panic!("{error:?}"),
        });
        client.stop_all().expect("an end");
    });
    assert_eq!(pids.map(exists), [false; 3]);
    client.stop_all().expect("nothing to do");
}

#[test]
fn a_fabric_that_does_not_end_is_killed() {
    let launcher = TestLauncher::start_with_stubborn_fabrics();
    let mut client = launcher.connect();
    let fabric = client.connect_fabric(0).expect("a fabric");
    // It ignores the signal from now on.
    ask(&fabric, &[]);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| launcher.connect().stop(0).expect("an end"));
        // Meanwhile the launcher answers, and does not hand it out.
        wait_for(|| match client.connect_fabric(0) {
            Err(LauncherError::Refused(Refusal::Failed(shortfall))) => shortfall.step == Step::EndFabric,
            _ => false,
        });
    });
    assert!(start.elapsed() >= Duration::from_secs(2) && start.elapsed() < TIMEOUT);
    assert!(!exists(fabric.state.pid));
}

#[test]
fn a_program_that_is_no_fabric_is_reported() {
    let launcher = TestLauncher::start_with_program("/none-such");
    let mut client = launcher.connect();
    for _ in 0..2 {
        match client.connect_fabric(0) {
            Err(LauncherError::Refused(Refusal::Failed(Shortfall { step: Step::StartFabric, errno: 2 }))) => {
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(client.fabrics().expect("a list"), []);
    // One that ends at once closes the daemon's channel.
    let launcher = TestLauncher::start_with_program("true");
    let mut client = launcher.connect();
    match client.connect_fabric(0) {
        Ok(fabric) => assert!(fabric.channel.receive::<String>(1_000).expect("no message").is_none()),
        Err(LauncherError::Refused(Refusal::Failed(Shortfall { step: Step::TellFabric, .. }))) => {}
        Err(error) => panic!("{error:?}"),
    }
    wait_for(|| client.fabrics().expect("a list").is_empty());
}

#[test]
fn signals_end_the_launcher_and_its_fabrics() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut launcher = TestLauncher::start();
        let mut client = launcher.connect();
        let fabrics = [0, 1].map(|number| client.connect_fabric(number).expect("a fabric"));
        let pids = fabrics.each_ref().map(|fabric| fabric.state.pid);
        launcher.signal(signal);
        wait_for(|| launcher.has_ended().is_some());
        assert_eq!(launcher.has_ended().and_then(|status| status.code()), Some(0));
        assert_eq!(pids.map(exists), [false; 2]);
        let groups = fabrics.iter().flat_map(|fabric| &fabric.state.cgroups);
        assert!(groups.into_iter().all(|group| !group.exists()));
        assert!(!launcher.socket.exists());
        assert!(matches!(client.fabrics(), Err(LauncherError::Channel(_))));
    }
}

#[test]
fn a_fabric_survives_its_daemon_and_its_launchers_idleness() {
    let mut launcher = TestLauncher::start();
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    let pid = fabric.state.pid;
    drop(fabric);
    std::thread::sleep(Duration::from_millis(600));
    assert!(exists(pid) && launcher.has_ended().is_none());
    assert_eq!(launcher.connect().connect_fabric(0).expect("a fabric").state.pid, pid);
    // Without a fabric, the launcher ends.
    kill(pid, Signal::KILL);
    wait_for(|| launcher.has_ended().is_some());
    assert!(!Path::new(&launcher.socket).exists());
}
