//! Devices and files that the launcher opens and keeps.

use super::support::{TestLauncher, ask, kill, wait_for};
use protocol::launcher::{
    Client, HostAddress, LauncherError, PortDevice, Refusal, Step, TunnelDevice, TunnelKind,
};
use rustix::process::{Signal, geteuid};
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use switch::device::attach_filter;
use switch::driver::{AfPacket, AfXdp, Encapsulation, OverlayPort, OverlaySettings, Tap};
use test_support::{Capability, require, skip};

/// The step and the error number of a refused request.
fn refusal(client: &mut Client, device: PortDevice) -> (Step, i32) {
    match client.open(device) {
        Err(LauncherError::Refused(Refusal::Failed(shortfall))) => (shortfall.step, shortfall.errno),
        other => panic!("{other:?}"),
    }
}

/// The index of an interface in the launcher's network namespace.
fn index(launcher: &TestLauncher, name: &str) -> Option<String> {
    let line = launcher.ip(&format!("-o link show {name}"))?;
    line.split_once(':').map(|(index, _)| index.to_string())
}

#[test]
fn a_tap_outlives_its_fabric() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_in_own_network();
    let mut client = launcher.connect();
    let device = || PortDevice::Tap("tap0".into());
    let tap = match client.open(device()) {
        Ok(tap) => tap,
        Err(error) => return skip(Capability::Root, format!("TAP device: {error}")),
    };
    let first = index(&launcher, "tap0");
    assert!(first.is_some());
    let line = launcher.ip("-o link show tap0").unwrap_or_default();
    assert!(line.contains(",UP"), "a device that the launcher creates comes up: {line}");
    for _ in 0..3 {
        let fabric = client.connect_fabric(0).expect("a fabric");
        assert!(fabric.is_new);
        ask(&fabric, &[&tap]);
        kill(fabric.state.pid, Signal::KILL);
        assert!(fabric.channel.receive::<String>(1_000).expect("no message").is_none());
        wait_for(|| client.fabrics().expect("a list").is_empty());
        assert_eq!(index(&launcher, "tap0"), first, "the device is still there");
        let line = launcher.ip("-o link show tap0").unwrap_or_default();
        assert!(line.contains(",UP"), "{line}");
    }
    // Only the launcher has it now, and hands out the same one.
    drop(tap);
    let tap = client.open(device()).expect("the device");
    assert_eq!(index(&launcher, "tap0"), first);
    assert!(Tap::from_descriptor(tap.try_clone().expect("a descriptor")).is_ok());

    // A fabric keeps what the launcher forgot.
    let fabric = client.connect_fabric(0).expect("a fabric");
    ask(&fabric, &[&tap]);
    drop(tap);
    client.close(device()).expect("an answer");
    client.close(device()).expect("an answer");
    assert_eq!(index(&launcher, "tap0"), first);
    assert_eq!(refusal(&mut client, device()), (Step::OpenTap, 16), "it is in use");
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| index(&launcher, "tap0").is_none());

    // A device that somebody else removed is made again.
    let lost = client.open(device()).expect("the device");
    assert!(launcher.ip("link del tap0").is_some());
    let again = client.open(device()).expect("the device");
    assert!(index(&launcher, "tap0").is_some());
    assert!(Tap::from_descriptor(lost).is_err() && Tap::from_descriptor(again).is_ok());
}

#[test]
fn interfaces_are_opened_each_time() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_in_own_network();
    let mut client = launcher.connect();
    assert_eq!(refusal(&mut client, PortDevice::Interface("left".into())), (Step::OpenInterface, 19));
    if launcher.ip("link add left type veth peer name right").is_none() {
        return skip(Capability::Root, "a veth pair can't be made");
    }
    let promiscuity = || {
        let line = launcher.ip("-o -d link show left").unwrap_or_default();
        let word =
            line.split_once("promiscuity ").map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
        word.map(str::to_string)
    };
    // Two ports may use one interface: each has a socket of its own.
    let sockets = [0, 1].map(|_| client.open(PortDevice::Interface("left".into())).expect("the interface"));
    let ports = sockets.map(|socket| AfPacket::from_descriptor(socket).expect("a packet socket"));
    assert_eq!(promiscuity().as_deref(), Some("2"));
    drop(ports);
    // The launcher keeps the last one. A program that another test starts may have the others for a moment.
    wait_for(|| promiscuity().as_deref() == Some("1"));
    client.close(PortDevice::Interface("left".into())).expect("an answer");
    wait_for(|| promiscuity().as_deref() == Some("0"));
}

