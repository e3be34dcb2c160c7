//! Connections over the loopback interface.

#[path = "support/software.rs"]
mod software;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use openflow::VERSION;
use openflow::connections::{ConnectionFault, ConnectionState, Connections, Endpoint, Transport};
use openflow::message::{HEADER, Header, Hello, Message};
use openflow::session::{Agent, AgentLimits};
use software::Software;

const TIMEOUT: Duration = Duration::from_secs(20);

fn connections(controllers: &[SocketAddr]) -> Connections<Software> {
    let endpoints: Vec<Endpoint> = controllers.iter().copied().map(Endpoint::tcp).collect();
    Connections::new(Agent::new(Software::new(2), AgentLimits::default()), &endpoints, None)
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Turns until something is there.
fn until<T>(connections: &mut Connections<Software>, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < TIMEOUT, "nothing happens");
        connections.turn(None, Duration::from_millis(5)).expect("a turn");
    }
}

fn accept(connections: &mut Connections<Software>, listener: &TcpListener) -> TcpStream {
    let stream = until(connections, || listener.accept().ok().map(|(stream, _)| stream));
    stream.set_nonblocking(true).expect("a stream");
    stream
}

/// The next message of the switch.
fn read(connections: &mut Connections<Software>, stream: &mut TcpStream) -> Message {
    let mut bytes = Vec::new();
    until(connections, || {
        let missing = Header::decode(&bytes).map_or(HEADER, |header| header.length.into()) - bytes.len();
        let mut buffer = vec![0; missing];
        if let Ok(count) = stream.read(&mut buffer) {
            assert!(count > 0 || missing == 0, "the switch ended the connection");
            bytes.extend_from_slice(&buffer[..count]);
        }
        let header = Header::decode(&bytes)?;
        (bytes.len() == usize::from(header.length))
            .then(|| Message::decode(header.message_type, &bytes[HEADER..]).expect("a right message"))
    })
}

fn write(stream: &mut TcpStream, message: &Message) {
    stream.write_all(&message.encode(1).expect("a short message")).expect("room");
}

fn greet(connections: &mut Connections<Software>, stream: &mut TcpStream) {
    let hello = Message::Hello(Hello { versions: Some(1 << VERSION) });
    let both = Message::Hello(Hello { versions: Some(1 << VERSION | 1 << 1) });
    assert_eq!(read(connections, stream), both);
    write(stream, &hello);
    write(stream, &Message::EchoRequest(b"there?".into()));
    assert_eq!(read(connections, stream), Message::EchoReply(b"there?".into()));
}

fn is_connected(connections: &Connections<Software>, at: usize) -> bool {
    matches!(connections.states().nth(at), Some((_, ConnectionState::Connected(_))))
}

#[test]
fn a_controller_that_goes_is_connected_to_again() {
    let (listener, address) = listen();
    let mut connections = connections(&[address]);
    for _ in 0..2 {
        let mut stream = accept(&mut connections, &listener);
        greet(&mut connections, &mut stream);
        assert!(is_connected(&connections, 0));
        drop(stream);
        let start = Instant::now();
        while is_connected(&connections, 0) {
            assert!(start.elapsed() < TIMEOUT);
            connections.turn(None, Duration::from_millis(5)).expect("a turn");
        }
    }
}

/// A controller that is not there, and one that says nothing, do not disturb the others.
#[test]
fn controllers_do_not_disturb_each_other() {
    let (listener, address) = listen();
    let (gone, absent) = listen();
    drop(gone);
    let (silent, quiet) = listen();
    let mut connections = connections(&[absent, quiet, address]);
    let mut stream = accept(&mut connections, &listener);
    greet(&mut connections, &mut stream);
    let _quiet = accept(&mut connections, &silent);
    for _ in 0..20 {
        write(&mut stream, &Message::BarrierRequest);
        assert_eq!(read(&mut connections, &mut stream), Message::BarrierReply);
    }
    assert_eq!([0, 1, 2].map(|at| is_connected(&connections, at)), [false, true, true]);
}

