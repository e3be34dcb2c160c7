//! Interrupts.

use super::memif_peer::{RINGS, is_readable};
use super::{Socket, batch, connected, frame, look, settings};
use std::os::fd::AsFd;
use switch::driver::MemifPort;
use switch::{Batch, Driver};

/// The switch sleeps on one descriptor: for clients, for messages, and for frames.
#[test]
fn a_sleeping_switch_is_woken_and_wakes() {
    let socket = Socket::new();
    let mut server = socket.server(settings(0, ""));
    let wakes = |port: &MemifPort| is_readable(port.descriptor().unwrap());
    assert!(server.prepare_sleep().unwrap() && !wakes(&server));
    let mut client = socket.client(settings(0, ""));
    assert!(wakes(&server));
    look(&mut [&mut server, &mut client]);
    let (batch, numbers) = batch(&[frame(1, 2)]);
    let mut got = Batch::new(9);
    for _ in 0..3 {
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut server, &mut client];
            // Awake, it gets no interrupts.
            ends[from].send(&batch, &numbers).unwrap();
            assert!(!wakes(ends[to]) && ends[to].is_ready());
            assert!(!ends[to].prepare_sleep().unwrap(), "a frame waits");
            ends[to].end_sleep();
            got.clear();
            ends[to].receive(&mut got).unwrap();
            assert!(ends[to].prepare_sleep().unwrap() && !wakes(ends[to]));
            ends[from].send(&batch, &numbers).unwrap();
            assert!(wakes(ends[to]));
            ends[to].end_sleep();
            ends[to].receive(&mut got).unwrap();
            assert_eq!(got.len(), 2);
            assert!(ends[to].prepare_sleep().unwrap() && !wakes(ends[to]), "an interrupt counts once");
            ends[to].end_sleep();
        }
    }
    client.prepare_sleep().unwrap();
    drop(server);
    assert!(wakes(&client), "the end of the server is news");
}

/// A write to the event of such a client would wait for ever.
#[test]
fn a_client_with_a_full_event_stops_nothing() {
    let socket = Socket::new();
    let (mut bench, client) = connected(&socket);
    client.set_head(1, 16);
    let mut count = [0; 8];
    rustix::io::read(&client.events[1], &mut count).unwrap();
    rustix::io::write(&client.events[1], &(u64::MAX - 1).to_ne_bytes()).unwrap();
    bench.send(10);
    bench.check(0, 10, &[]);
    rustix::io::read(&client.events[1], &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), u64::MAX, "it was woken");
    // Masked, it is not.
    client.set(RINGS[1] + 4, &1u16.to_ne_bytes());
    bench.send(3);
    assert!(!is_readable(client.events[1].as_fd()));
    bench.check(0, 13, &[]);
}
