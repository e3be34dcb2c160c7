//! What happens when a launcher is killed: its fabrics go on, and the next launcher adopts them.

use super::support::{STORE, TIMEOUT, TestLauncher, ask, bound, exists, kill, wait_for};
use protocol::launcher::{Client, LauncherError, PortDevice, Refusal, SocketProtocol};
use protocol::{HelloError, StoreIdentity};
use rustix::net::listen;
use rustix::process::{Signal, geteuid};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use switch::driver::Tap;
use test_support::{Capability, require, skip};

/// The socket at which the fabric with this number listens.
fn socket_of(launcher: &TestLauncher, number: &str) -> PathBuf {
    launcher.folder.join(format!("launcher.sock.fabric-{number}"))
}

/// Another process than a fabric, here this one, listens.
fn pretend(path: &Path) -> OwnedFd {
    let socket = bound(path);
    listen(&socket, 1).expect("a socket that listens");
    socket
}

#[test]
fn the_next_launcher_adopts_the_fabrics() {
    let mut launcher = TestLauncher::start_to_stay();
    let mut client = launcher.connect();
    let fabrics = [0, 3].map(|number| client.connect_fabric(number).expect("a fabric"));
    let pids = fabrics.each_ref().map(|fabric| fabric.state.pid);
    let mut groups = fabrics.each_ref().map(|fabric| fabric.state.cgroups.clone());
    for _ in 0..3 {
        launcher.kill();
        // Nothing ends, and the connections of daemons stay.
        for fabric in &fabrics {
            assert_eq!(ask(fabric, &[]).get("Tgid"), Some(&fabric.state.pid.to_string()));
        }
        launcher.start_another(&[]);
        // Only the daemon of their store may have them.
        let other: StoreIdentity = *b"another's store!";
        match Client::connect(&launcher.socket, other, TIMEOUT) {
            Err(LauncherError::Refused(Refusal::Hello(HelloError::Store))) => {}
            other => panic!("{other:?}"),
        }
        let mut found = launcher.connect().fabrics().expect("a list");
        found.sort_by_key(|fabric| fabric.number);
        assert_eq!(
            found.iter().map(|fabric| (fabric.number, fabric.pid)).collect::<Vec<_>>(),
            [(0, pids[0]), (3, pids[1])]
        );
        for (found, groups) in found.iter_mut().zip(&mut groups) {
            found.cgroups.sort();
            groups.sort();
            assert_eq!(found.cgroups, *groups);
        }
    }
    // A new connection reaches the same process.
    let mut client = launcher.connect();
    let again = client.connect_fabric(0).expect("a fabric");
    assert!(!again.is_new && again.state.pid == pids[0]);
    assert_eq!(ask(&again, &[]).get("Tgid"), Some(&pids[0].to_string()));
    // One is stopped, and the end of the other one is noticed.
    client.stop(3).expect("an end");
    assert!(!socket_of(&launcher, "3").exists());
    kill(pids[0], Signal::KILL);
    wait_for(|| client.fabrics().expect("a list").is_empty());
    wait_for(|| groups.iter().flatten().all(|group| !group.exists()));
    assert!(!socket_of(&launcher, "0").exists());
    let new = client.connect_fabric(0).expect("a fabric");
    assert!(new.is_new && new.state.pid != pids[0]);
}

/// A launcher is killed, and its fabric too, before another one is there. What is left of its control groups goes with the next fabric.
#[test]
fn groups_of_fabrics_that_no_launcher_adopted_are_removed() {
    if !require(Capability::Root) {
        return;
    }
    let mut launcher = TestLauncher::start_to_stay();
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    let groups = &fabric.state.cgroups;
    if groups.is_empty() {
        return skip(Capability::Root, "no control groups can be made");
    }
    // Groups of its boxes.
    groups.iter().for_each(|group| fs::create_dir(group.join("boxes")).expect("a group"));
    launcher.kill();
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| !exists(fabric.state.pid));
    launcher.start_another(&[]);
    let next = launcher.connect().connect_fabric(0).expect("a fabric");
    assert!(next.is_new && !groups.iter().any(|group| group.exists()));
    assert!(next.state.cgroups.iter().all(|group| group.exists()));
}

