//! Sockets of ports: those at which the launcher listens, and connections to front ends.

use super::support::TestLauncher;
use protocol::launcher::{Client, LauncherError, PortDevice, Refusal, Step};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

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

#[test]
fn a_socket_is_listened_at_until_it_is_closed() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    let path = launcher.folder.join("vm.sock");
    let device = || PortDevice::StreamListener(path.clone());
    let listen = |client: &mut Client| client.open(device());
    let refused = client.open(PortDevice::StreamListener("vm.sock".into()));
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::RelativePath))), "{refused:?}");
    assert_eq!(
        refusal(client.open(PortDevice::StreamListener("/no/folder/s".into()))),
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
    let socket = listen(&mut client).expect("a socket");
    let metadata = fs::metadata(&path).expect("the socket");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    UnixStream::connect(&path).expect("it listens");

    // It is one socket, which outlives its users; a file that was removed is made again.
    assert_eq!(inode(&listen(&mut client).expect("the socket")), inode(&socket));
    drop(socket);
    UnixStream::connect(&path).expect("it still listens");
    fs::remove_file(&path).expect("the file");
    let socket = listen(&mut client).expect("another socket");
    UnixStream::connect(&path).expect("it listens");

    // A launcher that follows keeps the socket, and no other descriptor.
    client.close(device()).expect("an answer");
    let wrong = File::open("/dev/null").expect("a device");
    let refused = client.keep(device(), wrong.as_fd());
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::OtherDevice))), "{refused:?}");
    let elsewhere = UnixListener::bind(launcher.folder.join("other")).expect("a socket");
    let refused = client.keep(device(), elsewhere.as_fd());
    assert!(matches!(refused, Err(LauncherError::Refused(Refusal::OtherDevice))), "{refused:?}");
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
    let device = || PortDevice::FrontEnd(path.clone());
    let refused = client.open(PortDevice::FrontEnd("guest.sock".into()));
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