/// With several switch threads, an interface has a socket for each of them.
#[test]
fn interfaces_are_opened_with_a_queue_for_each_switch_thread() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_with_threads("3");
    let mut client = launcher.connect();
    if launcher.ip("link add left type veth peer name right").is_none() {
        return skip(Capability::Root, "a veth pair can't be made");
    }
    for _ in 0..2 {
        let sockets = client.open_all(PortDevice::Interface("left".into())).expect("the interface");
        let ports = AfPacket::from_descriptors(sockets).expect("packet sockets");
        assert_eq!(ports.len(), 3);
    }
    assert_eq!(refusal(&mut client, PortDevice::Interface("none".into())), (Step::OpenInterface, 19));
}

/// A tap too. The launcher keeps one of them, so that the device lives on.
#[test]
fn taps_are_opened_with_a_queue_for_each_switch_thread() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_with_threads("3");
    let mut client = launcher.connect();
    let mut open = |name: &str| client.open_all(PortDevice::Tap(name.into())).expect("the device");
    let queues = |all: &[OwnedFd]| {
        all.iter()
            .filter(|one| Tap::is_descriptor_of(one, "tap0") || Tap::is_descriptor_of(one, "tap1"))
            .count()
    };
    for _ in 0..2 {
        assert_eq!(queues(&open("tap0")), 3);
        assert!(launcher.ip("link show tap0").is_some(), "the launcher keeps it");
    }
    // Somebody made this one for a single queue.
    assert!(launcher.ip("tuntap add tap1 mode tap").is_some());
    assert_eq!(queues(&open("tap1")), 1);
}

/// Frames of such an interface would be lost; those of the loopback device hardly ever are so long.
#[test]
fn interfaces_with_a_greater_mtu_than_buffers_are_refused() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_in_own_network();
    let mut client = launcher.connect();
    if launcher.ip("tuntap add dev big mode tap").is_none() {
        return skip(Capability::Root, "a tap device can't be made");
    }
    for step in [Step::OpenTap, Step::OpenInterface] {
        let device = || match step {
            Step::OpenTap => PortDevice::Tap("big".into()),
            _ => PortDevice::Interface("big".into()),
        };
        assert!(launcher.ip("link set big mtu 2035").is_some());
        assert_eq!(refusal(&mut client, device()), (step, 90));
        assert!(launcher.ip("link set big mtu 2034").is_some());
        drop(client.open(device()).expect("the interface"));
        client.close(device()).expect("an answer");
    }
    assert!(launcher.ip("link set lo up").is_some());
    assert!(client.open(PortDevice::Interface("lo".into())).is_ok());
}

#[test]
fn an_xdp_program_lives_as_long_as_its_descriptors() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_in_own_network();
    let mut client = launcher.connect();
    let device = || PortDevice::Xdp("left".into(), None);
    assert_eq!(refusal(&mut client, device()), (Step::OpenInterface, 19));
    if launcher.ip("link add left type veth peer name right").is_none() {
        return skip(Capability::Root, "a veth pair can't be made");
    }
    let has_program = || launcher.ip("link show left").is_some_and(|text| text.contains("prog/xdp"));
    let descriptors = match client.open_all(device()) {
        Err(error) if error.to_string().contains("XDP socket") => {
            return skip(Capability::Root, format!("XDP: {error}"));
        }
        opened => opened.expect("the interface"),
    };
    assert_eq!(descriptors.len(), 4, "the watch, the memory, the link, and a queue's socket");
    assert!(has_program());
    assert_eq!(refusal(&mut client, device()), (Step::AttachXdpProgram, 16), "it is in use");
    client.close(device()).expect("an answer");
    assert!(client.keep(device(), descriptors[0].as_fd()).is_err(), "no launcher keeps one");
    let port = AfXdp::from_descriptors(descriptors).expect("a port");
    assert!(has_program());
    drop(port);
    // A process that another test is starting has a copy of all descriptors for a moment.
    wait_for(|| !has_program());
    assert_eq!(refusal(&mut client, PortDevice::Xdp("left".into(), Some(2))), (Step::UseQueues, 34));
    assert!(launcher.ip("link set left mtu 1775").is_some());
    assert_eq!(refusal(&mut client, device()), (Step::FitXdpBuffers, 90));
    assert!(!has_program());
}