#[test]
fn adopted_fabrics_end_with_their_launcher() {
    let mut launcher = TestLauncher::start_with_stubborn_fabrics();
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    // It ignores SIGTERM from now on.
    ask(&fabric, &[]);
    launcher.kill();
    launcher.start_another(&[]);
    drop(launcher.connect());
    // It has no client, but a fabric.
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert!(launcher.has_ended().is_none());
    launcher.signal(Signal::TERM);
    wait_for(|| launcher.has_ended().is_some());
    assert!(fabric.channel.receive::<String>(1_000).expect("no message").is_none());
    assert!(fabric.state.cgroups.iter().all(|group| !group.exists()));
}

/// A launcher is killed at any time, also while it starts fabrics.
#[test]
fn no_kill_leaves_a_fabric_running_for_good() {
    let mut launcher = TestLauncher::start_to_stay();
    let mut pids = Vec::new();
    for round in 0_u64..12 {
        let (socket, victim) = (launcher.socket.clone(), launcher.process.id());
        let killer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(round * 5));
            kill(victim, Signal::KILL);
        });
        if let Ok(mut client) = Client::connect(&socket, STORE, TIMEOUT) {
            for number in 0..4 {
                pids.extend(client.connect_fabric(number).ok().map(|fabric| fabric.state.pid));
            }
        }
        killer.join().expect("no panic");
        launcher.process.wait().expect("a child");
        launcher.start_another(&[]);
        // Each number has one fabric, old or new.
        let mut client = launcher.connect();
        for number in 0..4 {
            let fabric = client.connect_fabric(number).expect("a fabric");
            assert!(ask(&fabric, &[]).contains_key("Tgid"), "round {round}");
            pids.push(fabric.state.pid);
        }
        assert_eq!(client.fabrics().expect("a list").len(), 4);
    }
    launcher.connect().stop_all().expect("an end");
    // One that did not listen yet when its launcher was killed ends by itself.
    wait_for(|| pids.iter().all(|pid| !exists(*pid)));
}

/// The kernel says which process listens, and which user that is.
#[test]
fn only_processes_of_the_fabrics_user_are_adopted() {
    if !require(Capability::Root) {
        return;
    }
    const USER: u32 = 65_533;
    let mut launcher = TestLauncher::start_with_user(USER);
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    assert_eq!(ask(&fabric, &[]).get("Uid"), Some(&[USER.to_string().as_str(); 4].join("\t")));
    launcher.kill();
    // A process of another user, such as this test; and a fabric's, but with the number of another user's fabric.
    let strange = socket_of(&launcher, "5");
    let listening = pretend(&strange);
    fs::hard_link(socket_of(&launcher, "0"), socket_of(&launcher, "1")).expect("a link");
    launcher.start_another(&[]);
    let mut client = launcher.connect();
    let found = client.fabrics().expect("a list");
    assert_eq!(
        found.iter().map(|fabric| (fabric.number, fabric.pid)).collect::<Vec<_>>(),
        [(0, fabric.state.pid)]
    );
    assert!(!strange.exists() && !socket_of(&launcher, "1").exists());
    assert!(matches!(client.stop(5), Err(LauncherError::Refused(Refusal::NoFabric(5)))));
    drop(listening);
    client.stop_all().expect("an end");
    // Another process reaps it.
    wait_for(|| !exists(fabric.state.pid));
}

#[test]
fn what_is_no_fabric_is_left_alone() {
    let mut launcher = TestLauncher::start_to_stay();
    launcher.connect();
    launcher.kill();
    // The socket has no listener.
    drop(bound(&socket_of(&launcher, "7")));
    let others = ["x", "", "01", "+1", "-1", "4294967296", "1.lock"].map(|name| socket_of(&launcher, name));
    let listening = others.each_ref().map(|path| pretend(path));
    let file = socket_of(&launcher, "8");
    fs::write(&file, "kept").expect("a file");
    launcher.start_another(&[]);
    assert_eq!(launcher.connect().fabrics().expect("a list"), []);
    assert!(!socket_of(&launcher, "7").exists());
    assert!(others.iter().all(|path| path.exists()));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "kept");
    drop(listening);
}

