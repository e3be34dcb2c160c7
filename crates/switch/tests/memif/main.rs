//! memif: both roles of the switch against each other, and against peers made by hand that break every rule.

#![allow(unreachable_pub, reason = "the fuzz target uses the peer too")]

mod chains;
#[allow(dead_code, reason = "the fuzz target uses the rest")]
#[path = "../hostile/memif_peer.rs"]
mod memif_peer;
mod messages;
mod queues;
mod sleep;
mod sockets;
mod traffic;

use memif_peer::{Client, connect_message};
use packet::MacAddr;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use switch::driver::{LinkState, MemifPort, MemifSettings, Pipe};
use switch::{
    Batch, Counters, Driver, LearningBridge, LearningSettings, PortId, PortSettings, Reason, SwitchRunner,
};

/// Slots of the rings that a client makes.
const CAPACITY: usize = 1024;

/// A path for a socket, which is removed at the end.
struct Socket(PathBuf);

impl Socket {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("memif-test-{}-{number}.sock", std::process::id())))
    }

    fn server(&self, settings: MemifSettings) -> MemifPort {
        MemifPort::server(memif_peer::listen(&self.0), settings).unwrap()
    }

    fn client(&self, settings: MemifSettings) -> MemifPort {
        MemifPort::client(memif_peer::connect_to(&self.0), settings).unwrap()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn settings(id: u32, secret: &str) -> MemifSettings {
    MemifSettings { id, secret: secret.into(), ..MemifSettings::default() }
}

/// Has ports read the messages that came.
fn look(ports: &mut [&mut MemifPort]) {
    for _ in 0..6 {
        for port in &mut *ports {
            port.prepare_sleep().unwrap();
            port.end_sleep();
        }
    }
}

/// A server and a client that are connected.
fn pair(socket: &Socket) -> (MemifPort, MemifPort) {
    let mut server = socket.server(settings(3, "hush"));
    let mut client = socket.client(settings(3, "hush"));
    look(&mut [&mut server, &mut client]);
    assert_eq!((server.link_state(), client.link_state()), (Some(LinkState::Up), Some(LinkState::Up)));
    (server, client)
}

fn awaited(port: &MemifPort) -> String {
    match port.link_state() {
        Some(LinkState::Waiting(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn gone(port: &MemifPort) -> String {
    match port.link_state() {
        Some(LinkState::Gone(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn batch(frames: &[Vec<u8>]) -> (Batch, Vec<u32>) {
    let mut batch = Batch::new(frames.len().max(1));
    for frame in frames {
        assert!(batch.push(frame));
    }
    (batch, (0..frames.len() as u32).collect())
}

/// A switch with the port, and a pipe to it from which frames are sent to the port.
struct Bench {
    runner: SwitchRunner<LearningBridge>,
    port: PortId,
    inside: PortId,
    pipe: Pipe,
}

impl Bench {
    fn new(port: MemifPort) -> Self {
        let mut runner = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
        let (inside, pipe) = Pipe::pair().unwrap();
        let inside = runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
        let port = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
        Self { runner, port, inside, pipe }
    }

    /// Sends frames to the port.
    fn send(&mut self, count: usize) {
        let (batch, numbers) = batch(&vec![frame(2, 1); count]);
        assert_eq!(self.pipe.send(&batch, &numbers).unwrap().frames, count as u64);
        while self.runner.step() > 0 {}
    }

    /// The frames that came from the port.
    fn received(&mut self) -> Vec<Vec<u8>> {
        while self.runner.step() > 0 {}
        let (mut got, mut all) = (Batch::new(256), Vec::new());
        loop {
            got.clear();
            self.pipe.receive(&mut got).unwrap();
            if got.is_empty() {
                return all;
            }
            all.extend(got.frames().map(<[u8]>::to_vec));
        }
    }

    /// Looks at the sockets, as before a sleep.
    fn look(&mut self) {
        for _ in 0..6 {
            self.runner.wait(Duration::ZERO);
            while self.runner.step() > 0 {}
        }
    }

    /// Checks all counters of the port: received and sent frames, and drops by reason. The books must be balanced.
    fn check(&mut self, received: u64, sent: u64, drops: &[(Reason, u64)]) {
        let counters = self.runner.counters(self.port).unwrap();
        let mut expected = Counters { received_frames: received, sent_frames: sent, ..Counters::default() };
        drops.iter().for_each(|(reason, count)| expected.drop(*reason, *count));
        let bytes =
            Counters { received_bytes: counters.received_bytes, sent_bytes: counters.sent_bytes, ..expected };
        assert_eq!(counters, bytes);
        let books = self.runner.port_books(self.port).unwrap();
        let lost: u64 = drops.iter().map(|(_, count)| count).sum();
        assert_eq!(books.came + books.planned, received + sent + lost, "{books:?}");
        assert!(self.runner.down(self.port).is_none() && self.runner.counters(self.inside).is_some());
    }
}

fn frame(to: u8, from: u8) -> Vec<u8> {
    let address = |last| MacAddr([2, 0, 0, 0, 0, last]).0;
    [&address(to)[..], &address(from), &[0x88, 0xb5], &[to; 46]].concat()
}

/// A connected client made by hand, and the switch at its other end.
fn connected(socket: &Socket) -> (Bench, Client) {
    let mut bench = Bench::new(socket.server(settings(0, "")));
    let client = Client::new(&socket.0, 0, b"");
    client.peer.send(&connect_message(), &[]);
    bench.look();
    assert_eq!(bench.runner.link_state(bench.port), Some(LinkState::Up));
    (bench, client)
}

/// Why the switch has no peer.
fn why(bench: &Bench) -> String {
    match bench.runner.link_state(bench.port) {
        Some(LinkState::Waiting(why)) => why,
        other => panic!("{other:?}"),
    }
}
