//! Sockets of ports: those at which the launcher listens, and connections to peers that listen.

use super::support::TestLauncher;
use protocol::launcher::SocketProtocol::{Memif, VhostUser};
use protocol::launcher::{Client, LauncherError, PortDevice, Refusal, SocketProtocol, Step};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, connect, listen, send,
    socket_with,
};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The error numbers of Linux that occur here.
const NOT_FOUND: i32 = 2;
const AGAIN: i32 = 11;
const EXISTS: i32 = 17;
const OTHER_PROTOCOL: i32 = 71;
const IN_USE: i32 = 98;
const RESET: i32 = 104;

fn refusal(result: Result<OwnedFd, LauncherError>) -> (Step, i32) {
    match result {
        Err(LauncherError::Refused(Refusal::Failed(shortfall))) => (shortfall.step, shortfall.errno),
        other => panic!("{other:?}"),
    }
}

fn inode(socket: &OwnedFd) -> u64 {
    File::from(socket.try_clone().expect("a descriptor")).metadata().expect("a socket").ino()
}

fn socket(protocol: SocketProtocol) -> OwnedFd {
    let kind = match protocol {
        VhostUser => SocketType::STREAM,
        Memif => SocketType::SEQPACKET,
    };
    socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).expect("a socket")
}

/// Whether a socket of the kind listens at a path.
fn is_reached(protocol: SocketProtocol, path: &Path) -> bool {
    connect(socket(protocol), &SocketAddrUnix::new(path).expect("a short path")).is_ok()
}

#[test]
fn a_socket_is_listened_at_until_it_is_closed() {
    for (protocol, other) in [(VhostUser, Memif), (Memif, VhostUser)] {
        check_listener(protocol, other);
    }
}

fn check_listener(protocol: SocketProtocol, other_protocol: SocketProtocol) {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let path = launcher.folder.join("vm.sock");
    let device = || PortDevice::Listener(protocol, path.clone());
    let listen = |client: &mut Client| client.open(device());
    let refused = client.open(PortDevice::Listener(protocol, "vm.sock".into()));
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::RelativePath))), "{refused:?}");
    assert_eq!(
        refusal(client.open(PortDevice::Listener(protocol, "/no/folder/s".into()))),
        (Step::ListenSocket, NOT_FOUND)
    );

    // Files, and sockets at which somebody listens, are left alone.
    fs::write(&path, "contents").expect("a file");
    assert_eq!(refusal(listen(&mut client)), (Step::ListenSocket, EXISTS));
    assert_eq!(fs::read_to_string(&path).expect("the file"), "contents");
    fs::remove_file(&path).expect("the file");
    let other = UnixListener::bind(&path).expect("a socket");
    assert_eq!(refusal(listen(&mut client)), (Step::ListenSocket, IN_USE));
    // A server that has died left its socket.
    drop(other);
    // Processes that other tests start hold a copy until they execute their program.
    while UnixStream::connect(&path).is_ok() {
        thread::sleep(Duration::from_millis(1));
    }
    let socket = listen(&mut client).expect("a socket");
    let metadata = fs::metadata(&path).expect("the socket");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(is_reached(protocol, &path));

    // It is one socket, which outlives its users; a file that was removed is made again.
    assert_eq!(inode(&listen(&mut client).expect("the socket")), inode(&socket));
    drop(socket);
    assert!(is_reached(protocol, &path), "it still listens");
    fs::remove_file(&path).expect("the file");
    let socket = listen(&mut client).expect("another socket");
    assert!(is_reached(protocol, &path));

    // A launcher that follows keeps the socket, and no other descriptor.
    client.close(device()).expect("an answer");
    let wrong = File::open("/dev/null").expect("a device");
    let refused = client.keep(device(), wrong.as_fd());
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::OtherDevice))), "{refused:?}");
    let elsewhere = UnixListener::bind(launcher.folder.join("other")).expect("a socket");
    let refused = client.keep(device(), elsewhere.as_fd());
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::OtherDevice))), "{refused:?}");
    let refused = client.keep(PortDevice::Listener(other_protocol, path.clone()), socket.as_fd());
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::OtherDevice))), "{refused:?}");
    // Another launcher can't have it.
    let far = TestLauncher::start();
    assert_eq!(refusal(listen(&mut far.connect())), (Step::ListenSocket, IN_USE));
    client.keep(device(), socket.as_fd()).expect("it is the one");
    assert_eq!(inode(&listen(&mut client).expect("the socket")), inode(&socket));
    drop(socket);
    client.close(device()).expect("an answer");
    assert!(!path.exists(), "no one listens any more");
}

