//! Several rings in each direction, which several drivers divide among them.

use super::memif_peer::{COOKIE, Client, add_ring, connect_message};
use super::{Socket, batch, frame, look, settings};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use switch::driver::{LinkState, MemifPort, MemifSettings};
use switch::{Batch, Driver};

const TIMEOUT: Duration = Duration::from_secs(40);

/// A server and a client, each with a number of rings and of drivers, that are connected.
fn divided(socket: &Socket, server: [usize; 2], client: [usize; 2]) -> [Vec<MemifPort>; 2] {
    let with = |queues: usize| MemifSettings { queues: queues as u16, ..settings(0, "") };
    let mut server = socket.server(with(server[0])).divide(server[1]).unwrap();
    let mut client = socket.client(with(client[0])).divide(client[1]).unwrap();
    look(&mut [&mut server[0], &mut client[0]]);
    assert_eq!((server[0].link_state(), client[0].link_state()), (Some(LinkState::Up), Some(LinkState::Up)));
    assert!(server.iter().chain(&client).filter(|port| port.link_state().is_some()).count() == 2);
    [server, client]
}

fn send(port: &mut MemifPort, frames: &[Vec<u8>]) -> u64 {
    let (batch, numbers) = batch(frames);
    let sent = port.send(&batch, &numbers).unwrap();
    assert!(!sent.down || sent.frames == 0);
    sent.frames
}

/// The numbers of frames that the drivers receive.
fn receive(ports: &mut [MemifPort]) -> Vec<usize> {
    let receive = |port: &mut MemifPort| {
        let mut all = Batch::new(256);
        while port.is_ready() && all.len() < 256 {
            assert_eq!(port.receive(&mut all).unwrap(), switch::driver::Received::default());
        }
        assert!(all.frames().all(|found| found == frame(2, 1)));
        all.len()
    };
    ports.iter_mut().map(receive).collect()
}

#[test]
fn rings_are_divided_among_drivers() {
    // Rings and drivers of the server, of the client, and the rings that there are.
    for (server, client, rings) in [
        ([2, 2], [2, 2], 2),
        ([4, 2], [4, 3], 4),
        ([3, 1], [8, 2], 3),
        ([8, 3], [1, 1], 1),
        ([1, 1], [2, 2], 1),
    ] {
        let socket = Socket::new();
        let mut ends = divided(&socket, server, client);
        for (from, to) in [(0, 1), (1, 0)] {
            for number in 0..ends[from].len() {
                let count = 10 + number;
                assert_eq!(send(&mut ends[from][number], &vec![frame(2, 1); count]), count as u64);
                let got = receive(&mut ends[to]);
                let mut expected = vec![0; ends[to].len()];
                // A driver without a ring of its own uses that of another one.
                expected[number % rings % ends[to].len()] = count;
                assert_eq!(got, expected, "{server:?} {client:?}");
            }
        }
        for end in &ends {
            assert_eq!(end.iter().map(|port| port.queues()).sum::<u32>(), rings as u32);
        }
    }
}

/// What the rings of all drivers hold is received after the end of the peer, and what it had not taken is counted once.
#[test]
fn the_end_of_a_peer_is_that_of_all_drivers() {
    let socket = Socket::new();
    let [mut server, mut client] = divided(&socket, [2, 2], [2, 2]);
    for number in 0..2 {
        assert_eq!(send(&mut client[number], &vec![frame(2, 1); 20]), 20);
        assert_eq!(send(&mut server[number], &vec![frame(2, 1); 7]), 7);
    }
    drop(client);
    look(&mut [&mut server[0]]);
    assert!(server.iter_mut().all(|port| send(port, &[frame(2, 1)]) == 0), "the port is down");
    assert_eq!(receive(&mut server), [20, 20]);
    look(&mut [&mut server[0]]);
    assert!(matches!(server[0].link_state(), Some(LinkState::Waiting(_))));
    assert_eq!(server.iter_mut().map(Driver::take_lost).collect::<Vec<_>>(), [14, 0]);
    assert!(server.iter_mut().all(|port| !port.is_ready() && port.queues() == 0));
    // The next peer has other rings, and its end comes while this side gives the port up.
    let mut client = socket.client(MemifSettings { queues: 2, ..settings(0, "") });
    look(&mut [&mut server[0], &mut client]);
    assert_eq!(client.queues(), 2);
    assert_eq!(
        (send(&mut client, &vec![frame(2, 1); 5]), send(&mut server[1], &vec![frame(2, 1); 3])),
        (5, 3)
    );
    assert_eq!(server.iter_mut().map(Driver::abandon).collect::<Vec<_>>(), [5 + 3, 0]);
    assert!(server.iter_mut().all(|port| send(port, &[frame(2, 1)]) == 0 && receive_one(port) == 0));
}

