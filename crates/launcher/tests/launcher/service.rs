//! Who may connect, to which launcher, and what a hostile client can do.

use super::support::{STORE, TIMEOUT, TestLauncher, bound, command, folder, starter, wait_for};
use protocol::launcher::{Client, LauncherError, PortDevice, Refusal, Reply, Request, VERSION, start};
use protocol::{Channel, ChannelError, Hello, HelloError};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Signal, Uid};
use rustix::thread::set_thread_res_uid;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;
use test_support::{Capability, require};

/// A connection that has sent nothing yet.
fn raw(socket: &Path) -> Channel {
    let descriptor = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let descriptor = descriptor.expect("a socket");
    connect(&descriptor, &SocketAddrUnix::new(socket).expect("a short path")).expect("a launcher");
    Channel::from(descriptor)
}

fn greeted(socket: &Path) -> Channel {
    let channel = raw(socket);
    channel.send(&Hello { version: VERSION, store: STORE }, &[]).expect("a launcher");
    let answer = channel.receive::<Result<Hello, Refusal>>(1_000).expect("a message").expect("a launcher");
    answer.message.expect("an agreement");
    channel
}

#[test]
fn a_launcher_serves_one_store_at_a_time() {
    let launcher = TestLauncher::start_to_stay();
    let other = || Client::connect(&launcher.socket, [9; 16], TIMEOUT);
    let refused = |result: Result<Client, LauncherError>| {
        matches!(result, Err(LauncherError::Refused(Refusal::Hello(HelloError::Store))))
    };
    let mut client = launcher.connect();
    assert!(refused(other()));
    client.connect_fabric(0).expect("a fabric");
    drop(client);
    thread::sleep(Duration::from_millis(500));
    assert!(refused(other()), "a fabric is left");
    launcher.connect().stop_all().expect("an end");
    wait_for(|| !refused(other()));
    assert!(refused(Client::connect(&launcher.socket, STORE, TIMEOUT)));
}

#[test]
fn other_versions_are_refused() {
    let launcher = TestLauncher::start();
    for version in [VERSION + 2, u16::MAX] {
        let channel = raw(&launcher.socket);
        channel.send(&Hello { version, store: STORE }, &[]).expect("a launcher");
        let answer = channel.receive::<Result<Hello, Refusal>>(1_000).expect("a message").expect("an answer");
        let expected = HelloError::Version { ours: VERSION, theirs: version };
        assert_eq!(answer.message, Err(Refusal::Hello(expected)));
        assert!(channel.receive::<Reply>(1_000).expect("no message").is_none());
    }
}

#[test]
fn one_launcher_serves_a_path() {
    let mut launcher = TestLauncher::start_to_stay();
    let mode = fs::metadata(&launcher.socket).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = command(&launcher.socket, &[]).output().expect("a second launcher");
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && message.contains("InUse"), "{message}");
    launcher.connect();
    // A launcher that was killed leaves its socket, which the next one replaces.
    launcher.signal(Signal::KILL);
    wait_for(|| launcher.has_ended().is_some());
    assert!(launcher.socket.exists());
    launcher.process = command(&launcher.socket, &[]).spawn().expect("a launcher");
    wait_for(|| Client::connect(&launcher.socket, STORE, TIMEOUT).is_ok());
    // Other files are left alone.
    let file = launcher.folder.join("file");
    fs::write(&file, "kept").expect("a file");
    assert!(!command(&file, &[]).output().expect("a launcher").status.success());
    assert_eq!(fs::read_to_string(&file).expect("a file"), "kept");
}

#[test]
fn a_launcher_without_clients_ends() {
    let mut launcher = TestLauncher::start();
    let client = launcher.connect();
    thread::sleep(Duration::from_millis(500));
    assert!(launcher.has_ended().is_none(), "it has a client");
    drop(client);
    wait_for(|| launcher.has_ended().is_some_and(|status| status.success()));
    assert!(!launcher.socket.exists());
}

