//! Several queue pairs, which several drivers divide among them.

use super::front_end::{FrontEnd, MEMORY, SEVERAL_QUEUES, USUAL};
use super::{batch, is_readable, receive, serve};
use std::os::unix::net::UnixStream;
use switch::Driver;
use switch::driver::{LinkState, VhostUser, VhostUserSettings};

/// A port with this number of pairs and drivers, and a front end that uses two pairs, with the handshake done.
fn connected(pairs: usize, drivers: usize) -> (Vec<VhostUser>, FrontEnd) {
    let (near, far) = UnixStream::pair().unwrap();
    let queues = VhostUserSettings { pairs, drivers, ..VhostUserSettings::default() };
    let mut ports = VhostUser::client_with(near.into(), queues).unwrap().divide();
    let mut front_end = FrontEnd::new(far, USUAL | SEVERAL_QUEUES);
    front_end.pairs = 2;
    shake_hands(&mut ports, &front_end);
    (ports, front_end)
}

fn shake_hands(ports: &mut [VhostUser], front_end: &FrontEnd) {
    for message in front_end.handshake() {
        front_end.send(&message);
        assert!(serve(&mut ports[0]), "{message:?}");
        front_end.answer();
    }
    assert_eq!(ports[0].link_state(), Some(LinkState::Up));
    assert!(ports[1..].iter().all(|port| port.link_state().is_none()));
}

fn frame(number: usize) -> Vec<u8> {
    vec![number as u8 + 1; 60 + number]
}

fn send(port: &mut VhostUser, frame: Vec<u8>) -> (u64, bool) {
    let (batch, numbers) = batch(&[frame]);
    let sent = port.send(&batch, &numbers).unwrap();
    (sent.frames, sent.down)
}

/// The pairs of a peer are divided among the drivers; each sends by one of its own, or shares one.
#[test]
fn pairs_are_divided_among_drivers() {
    for (pairs, drivers) in [(2, 2), (4, 3), (2, 1), (3, 2)] {
        let (mut ports, mut front_end) = connected(pairs, drivers);
        assert_eq!(ports.len(), drivers);
        assert_eq!(ports.iter().map(|port| port.queues()).sum::<u32>(), 2);
        for pair in 0..2 {
            front_end.transmit_by(pair, &frame(pair));
            for (number, port) in ports.iter_mut().enumerate() {
                let is_own = pair % drivers == number;
                assert_eq!(port.is_ready(), is_own, "pair {pair} of {pairs}, driver {number}");
                let expected = if is_own { vec![frame(pair)] } else { Vec::new() };
                assert_eq!(receive(port), (expected, [0, 0]));
            }
            front_end.take_used(2 * pair + 1);
        }
        for (number, port) in ports.iter_mut().enumerate() {
            let pair = number % 2;
            front_end.add_buffer_to(pair, 2060);
            assert_eq!(send(port, frame(number)), (1, false));
            let came = front_end.received_by(pair);
            assert_eq!(came.into_iter().map(|(_, frame)| frame).collect::<Vec<_>>(), [frame(number)]);
            assert!(front_end.received_by(1 - pair).is_empty());
        }
    }
}

/// A guest uses fewer pairs for a while: the others are disabled, and its end stops all.
#[test]
fn pairs_are_enabled_and_stopped_by_the_peer() {
    let (mut ports, mut front_end) = connected(2, 2);
    front_end.send(&(18, vec![2], vec![]));
    front_end.send(&(18, vec![3], vec![]));
    assert!(serve(&mut ports[0]));
    assert_eq!(ports.iter().map(|port| port.queues()).collect::<Vec<_>>(), [1, 0]);
    front_end.transmit_by(1, &frame(1));
    assert!(!ports[1].is_ready() && receive(&mut ports[1]).0.is_empty());
    // The second driver sends by the first pair.
    front_end.add_buffer_to(0, 2060);
    front_end.add_buffer_to(1, 2060);
    assert_eq!(send(&mut ports[1], frame(5)), (1, false));
    assert_eq!((front_end.received_by(0).len(), front_end.received_by(1).len()), (1, 0));
    for queue in [2, 3] {
        front_end.send(&(18, vec![queue | 1 << 32], vec![]));
    }
    assert!(serve(&mut ports[0]));
    // What the guest sent meanwhile was not lost.
    assert_eq!(receive(&mut ports[1]), (vec![frame(1)], [0, 0]));
    // A pair is stopped for a new place: the index is that of its driver.
    front_end.send(&(11, vec![3], vec![]));
    assert!(serve(&mut ports[0]));
    assert_eq!(front_end.answer(), Some((11, 3 | 1 << 32)));
    front_end.transmit_by(1, &frame(2));
    assert!(receive(&mut ports[1]).0.is_empty());
    drop(front_end);
    assert!(!serve(&mut ports[0]));
    assert!(ports.iter_mut().all(|port| send(port, frame(0)) == (0, true) && port.queues() == 0));
}