/// A tunnel from 127.0.0.1.
fn tunnel(local: Option<&str>, remote: &str, vni: u32, kind: TunnelKind) -> PortDevice {
    let ip = |text: &str| text.parse::<HostAddress>().expect("an address");
    PortDevice::Tunnel(TunnelDevice { kind, local: local.map(ip), remote: ip(remote), udp_port: 4789, vni })
}

/// Opens a tunnel, and says whether it is the descriptor of one.
fn opens(client: &mut Client, device: PortDevice) -> bool {
    let PortDevice::Tunnel(TunnelDevice { udp_port, vni, .. }) = device else { return false };
    let settings = OverlaySettings { encapsulation: Encapsulation::Vxlan, udp_port, vni, mtu: None };
    let socket = client.open(device).expect("a socket");
    OverlayPort::from_descriptor(socket, settings).is_ok()
}

#[test]
fn tunnels_share_a_reserved_port() {
    if !require(Capability::Root) {
        return;
    }
    use TunnelKind::{Geneve, Vxlan};
    let launcher = TestLauncher::start_in_own_network();
    let mut client = launcher.connect();
    assert_eq!(refusal(&mut client, tunnel(None, "127.0.0.2", 1, Vxlan)), (Step::FindRoute, 101));
    assert!(launcher.ip("link set lo up").is_some());
    let device = |vni| tunnel(None, "127.0.0.2", vni, Vxlan);
    assert!(opens(&mut client, device(1)));
    // The same again, another network, another remote end, and the local address by name.
    assert!(opens(&mut client, device(1)) && opens(&mut client, device(2)));
    assert!(opens(&mut client, tunnel(None, "127.0.0.3", 1, Vxlan)));
    assert!(opens(&mut client, tunnel(Some("127.0.0.1"), "127.0.0.2", 3, Vxlan)));
    // Another kind of tunnel cannot have the port, and neither can the kernel.
    assert_eq!(refusal(&mut client, tunnel(None, "127.0.0.2", 4, Geneve)), (Step::ReservePort, 98));
    let kernel = "link add vx type vxlan id 9 remote 127.0.0.2 dstport 4789";
    if launcher.ip(kernel).is_none() {
        return skip(Capability::Root, "a VXLAN device can't be made");
    }
    let comes_up = || launcher.ip("link set vx up").is_some();
    assert!(!comes_up());
    // The last tunnel frees the port.
    for remaining in [device(1), device(2), tunnel(None, "127.0.0.3", 1, Vxlan)] {
        client.close(remaining).expect("an answer");
        assert!(!comes_up());
    }
    client.close(tunnel(Some("127.0.0.1"), "127.0.0.2", 3, Vxlan)).expect("an answer");
    // A program that another test starts may have a copy of a socket for a moment.
    wait_for(comes_up);
    assert_eq!(refusal(&mut client, device(1)), (Step::ReservePort, 98));
    assert_eq!(
        refusal(&mut client, tunnel(Some("192.0.2.9"), "127.0.0.2", 1, Vxlan)),
        (Step::ReservePort, 99)
    );
}