fn receive_one(port: &mut MemifPort) -> usize {
    let mut batch = Batch::new(8);
    port.receive(&mut batch).unwrap();
    batch.len()
}

/// Whether the driver's descriptor becomes readable within this time.
fn wakes(port: &MemifPort, timeout: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let descriptor = port.descriptor().unwrap();
    let mut list = [PollFd::new(&descriptor, PollFlags::IN)];
    let time = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: 0 };
    poll(&mut list, Some(&time)).unwrap() > 0
}

#[test]
fn each_driver_is_woken_by_its_own_rings() {
    let socket = Socket::new();
    let two = || MemifSettings { queues: 2, ..settings(0, "") };
    let mut server = socket.server(two()).divide(2).unwrap();
    assert!(server.iter_mut().all(|port| port.prepare_sleep().unwrap()));
    assert!(!wakes(&server[1], Duration::ZERO));
    let mut client = socket.client(two()).divide(2).unwrap();
    // A peer that connects wakes the driver that sleeps already.
    look(&mut [&mut server[0], &mut client[0]]);
    assert!(wakes(&server[1], TIMEOUT));
    server[1].end_sleep();
    assert!(server.iter_mut().all(|port| port.prepare_sleep().unwrap()));
    assert!(!wakes(&server[0], Duration::ZERO) && !wakes(&server[1], Duration::ZERO));
    send(&mut client[1], &[frame(2, 1)]);
    assert!(!wakes(&server[0], Duration::ZERO) && wakes(&server[1], TIMEOUT));
    assert!(server[0].prepare_sleep().unwrap() && !server[1].prepare_sleep().unwrap());
    assert_eq!(receive(&mut server), [0, 1]);
}

/// A peer that breaks the rules at the ring of one driver is left by all.
#[test]
fn a_fault_at_one_ring_ends_the_connection() {
    let socket = Socket::new();
    let mut server = socket.server(MemifSettings { queues: 2, ..settings(0, "") }).divide(2).unwrap();
    let client = Client::new(&socket.0, 0, b"");
    for (from_client, offset, event) in [(true, 1024, &client.events[0]), (false, 1536, &client.events[1])] {
        client.set(offset, &COOKIE.to_ne_bytes());
        client.peer.send(&add_ring(from_client, 1, offset as u32, 4, 0), &[event.as_fd()]);
    }
    client.peer.send(&connect_message(), &[]);
    look(&mut [&mut server[0]]);
    assert_eq!(server[0].link_state(), Some(LinkState::Up));
    assert!(server.iter_mut().all(|port| !port.is_ready()));
    assert_eq!(server.iter().map(|port| port.queues()).sum::<u32>(), 2);
    client.set(1024 + 6, &9999u16.to_ne_bytes());
    assert!(!server[1].is_ready());
    let start = Instant::now();
    while server[0].link_state() == Some(LinkState::Up) {
        server[0].is_ready();
        assert!(start.elapsed() < TIMEOUT);
    }
    assert_eq!(client.peer.reason().as_deref(), Some("an index of the peer's rings jumped"));
    assert!(server.iter_mut().all(|port| send(port, &[frame(2, 1)]) == 0));
}