#[test]
fn only_a_front_end_is_connected_to() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let path: PathBuf = launcher.folder.join("guest.sock");
    let device = || PortDevice::Connection(VhostUser, path.clone());
    let refused = client.open(PortDevice::Connection(VhostUser, "guest.sock".into()));
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::RelativePath))), "{refused:?}");
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, NOT_FOUND));
    let listener = UnixListener::bind(&path).expect("a socket");

    // A server that waits for its client to speak is not handed out; it may take its time.
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
    let (mut far, _) = listener.accept().expect("a connection");
    far.write_all(&[1, 0, 0]).expect("a part of a message");
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
    far.write_all(&[0, 1, 0, 0, 0, 0, 0, 0, 0]).expect("the rest");
    let near = UnixStream::from(client.open(device()).expect("the connection"));
    // All that was sent is still there.
    let mut message = [0; 12];
    std::io::Read::read_exact(&mut &near, &mut message).expect("the message");
    assert_eq!(message, [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);

    // One that speaks otherwise, or closes the connection, is refused.
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
    let (mut far, _) = listener.accept().expect("a connection");
    far.write_all(b"SSH-2.0-OpenSSH").expect("a greeting");
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, OTHER_PROTOCOL));
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
    drop(listener.accept().expect("a connection"));
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, RESET));

    // A connection that waits is forgotten with its port.
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
    let (far, _) = listener.accept().expect("a connection");
    client.close(device()).expect("an answer");
    assert_eq!(std::io::Read::read(&mut &far, &mut [0]).expect("the end"), 0);
}

#[test]
fn only_a_memif_server_is_connected_to() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let path: PathBuf = launcher.folder.join("memif.sock");
    let device = || PortDevice::Connection(Memif, path.clone());
    let refused = client.open(PortDevice::Connection(Memif, "memif.sock".into()));
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::RelativePath))), "{refused:?}");
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, NOT_FOUND));
    let listener = socket(Memif);
    bind(&listener, &SocketAddrUnix::new(&path).expect("a short path")).expect("a socket");
    listen(&listener, 8).expect("a socket");
    let message = |kind: u16, length: usize| {
        let mut message = vec![0; length];
        message[..2].copy_from_slice(&kind.to_ne_bytes());
        message
    };
    // A greeting, and a farewell of a server that has a client already.
    for kind in [2, 8] {
        assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
        let far = accept(&listener).expect("a connection");
        send(&far, &message(kind, 128), SendFlags::empty()).expect("a message");
        let near = client.open(device()).expect("the connection");
        let mut first = [0; 200];
        let (length, _) =
            rustix::net::recv(&near, &mut first[..], rustix::net::RecvFlags::empty()).expect("a message");
        assert_eq!(first[..length], message(kind, 128), "all that was sent is still there");
    }
    // The types of clients' messages, and packets of another length.
    for (kind, length) in [(1, 128), (3, 128), (9, 128), (2, 127), (2, 2)] {
        assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
        let far = accept(&listener).expect("a connection");
        send(&far, &message(kind, length), SendFlags::empty()).expect("a message");
        assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, OTHER_PROTOCOL));
    }
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, AGAIN));
    drop(accept(&listener).expect("a connection"));
    assert_eq!(refusal(client.open(device())), (Step::ConnectSocket, RESET));
}
