//! Descriptors that are no sockets of memif.

use super::{Socket, memif_peer, settings};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use switch::Driver;
use switch::driver::{LinkState, MemifPort};

#[test]
fn only_sockets_of_the_kind_become_ports() {
    let (socket, other) = (Socket::new(), Socket::new());
    let file = File::open("/dev/null").unwrap();
    let (stream, _far) = UnixStream::pair().unwrap();
    let others: [OwnedFd; 3] = [file.into(), stream.into(), UnixListener::bind(&other.0).unwrap().into()];
    for descriptor in others {
        let again = descriptor.try_clone().unwrap();
        assert!(MemifPort::server(again, settings(0, "")).is_err());
        assert!(MemifPort::client(descriptor, settings(0, "")).is_err());
    }
    let listener = memif_peer::listen(&socket.0);
    let connected = || memif_peer::connect_to(&socket.0);
    assert!(MemifPort::server(connected(), settings(0, "")).is_err(), "it does not listen");
    let state = |port: MemifPort| port.link_state();
    assert_eq!(
        MemifPort::client(connected(), settings(0, "")).ok().and_then(state),
        Some(LinkState::Connected)
    );
    let waiting = LinkState::Waiting("no client is connected".into());
    assert_eq!(MemifPort::server(listener, settings(0, "")).ok().and_then(state), Some(waiting));
}
