//! Sockets at paths.

use super::{Socket, settings};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use switch::Driver;
use switch::driver::{LinkState, MemifPort};

#[test]
fn only_an_abandoned_socket_is_replaced() {
    let socket = Socket::new();
    let path = &socket.0;
    let refused = |path: &Path| MemifPort::listen(path).unwrap_err().raw_os_error();
    let first = MemifPort::listen(path).unwrap();
    assert!(MemifPort::listens_at(&first, path));
    assert_eq!(refused(path), Some(libc::EADDRINUSE));
    MemifPort::remove(path);
    assert!(path.exists(), "somebody listens");
    drop(first);
    assert_eq!(MemifPort::connect(path).unwrap_err().raw_os_error(), Some(libc::ECONNREFUSED));
    let second = MemifPort::listen(path).unwrap();
    fs::remove_file(path).unwrap();
    assert!(!MemifPort::listens_at(&second, path));
    // Sockets of other kinds, and files, stay.
    let other = UnixListener::bind(path).unwrap();
    assert_eq!(refused(path), Some(libc::EADDRINUSE));
    assert!(MemifPort::connect(path).is_err() && !MemifPort::listens_at(&OwnedFd::from(other), path));
    fs::remove_file(path).unwrap();
    fs::write(path, "kept").unwrap();
    assert_eq!(refused(path), Some(libc::EADDRINUSE));
    MemifPort::remove(path);
    assert_eq!(fs::read_to_string(path).unwrap(), "kept");
    assert_eq!(
        MemifPort::connect(Path::new("/nowhere/at-all")).unwrap_err().raw_os_error(),
        Some(libc::ENOENT)
    );
    let long = PathBuf::from("/x".repeat(54));
    assert_eq!(refused(&long), Some(libc::ENAMETOOLONG));
    // Descriptors of other kinds are no ports.
    let file = || OwnedFd::from(File::open("/dev/null").unwrap());
    assert!(
        MemifPort::server(file(), settings(0, "")).is_err()
            && MemifPort::client(file(), settings(0, "")).is_err()
    );
    assert!(
        MemifPort::client(second, settings(0, ""))
            .is_ok_and(|port| port.link_state() == Some(LinkState::Connected))
    );
}