/// The switch listens, and several controllers connect, of which each has a session.
#[test]
fn controllers_connect_to_a_switch_that_listens() {
    let (listener, address) = listen();
    drop(listener);
    let agent = Agent::new(Software::new(2), AgentLimits::default());
    let endpoint = Endpoint { transport: Transport::PassiveTcp, address };
    let mut connections = Connections::new(agent, &[endpoint], None);
    connections.turn(None, Duration::ZERO).expect("a turn");
    assert_eq!(connections.states().collect::<Vec<_>>(), [(endpoint, ConnectionState::Listening)]);
    let mut streams: Vec<TcpStream> = (0..3)
        .map(|_| {
            let stream = TcpStream::connect(address).expect("the switch listens");
            stream.set_nonblocking(true).expect("a stream");
            stream
        })
        .collect();
    for stream in &mut streams {
        greet(&mut connections, stream);
    }
    assert!(connections.statuses().all(|status| status.role.is_some() && status.fault.is_none()));
    // Those that stay are not disturbed by one that goes.
    drop(streams.remove(0));
    for stream in &mut streams {
        write(stream, &Message::BarrierRequest);
        assert_eq!(read(&mut connections, stream), Message::BarrierReply);
    }
    drop(streams);
    let start = Instant::now();
    while is_connected(&connections, 0) {
        assert!(start.elapsed() < TIMEOUT);
        connections.turn(None, Duration::from_millis(5)).expect("a turn");
    }
    let status = connections.statuses().next().expect("a status");
    assert_eq!((status.role, status.fault), (None, Some(ConnectionFault::Closed)));
    // One that floods the place takes eight sessions, and no more.
    let flood: Vec<TcpStream> = (0..12).filter_map(|_| TcpStream::connect(address).ok()).collect();
    for _ in 0..20 {
        connections.turn(None, Duration::from_millis(5)).expect("a turn");
    }
    let sessions = std::iter::from_fn(|| connections.agent().connect(Duration::ZERO)).count();
    assert_eq!((flood.len(), sessions), (12, AgentLimits::default().sessions - 8));
}

/// An address that another program has is tried again.
#[test]
fn an_address_in_use_is_reported() {
    let (_listener, address) = listen();
    let agent = Agent::new(Software::new(2), AgentLimits::default());
    let endpoint = Endpoint { transport: Transport::PassiveTcp, address };
    let mut connections = Connections::new(agent, &[endpoint], None);
    connections.turn(None, Duration::ZERO).expect("a turn");
    let status = connections.statuses().next().expect("a status");
    let in_use = ConnectionFault::System(rustix::io::Errno::ADDRINUSE.raw_os_error());
    assert_eq!((status.endpoint, status.role, status.fault), (endpoint, None, Some(in_use)));
    assert_eq!(connections.states().collect::<Vec<_>>(), [(endpoint, ConnectionState::Waiting)]);
}

/// Answers wait for a controller that does not read, and none is lost.
#[test]
fn a_slow_controller_gets_all_answers() {
    let (listener, address) = listen();
    let mut connections = connections(&[address]);
    let mut stream = accept(&mut connections, &listener);
    greet(&mut connections, &mut stream);
    let request = Message::EchoRequest(vec![7; 60_000]).encode(1).expect("a short message");
    let all = request.repeat(200);
    // The sockets and the session hold a part; then the switch reads no more.
    let (mut sent, mut pauses) = (0, 0);
    while sent < all.len() && pauses < 50 {
        match stream.write(&all[sent..]) {
            Ok(count) => (sent, pauses) = (sent + count, 0),
            Err(_) => pauses += 1,
        }
        connections.turn(None, Duration::from_millis(1)).expect("a turn");
    }
    let whole = sent / request.len();
    for _ in 0..whole {
        assert_eq!(read(&mut connections, &mut stream), Message::EchoReply(vec![7; 60_000]));
    }
}
