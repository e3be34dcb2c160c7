//! Frames in both directions, while either end comes and goes.

use super::{Bench, CAPACITY, Socket, batch, frame, gone, look, pair, settings};
use random::Random;
use std::collections::VecDeque;
use switch::driver::{LinkState, MemifPort};
use switch::{Batch, Driver, Reason};

/// Random frames in random batches, in both directions, compared with two queues.
#[test]
fn frames_cross_a_memif_in_order_and_unchanged() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let socket = Socket::new();
        let (server, client) = pair(&socket);
        let mut ends = [server, client];
        let mut queues = [VecDeque::new(), VecDeque::new()];
        for _ in 0..400 {
            let (side, count) = (random.below(2) as usize, random.below(300) as usize);
            if random.below(2) == 0 {
                let frame = |random: &mut Random| vec![random.below(256) as u8; random.below(2049) as usize];
                let frames: Vec<_> = (0..count).map(|_| frame(&mut random)).collect();
                let (batch, numbers) = batch(&frames);
                let sent = ends[side].send(&batch, &numbers).unwrap();
                let room = CAPACITY - queues[side].len();
                assert_eq!((sent.frames as usize, sent.down), (count.min(room), false), "seed {seed}");
                queues[side].extend(frames.into_iter().take(room));
                let is_crowded = CAPACITY - queues[side].len() < CAPACITY / 4;
                assert_eq!((sent.is_crowded, ends[side].is_crowded()), (is_crowded, is_crowded));
            } else {
                let mut got = Batch::new(count.max(1));
                let far = &mut ends[1 - side];
                assert_eq!(far.is_ready(), !queues[side].is_empty());
                let received = far.receive(&mut got).unwrap();
                assert_eq!((received.faulty, received.long), (0, 0));
                let waiting = queues[side].len().min(count.max(1));
                let expected: Vec<_> = queues[side].drain(..waiting).collect();
                assert!(got.frames().eq(expected.iter().map(Vec::as_slice)), "seed {seed}");
            }
        }
    }
}

/// What a peer sent before it ended is received. What it had not taken is lost, and counted.
#[test]
fn a_server_serves_one_client_after_the_other() {
    let socket = Socket::new();
    let mut bench = Bench::new(socket.server(settings(0, "")));
    bench.send(5);
    bench.check(0, 0, &[(Reason::DOWN, 5)]);
    for round in 1..=3 {
        let mut client = socket.client(settings(0, "any"));
        for _ in 0..3 {
            look(&mut [&mut client]);
            bench.look();
        }
        assert_eq!(bench.runner.link_state(bench.port), Some(LinkState::Up));
        // Another client is turned away, and this one stays.
        let mut other = socket.client(settings(0, ""));
        bench.look();
        look(&mut [&mut other]);
        let reason = "no server is connected: the peer has ended the connection: another client is connected";
        assert_eq!(gone(&other), reason);
        bench.send(20);
        let mut got = Batch::new(8);
        client.receive(&mut got).unwrap();
        assert_eq!(got.len(), 8);
        let (batch, numbers) = batch(&vec![frame(1, 2); 7]);
        assert_eq!(client.send(&batch, &numbers).unwrap().frames, 7);
        // The client's books have what it did not receive, which is also what the server lost.
        match round {
            1 => assert_eq!(client.abandon(), 12 + 7),
            _ => drop(client),
        }
        bench.look();
        assert_eq!(bench.received().len(), 7);
        let why = match bench.runner.link_state(bench.port) {
            Some(LinkState::Waiting(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(why, "no client is connected: the peer has ended the connection: the port was removed");
        bench.check(7 * round, 20 * round, &[(Reason::DOWN, 5 + 12 * round)]);
    }
}

/// A client's port needs another connection when its server has ended.
#[test]
fn a_client_goes_on_with_another_connection() {
    let socket = Socket::new();
    let mut bench = Bench::new(MemifPort::unconnected(settings(1, "")).unwrap());
    assert_eq!(bench.runner.link_state(bench.port), Some(LinkState::Gone("no server is connected".into())));
    bench.send(3);
    for round in 1..=3 {
        let mut server = socket.server(settings(1, ""));
        assert!(bench.runner.set_driver(bench.port, Box::new(socket.client(settings(1, "")))).is_some());
        for _ in 0..3 {
            look(&mut [&mut server]);
            bench.look();
        }
        assert_eq!(bench.runner.link_state(bench.port), Some(LinkState::Up));
        bench.send(CAPACITY / 2);
        let mut got = Batch::new(100);
        server.receive(&mut got).unwrap();
        let (batch, numbers) = batch(&vec![frame(1, 2); 7]);
        assert_eq!(server.send(&batch, &numbers).unwrap().frames, 7);
        drop(server);
        bench.look();
        let peer = bench.runner.link_state(bench.port);
        assert!(
            matches!(&peer, Some(LinkState::Gone(why)) if why.ends_with("the port was removed")),
            "{peer:?}"
        );
        assert_eq!(bench.received().len(), 7);
        let (half, lost) = (CAPACITY as u64 / 2, CAPACITY as u64 / 2 - 100);
        bench.check(7 * round, half * round, &[(Reason::DOWN, 3 + lost * round)]);
    }
}