#[test]
fn a_fabric_without_a_known_store_is_not_adopted() {
    let mut launcher = TestLauncher::start_to_stay();
    let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
    launcher.kill();
    fs::write(launcher.folder.join("launcher.sock.lock"), "short").expect("the lock");
    launcher.start_another(&[]);
    let mut client = launcher.connect();
    assert_eq!(client.fabrics().expect("a list"), []);
    let other = client.connect_fabric(0).expect("a fabric");
    assert!(other.is_new && other.state.pid != fabric.state.pid);
    // It serves its daemon meanwhile.
    assert_eq!(ask(&fabric, &[]).get("Tgid"), Some(&fabric.state.pid.to_string()));
    kill(fabric.state.pid, Signal::KILL);
}

#[test]
fn a_tap_outlives_launcher_and_fabric() {
    if !require(Capability::Root) {
        return;
    }
    let mut launcher = TestLauncher::start_in_own_network();
    let mut client = launcher.connect();
    let device = || PortDevice::Tap("tap0".into());
    let tap = match client.open(device()) {
        Ok(tap) => tap,
        Err(error) => return skip(Capability::Root, format!("TAP device: {error}")),
    };
    let index = |launcher: &TestLauncher| {
        launcher.ip("-o link show tap0").map(|line| line.split(':').next().map(String::from))
    };
    let first = index(&launcher);
    let fabric = client.connect_fabric(0).expect("a fabric");
    ask(&fabric, &[&tap]);
    launcher.kill();
    launcher.start_another(&["nsenter", &format!("--target={}", fabric.state.pid), "--net"]);
    let mut client = launcher.connect();
    // The fabric has the device, so it can't be opened again.
    assert!(client.open(device()).is_err());
    client.keep(device(), tap.as_fd()).expect("a tap device");
    drop(tap);
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| client.fabrics().expect("a list").is_empty());
    assert_eq!(index(&launcher), first);
    let tap = client.open(device()).expect("the device");
    assert!(Tap::from_descriptor(tap).is_ok());
    assert_eq!(index(&launcher), first);
}

#[test]
fn a_kept_descriptor_is_that_of_its_device() {
    let launcher = TestLauncher::start_to_stay();
    let mut client = launcher.connect();
    let path = launcher.folder.join("a.pcap");
    let recording = || PortDevice::Recording(path.clone());
    let null = File::options().read(true).write(true).open("/dev/null").expect("a device");
    fs::write(launcher.folder.join("read"), "").expect("a file");
    let readable = File::open(launcher.folder.join("read")).expect("a file");
    let devices = [
        PortDevice::Tap("tap0".into()),
        PortDevice::Tap(String::new()),
        PortDevice::Interface("lo".into()),
        PortDevice::Replay(path.clone()),
        PortDevice::Recording("relative".into()),
        PortDevice::Listener(SocketProtocol::Memif, path.clone()),
        PortDevice::Connection(SocketProtocol::Memif, path.clone()),
        recording(),
    ];
    for device in devices {
        for descriptor in [null.as_fd(), readable.as_fd()] {
            match client.keep(device.clone(), descriptor) {
                Err(LauncherError::Refused(Refusal::OtherDevice)) => {}
                other => panic!("{device:?}: {other:?}"),
            }
        }
    }
    // A recording that an earlier launcher created is handed out again, although its file exists.
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
    file.write_all(b"recorded").expect("a file");
    assert!(client.open(recording()).is_err());
    client.keep(recording(), file.as_fd()).expect("an ordinary file");
    // The first one stays.
    let other = File::create(launcher.folder.join("other")).expect("a file");
    client.keep(recording(), other.as_fd()).expect("an ordinary file");
    let kept = File::from(client.open(recording()).expect("the file"));
    assert_eq!(kept.metadata().expect("a file").ino(), fs::metadata(&path).expect("the file").ino());
    assert_eq!(fs::read_to_string(&path).expect("text"), "recorded");
    if !geteuid().is_root() {
        return;
    }
    let Ok(tap) = Tap::open_descriptor("cbkeep0") else { return };
    match client.keep(PortDevice::Tap("cbkeep1".into()), tap.as_fd()) {
        Err(LauncherError::Refused(Refusal::OtherDevice)) => {}
        other => panic!("{other:?}"),
    }
}