#[test]
fn a_missing_launcher_is_started() {
    let folder = folder();
    let socket = folder.join("launcher.sock");
    // A socket that a launcher left behind is no launcher.
    drop(bound(&socket));
    let mut clients: Vec<Client> = thread::scope(|scope| {
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let socket = &socket;
                scope.spawn(move || start(&starter(socket), socket, STORE, TIMEOUT))
            })
            .collect();
        starts.into_iter().map(|start| start.join().expect("no panic").expect("a launcher")).collect()
    });
    let pids: Vec<u32> =
        clients.iter_mut().map(|client| client.connect_fabric(0).expect("a fabric").state.pid).collect();
    assert_eq!(pids, [pids[0]; 4], "one launcher serves all");
    clients[0].stop_all().expect("an end");
    drop(clients);
    wait_for(|| !socket.exists());
    fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn hostile_clients_do_not_stop_others() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let pid = client.connect_fabric(0).expect("a fabric").state.pid;
    let null = OwnedFd::from(fs::File::open("/dev/null").expect("a device"));

    // Garbage before and after the first message, requests before it, descriptors that nobody asked for.
    let silent = raw(&launcher.socket);
    let garbage = raw(&launcher.socket);
    garbage.send(&"garbage", &[null.as_fd(); 8]).expect("a launcher");
    let answer = garbage.receive::<Result<Reply, Refusal>>(1_000).expect("a message").expect("an answer");
    assert_eq!(answer.message, Err(Refusal::NotARequest));
    let early = raw(&launcher.socket);
    early.send(&Request::StopAll, &[]).expect("a launcher");
    let answer = early.receive::<Result<Reply, Refusal>>(1_000).expect("a message").expect("an answer");
    assert_eq!(answer.message, Err(Refusal::NotARequest));
    let late = greeted(&launcher.socket);
    late.send(&vec![0u8; 100_000], &[]).expect("a launcher");
    let answer = late.receive::<Result<Reply, Refusal>>(1_000).expect("a message").expect("an answer");
    assert_eq!(answer.message, Err(Refusal::NotARequest));
    assert!(late.receive::<Reply>(1_000).expect("no message").is_none());

    // A client that asks and never reads is removed when its answers have no room.
    let deaf = greeted(&launcher.socket);
    loop {
        match deaf.send(&Request::Connect(0), &[null.as_fd(); 2]) {
            Ok(()) => {}
            Err(ChannelError::Closed) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    // Connections that say nothing take no place from others.
    let more: Vec<Channel> = (0..200).map(|_| raw(&launcher.socket)).collect();
    Client::connect(&launcher.socket, STORE, TIMEOUT).expect("a launcher");
    for request in [PortDevice::Tap(String::new()), PortDevice::Interface("a/b".into())] {
        assert!(matches!(client.open(request), Err(LauncherError::Refused(Refusal::Failed(_)))));
    }
    assert_eq!(client.fabrics().expect("a list").first().map(|fabric| fabric.pid), Some(pid));
    drop((silent, more));
    client.stop_all().expect("an end");
}

#[test]
fn other_users_cannot_connect() {
    if !require(Capability::Root) {
        return;
    }
    let launcher = TestLauncher::start_to_stay();
    // Even if the file permits it.
    fs::set_permissions(&launcher.socket, fs::Permissions::from_mode(0o666)).expect("the socket");
    let socket = launcher.socket.clone();
    let stranger = thread::spawn(move || {
        // This thread alone becomes another user.
        let nobody = Uid::from_raw(65534);
        set_thread_res_uid(nobody, nobody, nobody).expect("root");
        Client::connect(&socket, STORE, TIMEOUT).map(drop)
    });
    let error = stranger.join().expect("no panic").expect_err("another user");
    assert!(matches!(error, LauncherError::Channel(ChannelError::Closed)), "{error:?}");
    launcher.connect();
}