#[test]
fn the_filter_of_a_tunnel_cannot_be_removed() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_in_own_network();
    assert!(launcher.ip("link set lo up").is_some());
    let mut client = launcher.connect();
    let socket = client.open(tunnel(None, "127.0.0.2", 1, TunnelKind::Vxlan)).expect("a socket");
    // A program that accepts everything.
    let error = attach_filter(&socket, [(6, 0, 0, u32::MAX)]).expect_err("a locked filter");
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn captures_are_opened_by_absolute_paths() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let path = |name: &str| launcher.folder.join(name);
    for device in [PortDevice::Replay("a.pcap".into()), PortDevice::Recording("a.pcap".into())] {
        assert!(matches!(client.open(device), Err(LauncherError::Refused(Refusal::RelativePath))));
    }
    // Pipes, devices and folders are no captures. A pipe without a writer must not stop the launcher.
    assert!(Command::new("mkfifo").arg(path("pipe")).status().is_ok_and(|status| status.success()));
    std::os::unix::fs::symlink(path("pipe"), path("link to a pipe")).expect("a link");
    for name in [path("pipe"), path("link to a pipe"), "/dev/zero".into(), "/".into()] {
        let result = client.open(PortDevice::Replay(name));
        assert!(matches!(result, Err(LauncherError::Refused(Refusal::NotAFile))), "{result:?}");
    }
    assert_eq!(refusal(&mut client, PortDevice::Replay(path("none"))), (Step::OpenReplay, 2));
    fs::write(path("a file"), "contents").expect("a file");
    std::os::unix::fs::symlink(path("a file"), path("link")).expect("a link");
    let replay = client.open(PortDevice::Replay(path("link"))).expect("a file");
    assert_eq!(std::io::read_to_string(File::from(replay)).expect("a file"), "contents");

    // Existing files are not overwritten, not even through a link. A recording is the same one until it is closed.
    for name in ["a file", "link", "pipe"] {
        assert_eq!(refusal(&mut client, PortDevice::Recording(path(name))), (Step::CreateRecording, 17));
    }
    let recording = || PortDevice::Recording(path("recording"));
    let inode = |file: OwnedFd| File::from(file).metadata().expect("a file").ino();
    let first = inode(client.open(recording()).expect("a file"));
    let metadata = fs::metadata(path("recording")).expect("a file");
    assert_eq!((metadata.ino(), metadata.permissions().mode() & 0o777), (first, 0o600));
    assert_eq!(inode(client.open(recording()).expect("a file")), first);
    client.close(recording()).expect("an answer");
    assert_eq!(refusal(&mut client, recording()), (Step::CreateRecording, 17));
}

#[test]
fn the_folder_for_files_belongs_to_the_fabrics() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let path = launcher.folder.join("files");
    let refused = client.open_folder("files".into(), 0);
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::RelativePath))), "{refused:?}");
    let open = |client: &mut Client| File::from(client.open_folder(path.clone(), 0).expect("a folder"));
    let first = open(&mut client).metadata().expect("a folder");
    assert!(first.is_dir());
    assert_eq!((first.mode() & 0o777, first.uid()), (0o700, geteuid().as_raw()));
    assert_eq!(open(&mut client).metadata().expect("a folder").ino(), first.ino());
    // A link to a folder could lead anywhere.
    std::os::unix::fs::symlink("/", launcher.folder.join("link")).expect("a link");
    assert!(client.open_folder(launcher.folder.join("link"), 0).is_err());
    if !require(Capability::Root) {
        return;
    }
    // The next launcher's fabrics are another user: it gets a folder of its own, and gives no other one away.
    const USER: u32 = 65_533;
    let other = TestLauncher::start_with_user(USER);
    let mut client = other.connect();
    assert_eq!(open(&mut client).metadata().expect("a folder").uid(), USER);
    let used = other.folder.join("used");
    fs::create_dir(&used).expect("a folder");
    fs::write(used.join("a file"), "kept").expect("a file");
    client.open_folder(used.clone(), 0).expect("a folder");
    assert_eq!(fs::metadata(&used).expect("a folder").uid(), 0);
}