#[test]
fn a_driver_is_woken_by_its_own_pairs() {
    let (mut ports, mut front_end) = connected(2, 2);
    // It may have slept since before the peer came.
    let sleeps =
        |port: &mut VhostUser| port.prepare_sleep().unwrap() && !is_readable(port.descriptor().unwrap());
    assert!(front_end.wants_kick(3) && ports.iter_mut().all(sleeps));
    front_end.transmit_by(1, &frame(1));
    rustix::io::write(&front_end.kicks[3], &1u64.to_ne_bytes()).unwrap();
    assert!(is_readable(ports[1].descriptor().unwrap()) && !is_readable(ports[0].descriptor().unwrap()));
    assert!(!ports[1].prepare_sleep().unwrap());
    assert_eq!(receive(&mut ports[1]).0, [frame(1)]);
}

/// A peer that breaks the rules at the ring of one driver is left by all.
#[test]
fn a_fault_at_one_pair_ends_the_connection() {
    let (mut ports, front_end) = connected(2, 2);
    front_end.publish(3, 1000);
    // With the frame that it could not have, the peer is lost.
    assert_eq!(receive(&mut ports[1]), (vec![], [0, 1]));
    assert_eq!(receive(&mut ports[1]), (vec![], [0, 0]));
    assert!(ports.iter_mut().all(|port| send(port, frame(0)) == (0, true)));
    assert!(!serve(&mut ports[0]) && front_end.is_closed());
    // The next front end is another one.
    let (mut ports, front_end) = connected(2, 2);
    assert!(serve(&mut ports[0]) && serve(&mut ports[1]) && !front_end.is_closed());
}

#[test]
fn a_port_says_how_many_pairs_it_has() {
    for pairs in [1, 2, 16] {
        let (near, far) = UnixStream::pair().unwrap();
        let queues = VhostUserSettings { pairs, ..VhostUserSettings::default() };
        let mut port = VhostUser::client_with(near.into(), queues).unwrap();
        let front_end = FrontEnd::new(far, USUAL);
        let mut ask = |request: u32| {
            front_end.send(&(request, vec![], vec![]));
            assert!(serve(&mut port));
            front_end.answer().expect("an answer").1
        };
        assert_eq!(ask(17), pairs as u64);
        assert_eq!((ask(1) & SEVERAL_QUEUES != 0, ask(15) & 1 != 0), (pairs > 1, pairs > 1));
        // One queue too many.
        front_end.send(&(8, vec![(2 * pairs as u64) | (64 << 32)], vec![]));
        assert!(!serve(&mut port) && front_end.is_closed());
        let why = format!(
            "no front end is connected: the peer has {} or more queue pairs, and the port {pairs}: \
             add it with as many --queues, or give the peer fewer",
            pairs + 1
        );
        assert_eq!(port.link_state(), Some(LinkState::Gone(why)));
    }
    for size in [0, 63, 1 << 16] {
        let (near, far) = UnixStream::pair().unwrap();
        let mut port = VhostUser::client_with(near.into(), VhostUserSettings::default()).unwrap();
        let front_end = FrontEnd::new(far, USUAL);
        front_end.send(&(8, vec![1 | (size << 32)], vec![]));
        assert!(!serve(&mut port) && front_end.is_closed());
        let why =
            "no front end is connected: queue 1 of the peer has a size that is no power of two up to 32768";
        assert_eq!(port.link_state(), Some(LinkState::Gone(why.into())));
    }
    for pairs in [0, 17] {
        let settings = VhostUserSettings { pairs, ..VhostUserSettings::default() };
        assert!(VhostUser::unconnected_with(settings).is_err());
    }
}

/// What the switch writes to is charged to it, so a port takes no more memory of a machine than it says.
#[test]
fn the_memory_of_a_machine_is_limited() {
    assert_eq!(VhostUserSettings::default().memory, 16 << 30);
    for (memory, is_taken) in [(MEMORY, true), (MEMORY - 1, false)] {
        let (near, far) = UnixStream::pair().unwrap();
        let settings = VhostUserSettings { memory, ..VhostUserSettings::default() };
        let mut port = VhostUser::client_with(near.into(), settings).unwrap();
        let front_end = FrontEnd::new(far, USUAL);
        for message in front_end.handshake() {
            front_end.send(&message);
            if !serve(&mut port) {
                break;
            }
            front_end.answer();
        }
        let why = "no front end is connected: the peer shares 2 MiB of memory, and the port takes 1: add it with another --memory";
        let expected = if is_taken { LinkState::Up } else { LinkState::Gone(why.into()) };
        assert_eq!(port.link_state(), Some(expected));
        assert_eq!(front_end.is_closed(), !is_taken);
    }
}
