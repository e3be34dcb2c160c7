//! Ports with a vhost-user front end, which is in this process: friendly, hostile, vanishing and returning.

#![allow(unreachable_pub, reason = "the hostile peers use the front end too")]

#[allow(dead_code, reason = "the hostile peers use more of it")]
mod front_end;
mod liars;
mod offloads;
mod queues;
mod tables;

use front_end::{
    EVENT_INDEX, FrontEnd, GUEST, HEADER, MEMORY, NEXT, RECEIVE, SIZE, TRANSMIT, USER, USUAL, WRITE, buffer,
    places,
};
use packet::MacAddr;
use random::Random;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use switch::driver::{LinkState, Null, Pipe, VhostUser};
use switch::{Batch, Counters, Driver, MAX_FRAME, PortId, PortSettings, Reason, StaticTable, SwitchRunner};

/// What a port without a peer shows.
const NO_PEER: &str = "no front end is connected";
/// Messages of a handshake.
const STEPS: usize = 18;

/// A client of a front end, with all of the handshake done.
fn connected(features: u64) -> (VhostUser, FrontEnd) {
    let (near, far) = UnixStream::pair().unwrap();
    let mut port = VhostUser::client(near.into()).unwrap();
    let front_end = FrontEnd::new(far, features);
    shake_hands(&mut port, &front_end);
    assert_eq!(port.link_state(), Some(LinkState::Up));
    (port, front_end)
}

/// Has the port handle what was sent to it.
fn serve(port: &mut dyn Driver) -> bool {
    port.prepare_sleep().unwrap();
    port.end_sleep();
    !is_gone(port)
}

fn is_gone(port: &dyn Driver) -> bool {
    matches!(port.link_state(), Some(LinkState::Gone(why)) if why.starts_with(NO_PEER))
}

/// Whether the port waits for a peer.
fn waits(port: &dyn Driver) -> bool {
    matches!(port.link_state(), Some(LinkState::Waiting(why)) if why.starts_with(NO_PEER))
}

fn shake_hands(port: &mut VhostUser, front_end: &FrontEnd) {
    assert_eq!(front_end.handshake().len(), STEPS);
    for message in front_end.handshake() {
        front_end.send(&message);
        assert!(serve(port));
        let answer = front_end.answer();
        assert_eq!(answer.map(|(request, _)| request), matches!(message.0, 1 | 15).then_some(message.0));
    }
}

fn batch(frames: &[Vec<u8>]) -> (Batch, Vec<u32>) {
    let mut batch = Batch::new(frames.len().max(1));
    for frame in frames {
        assert!(batch.push(frame));
    }
    (batch, (0..frames.len() as u32).collect())
}

/// Receives all that a port has: the frames, and how many were too long or faulty.
fn receive(port: &mut VhostUser) -> (Vec<Vec<u8>>, [u64; 2]) {
    let mut batch = Batch::new(256);
    let received = port.receive(&mut batch).unwrap();
    (batch.frames().map(<[u8]>::to_vec).collect(), [received.long, received.faulty])
}

/// The number of notifications since the last call. If any is expected, waits for the first one.
fn notifications(event: &OwnedFd, is_expected: bool) -> u64 {
    let is_there = |seconds| {
        let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&time)).unwrap() > 0
    };
    let _ = is_expected && is_there(10);
    settle();
    let mut count = [0; 8];
    let _ = is_there(0) && rustix::io::read(event, &mut count).is_ok();
    u64::from_ne_bytes(count)
}

/// Waits until the threads that send notifications, those of other tests too, sleep or are blocked: none has one to send.
fn settle() {
    let is_busy = |task: PathBuf| {
        let is_one = std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "vhost-user\n");
        let status = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
        is_one && status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('S'))
    };
    let begin = Instant::now();
    while std::fs::read_dir("/proc/self/task").unwrap().flatten().any(|task| is_busy(task.path())) {
        assert!(begin.elapsed() < Duration::from_secs(10), "a thread goes on and on");
        std::thread::yield_now();
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
}

/// Random frames in both directions, whole and in pieces, compared with what was sent.
#[test]
fn frames_cross_unchanged_and_in_order() {
    for features in [USUAL, USUAL | EVENT_INDEX] {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (mut port, mut front_end) = connected(features);
            for round in 0..60 {
                let count = 1 + random.below(u32::from(SIZE) / 2);
                let frame = |random: &mut Random| {
                    let length = random.below(MAX_FRAME as u32 + 1) as usize;
                    vec![random.below(256) as u8; length]
                };
                let frames: Vec<Vec<u8>> = (0..count).map(|_| frame(&mut random)).collect();
                frames.iter().for_each(|frame| front_end.transmit(frame));
                assert_eq!(receive(&mut port), (frames.clone(), [0; 2]), "seed {seed}, round {round}");
                let used = front_end.take_used(TRANSMIT);
                assert_eq!(used.len(), frames.len());
                assert!(used.iter().all(|(_, length)| *length == 0));

                // A frame takes one buffer or several.
                while front_end.available[RECEIVE].wrapping_sub(front_end.used[RECEIVE]) < SIZE {
                    front_end.add_buffer([2060, 4096, 700, 300][random.below(4) as usize]);
                }
                let (batch, numbers) = batch(&frames);
                let sent = port.send(&batch, &numbers).unwrap();
                assert!(sent.frames > 0 && !sent.down);
                let taken: Vec<Vec<u8>> = frames.into_iter().take(sent.frames as usize).collect();
                assert_eq!(sent.bytes, taken.iter().map(|frame| frame.len() as u64).sum::<u64>());
                assert_eq!(front_end.received(), taken, "seed {seed}, round {round}");
            }
        }
    }
}

/// A frame may lie in several buffers, its header too, and in two regions of memory.
#[test]
fn frames_in_pieces_are_put_together() {
    let (mut port, mut front_end) = connected(USUAL);
    let frame: Vec<u8> = (0..200).collect();
    for cuts in [vec![12], vec![1, 2], vec![11, 13, 100], vec![5, 12, 12, 150], (1..30).collect()] {
        let bytes = [&[0; HEADER], &frame[..]].concat();
        let start = buffer(TRANSMIT, 0);
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            pieces.push(from..cut);
            from = cut;
        }
        for (number, piece) in (0u16..).zip(&pieces) {
            // Each piece in a page of its own, out of order.
            let place = start + (pieces.len() as u64 - u64::from(number)) * 4096;
            front_end.put(place, &bytes[piece.clone()]);
            let flags = if usize::from(number) + 1 < pieces.len() { NEXT } else { 0 };
            front_end.describe(TRANSMIT, number, GUEST + place, piece.len() as u32, flags, number + 1);
        }
        front_end.make_available(TRANSMIT, 0);
        assert_eq!(receive(&mut port), (vec![frame.clone()], [0; 2]), "{cuts:?}");
    }
    front_end.take_used(TRANSMIT);
    // To the front end: chains of buffers.
    for (number, length) in (0u16..).zip([5u32, 7, 60, 140, 0, 4000]) {
        let flags = WRITE | if number < 5 { NEXT } else { 0 };
        front_end.describe(RECEIVE, number, GUEST + buffer(RECEIVE, number), length, flags, number + 1);
    }
    front_end.make_available(RECEIVE, 0);
    let (batch, numbers) = batch(std::slice::from_ref(&frame));
    assert_eq!(port.send(&batch, &numbers).unwrap().frames, 1);
    assert_eq!(front_end.take_used(RECEIVE), [(0, 212)]);
    let found: Vec<u8> = [5, 7, 60, 140]
        .iter()
        .zip(0u16..)
        .flat_map(|(length, number)| front_end.get(buffer(RECEIVE, number), *length))
        .collect();
    assert_eq!(found, [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], &frame[..]].concat());
}

/// Lengths at the borders, through a switch: all counters.
#[test]
fn each_frame_is_counted_once() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut port = VhostUser::client(near.into()).unwrap();
    let mut front_end = FrontEnd::new(far, USUAL);
    shake_hands(&mut port, &front_end);
    let mut runner = SwitchRunner::new(StaticTable::new()).unwrap();
    let guest = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
    let (pipe, mut end) = Pipe::pair().unwrap();
    let other = runner.add_port(Box::new(pipe), PortSettings::default()).unwrap();
    let frame = |length: usize, last: u8| {
        let mut frame = vec![0; length];
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 9]);
        frame
    };
    runner.switch().forward_mut().insert(MacAddr([2, 0, 0, 0, 0, 1]), guest).unwrap();
    runner.switch().forward_mut().insert(MacAddr([2, 0, 0, 0, 0, 2]), other).unwrap();
    for length in [60, MAX_FRAME, MAX_FRAME + 1, 2084] {
        front_end.transmit(&frame(length, 2));
    }
    front_end.transmit(&[]);
    let header = buffer(TRANSMIT, 60);
    front_end.describe(TRANSMIT, 60, GUEST + header, HEADER as u32 - 1, 0, 0);
    front_end.make_available(TRANSMIT, 60);
    runner.step();
    let mut expected = Counters { received_frames: 3, received_bytes: 2108, ..Counters::default() };
    expected.drop(Reason::TOO_LONG, 2);
    expected.drop(Reason::TOO_SHORT, 1);
    expected.drop(Reason::FAULTY, 1);
    assert_eq!(runner.counters(guest), Some(expected));
    assert_eq!(front_end.take_used(TRANSMIT).len(), 6);
    let mut got = Batch::new(8);
    end.receive(&mut got).unwrap();
    assert_eq!(got.frames().map(<[u8]>::len).collect::<Vec<_>>(), [60, MAX_FRAME]);

    // Two of three frames have a buffer.
    front_end.add_buffer(4096);
    front_end.add_buffer(4096);
    let (batch, numbers) = batch(&vec![frame(100, 1); 3]);
    end.send(&batch, &numbers).unwrap();
    runner.step();
    expected.sent_frames = 2;
    expected.sent_bytes = 200;
    expected.drop(Reason::FULL, 1);
    assert_eq!(runner.counters(guest), Some(expected));
    assert_eq!(front_end.received(), vec![frame(100, 1); 2]);

    // A queue that is not enabled takes nothing; then the peer vanishes.
    front_end.send(&(18, vec![0], vec![]));
    runner.wait(std::time::Duration::ZERO);
    assert_eq!(runner.link_state(guest), Some(LinkState::Connected));
    front_end.add_buffer(4096);
    end.send(&batch, &numbers).unwrap();
    runner.step();
    expected.drop(Reason::DOWN, 3);
    assert_eq!((runner.counters(guest), runner.down(guest).is_some()), (Some(expected), false));
    front_end.transmit(&frame(60, 2));
    drop(front_end);
    runner.step();
    expected.received_frames += 1;
    expected.received_bytes += 60;
    runner.wait(std::time::Duration::ZERO);
    end.send(&batch, &numbers).unwrap();
    runner.step();
    expected.drop(Reason::DOWN, 3);
    assert_eq!(runner.counters(guest), Some(expected));
    assert_eq!(
        runner.link_state(guest),
        Some(LinkState::Gone(format!("{NO_PEER}: the peer closed the connection")))
    );
    let books = runner.port_books(guest).unwrap();
    let lost = [Reason::TOO_LONG, Reason::FAULTY].map(|reason| expected.dropped(reason)).iter().sum::<u64>();
    assert_eq!((books.came, books.went), (expected.received_frames + lost, expected.sent_frames));
    assert_eq!(books.planned, expected.sent_frames + 1 + 3 + 3);
}

/// Notifications in both directions: by the flag, and by the index.
#[test]
fn each_side_is_woken_when_it_asks_for_it() {
    let (mut port, mut front_end) = connected(USUAL);
    let settled = |front_end: &FrontEnd| {
        front_end.calls[..2].iter().for_each(|call| assert!(notifications(call, true) > 0))
    };
    settled(&front_end);
    assert!(!front_end.wants_kick(TRANSMIT) && !front_end.wants_kick(RECEIVE));
    // Asleep, a kick wakes the switch, once for each.
    for _ in 0..3 {
        assert!(port.prepare_sleep().unwrap() && front_end.wants_kick(TRANSMIT));
        assert!(!is_readable(port.descriptor().unwrap()));
        front_end.transmit(&[7; 60]);
        rustix::io::write(&front_end.kicks[TRANSMIT], &1u64.to_ne_bytes()).unwrap();
        assert!(is_readable(port.descriptor().unwrap()));
        port.end_sleep();
        assert!(!front_end.wants_kick(TRANSMIT));
        assert_eq!(receive(&mut port).0.len(), 1);
    }
    // A frame that came before is found instead.
    front_end.transmit(&[7; 60]);
    assert!(!port.prepare_sleep().unwrap());
    port.end_sleep();
    assert_eq!(receive(&mut port).0.len(), 1);
    assert_eq!(front_end.take_used(TRANSMIT).len(), 4);
    assert!(notifications(&front_end.calls[TRANSMIT], true) > 0);
    front_end.set_quiet(TRANSMIT, true);
    front_end.transmit(&[7; 60]);
    assert_eq!(receive(&mut port).0.len(), 1);
    assert_eq!(notifications(&front_end.calls[TRANSMIT], false), 0);
    // One notification for a batch.
    (0..8).for_each(|_| front_end.add_buffer(2060));
    let (frames, numbers) = batch(&vec![vec![1; 60]; 8]);
    assert_eq!(port.send(&frames, &numbers).unwrap().frames, 8);
    assert_eq!(notifications(&front_end.calls[RECEIVE], true), 1);

    let (mut port, mut front_end) = connected(USUAL | EVENT_INDEX);
    settled(&front_end);
    front_end.ask_for(TRANSMIT, 2);
    for expected in [0, 0, 1, 0] {
        front_end.transmit(&[7; 60]);
        assert_eq!(receive(&mut port).0.len(), 1);
        assert_eq!(notifications(&front_end.calls[TRANSMIT], expected > 0), expected);
    }
    assert!(port.prepare_sleep().unwrap());
    assert_eq!(front_end.kick_index(TRANSMIT), 4);
    port.end_sleep();
}

/// Whatever a hostile front end does to a ring, its connection ends, and nothing else.
#[test]
fn invalid_rings_end_the_connection() {
    type Harm = fn(&mut FrontEnd);
    let cases: [(&str, Harm, u64); 10] = [
        ("an index that is ahead", |end| end.publish(TRANSMIT, SIZE + 2), 1),
        ("a head outside the table", |end| end.make_available(TRANSMIT, SIZE), 1),
        (
            "an address outside the memory",
            |end| {
                end.describe(TRANSMIT, 0, GUEST + MEMORY - 71, 72, 0, 0);
                end.make_available(TRANSMIT, 0);
            },
            1,
        ),
        (
            "an address that wraps around",
            |end| {
                end.describe(TRANSMIT, 0, u64::MAX - 20, 72, 0, 0);
                end.make_available(TRANSMIT, 0);
            },
            1,
        ),
        (
            "a loop",
            |end| {
                end.describe(TRANSMIT, 0, GUEST, 1, NEXT, 1);
                end.describe(TRANSMIT, 1, GUEST, 1, NEXT, 0);
                end.make_available(TRANSMIT, 0);
            },
            1,
        ),
        (
            "a chain that leaves the table",
            |end| {
                end.describe(TRANSMIT, 0, GUEST, 1, NEXT, SIZE);
                end.make_available(TRANSMIT, 0);
            },
            1,
        ),
        (
            "a table of its own",
            |end| {
                end.describe(TRANSMIT, 0, GUEST, 64, 4, 0);
                end.make_available(TRANSMIT, 0);
            },
            1,
        ),
        (
            "a buffer to write to",
            |end| {
                end.describe(TRANSMIT, 0, GUEST, 64, WRITE, 0);
                end.make_available(TRANSMIT, 0);
            },
            1,
        ),
        ("memory that is gone", |end| end.memory.set_len(0).unwrap(), 1),
        (
            "memory of which a part is gone",
            |end| {
                end.transmit(&[1; 60]);
                end.memory.set_len(0x2_0000).unwrap();
            },
            0,
        ),
    ];
    for (name, harm, faulty) in cases {
        let (mut port, mut front_end) = connected(USUAL);
        front_end.transmit(&[5; 60]);
        assert_eq!(receive(&mut port).0, [[5; 60]]);
        harm(&mut front_end);
        assert!(port.is_ready(), "{name}");
        let (frames, counts) = receive(&mut port);
        assert_eq!(counts, [0, faulty], "{name}");
        assert!(frames.iter().all(|frame| frame[..] == [0; 60]), "{name}");
        assert!(is_gone(&port), "{name}");
        assert!(front_end.is_closed(), "{name}");
        let (batch, numbers) = batch(&[vec![0; 60]]);
        assert!(port.send(&batch, &numbers).unwrap().down && receive(&mut port).0.is_empty(), "{name}");
    }
    let cases: [(&str, Harm); 6] = [
        ("an index that is ahead", |end| end.publish(RECEIVE, SIZE + 2)),
        ("a buffer to read", |end| {
            end.describe(RECEIVE, 0, GUEST, 4096, 0, 0);
            end.make_available(RECEIVE, 0);
        }),
        ("an address outside the memory", |end| {
            end.describe(RECEIVE, 0, GUEST + MEMORY - 11, 4096, WRITE, 0);
            end.make_available(RECEIVE, 0);
        }),
        ("a chain of empty buffers", |end| {
            end.describe(RECEIVE, 0, GUEST, 0, WRITE | NEXT, 0);
            end.make_available(RECEIVE, 0);
        }),
        ("a chain into nowhere", |end| {
            end.describe(RECEIVE, 0, GUEST, 4, WRITE | NEXT, 1);
            end.describe(RECEIVE, 1, 0, 4096, WRITE, 0);
            end.make_available(RECEIVE, 0);
        }),
        ("memory that is gone", |end| end.memory.set_len(0).unwrap()),
    ];
    for (name, harm) in cases {
        let (mut port, mut front_end) = connected(USUAL);
        front_end.add_buffer(4096);
        let (batch, numbers) = batch(&[vec![3; 60]]);
        assert_eq!(port.send(&batch, &numbers).unwrap().frames, 1);
        harm(&mut front_end);
        let sent = port.send(&batch, &numbers).unwrap();
        assert_eq!((sent.frames, sent.down, front_end.is_closed()), (0, true, true), "{name}");
    }
}

/// Invalid messages end the connection, at any point of the handshake.
#[test]
fn invalid_messages_end_the_connection() {
    let file = File::open("/proc/self/exe").unwrap();
    let queue = |number: u64, value: u64| vec![number | value << 32];
    for at in 0..=STEPS {
        let cases: Vec<(u32, u32, Vec<u64>, usize)> = vec![
            (1, 0, vec![], 0),
            (1, 2, vec![], 0),
            (1, 5, vec![], 0),
            (1, 1, vec![0; 40], 0),
            (0, 1, vec![], 0),
            (6, 1, vec![0, 0], 1),
            (34, 1, vec![], 0),
            (u32::MAX, 1, vec![], 0),
            (2, 1, vec![1 << 36], 0),
            (16, 1, vec![1], 0),
            (21, 1, vec![], 0),
            (5, 1, vec![1, GUEST, MEMORY + 1, 0, 0], 1),
            (5, 1, vec![1, GUEST, MEMORY, 0, 0], 0),
            (5, 1, vec![9], 9),
            (5, 1, vec![2, 0, 4096, 0, 0, 4095, 4096, 4096, 0], 2),
            (8, 1, queue(0, 0), 0),
            (8, 1, queue(0, 3), 0),
            (8, 1, queue(1, 65536), 0),
            (8, 1, queue(2, 64), 0),
            (9, 1, vec![2, 0, 0, 0, 0], 0),
            (11, 1, queue(2, 0), 0),
            (12, 1, vec![1], 1),
            (13, 1, vec![0], 1),
            (12, 1, vec![2], 0),
            (18, 1, queue(7, 1), 0),
        ];
        for (request, flags, words, descriptors) in cases {
            let (near, far) = UnixStream::pair().unwrap();
            let mut port = VhostUser::client(near.into()).unwrap();
            let front_end = FrontEnd::new(far, USUAL);
            for message in front_end.handshake().iter().take(at) {
                front_end.send(message);
                assert!(serve(&mut port));
            }
            // The files of memory regions are memory; descriptors for notifications are none.
            let descriptor = if request == 5 { front_end.memory.as_fd() } else { file.as_fd() };
            front_end.send_flags(request, flags, &words, &vec![descriptor; descriptors]);
            let is_served = (0..8).all(|_| serve(&mut port));
            assert!(!is_served && front_end.is_closed(), "{request} {flags} {words:?} after {at}");
        }
    }
}

/// A peer that vanishes at any point of the handshake leaves nothing behind; a byte at a time is enough for it.
#[test]
fn a_server_accepts_one_peer_after_the_other() {
    let path = socket_path("handshakes");
    let mut port = VhostUser::server(UnixListener::bind(&path).unwrap().into()).unwrap();
    assert!(waits(&port));
    let connect = || FrontEnd::new(UnixStream::connect(&path).unwrap(), USUAL);
    for at in 0..=STEPS {
        let front_end = connect();
        assert!(is_readable(port.descriptor().unwrap()));
        for message in front_end.handshake().iter().take(at) {
            front_end.send(message);
            assert!(serve(&mut port));
        }
        assert!(serve(&mut port) && !waits(&port));
        // A part of a message, too.
        front_end.send_bytes(&[1, 0, 0, 0, 1, 0, 0][..at % 8], &[]);
        assert!(serve(&mut port) && serve(&mut port));
        let memory = front_end.memory.try_clone().unwrap();
        drop(front_end);
        assert!(is_readable(port.descriptor().unwrap()));
        assert!(serve(&mut port) && waits(&port));
        assert_eq!(users(&memory), 1, "after {at} messages");
    }
    let front_end = connect();
    for (request, words, descriptors) in front_end.handshake() {
        let mut bytes: Vec<u8> =
            [request, 1, words.len() as u32 * 8].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        for (number, byte) in bytes.iter().enumerate() {
            front_end.send_bytes(&[*byte], if number == 0 { &descriptors } else { &[] });
            assert!(serve(&mut port));
        }
    }
    assert_eq!(port.link_state(), Some(LinkState::Up));
    std::fs::remove_file(path).unwrap();
}

/// After either side was gone, a guest goes on where it was: no frame twice, none lost that was not used.
#[test]
fn a_guest_goes_on_after_a_reconnection() {
    let path = socket_path("reconnections");
    let listener = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let mut port = VhostUser::server(listener.try_clone().unwrap()).unwrap();
    let mut front_end = FrontEnd::new(UnixStream::connect(&path).unwrap(), USUAL);
    shake_hands(&mut port, &front_end);
    let mut number = 0u8;
    for round in 0..12 {
        for _ in 0..20 {
            front_end.transmit(&[number; 60]);
            number += 1;
        }
        let mut got = Batch::new(13);
        port.receive(&mut got).unwrap();
        assert_eq!(got.len(), 13);
        assert!(got.frames().zip(number - 20..).all(|(frame, first)| *frame == [first; 60]));
        let used = front_end.take_used(TRANSMIT).len();
        assert_eq!(used, 13);
        match round % 3 {
            // The front end stops its queue, and starts it again.
            0 => {
                front_end.send(&(11, vec![1], vec![]));
                assert!(serve(&mut port));
                let index = front_end.used[TRANSMIT];
                assert_eq!(front_end.answer(), Some((11, 1 | u64::from(index) << 32)));
                assert_eq!(port.link_state(), Some(LinkState::Connected));
                assert_eq!(receive(&mut port).0.len(), 0, "a stopped queue gives nothing");
            }
            // The front end vanishes.
            1 => {
                front_end = front_end.reconnected(UnixStream::connect(&path).unwrap());
                assert!(serve(&mut port) && waits(&port));
            }
            // The back end vanishes.
            _ => {
                port = VhostUser::server(listener.try_clone().unwrap()).unwrap();
                assert!(front_end.is_closed());
                front_end = front_end.reconnected(UnixStream::connect(&path).unwrap());
            }
        }
        shake_hands(&mut port, &front_end);
        let (rest, _) = receive(&mut port);
        assert_eq!(rest, (number - 7..number).map(|number| vec![number; 60]).collect::<Vec<_>>());
        front_end.take_used(TRANSMIT);
    }
    std::fs::remove_file(path).unwrap();
}

/// Other memory is shared while rings run: a ring goes on if it has a place there.
#[test]
fn memory_can_be_exchanged_under_traffic() {
    let (mut port, mut front_end) = connected(USUAL);
    for round in 0..6u64 {
        front_end.transmit(&[round as u8; 60]);
        let memory = front_end.memory.as_fd();
        if round % 2 == 0 {
            // The same in two regions; the border is in the middle of the buffers.
            let cut = buffer(TRANSMIT, 0) + 30;
            let words = vec![2, GUEST, cut, USER, 0, GUEST + cut, MEMORY - cut, USER + cut, cut];
            front_end.send_flags(5, 9, &words, &[memory, memory]);
        } else {
            // Without the rings; then with them again.
            let start = 0x4_0000;
            let words = vec![1, GUEST + start, MEMORY - start, USER + start, start];
            front_end.send_flags(5, 9, &words, &[memory]);
            assert!(serve(&mut port));
            assert_eq!(front_end.answer(), Some((5, 0)));
            let why = "queue 0 of the front end is outside the memory that it shares, or not aligned";
            assert_eq!(port.link_state(), Some(LinkState::Blocked(why.into())));
            assert_eq!(receive(&mut port).0.len(), 0);
            front_end.send_flags(5, 9, &[1, GUEST, MEMORY, USER, 0], &[memory]);
        }
        assert!(serve(&mut port));
        assert_eq!(front_end.answer(), Some((5, 0)));
        assert_eq!(receive(&mut port).0, [[round as u8; 60]], "round {round}");
    }
    let [_, available, _] = places(TRANSMIT);
    assert_eq!(front_end.get(available + 2, 1), [6]);
    // What was not offered is refused, if the front end can be told.
    front_end.send_flags(36, 9, &[], &[]);
    assert!(serve(&mut port));
    assert_eq!(front_end.answer(), Some((36, 1)));
}

/// A peer that truncates its memory under traffic loses its port. The switch and another port go on.
#[test]
fn truncated_memory_costs_one_port() {
    let mut runner = SwitchRunner::new(StaticTable::new()).unwrap();
    let (bad, mut bad_end) = connected(USUAL);
    let (good, mut good_end) = connected(USUAL);
    let bad = runner.add_port(Box::new(bad), PortSettings::default()).unwrap();
    let good = runner.add_port(Box::new(good), PortSettings::default()).unwrap();
    let sink = runner.add_port(Box::new(Null), PortSettings::default()).unwrap();
    runner.switch().forward_mut().insert(MacAddr([2, 0, 0, 0, 0, 3]), sink).unwrap();
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 1]);
    for round in 0..50 {
        good_end.transmit(&frame);
        if round < 10 {
            bad_end.transmit(&frame);
        }
        if round == 10 {
            bad_end.memory.set_len(0).unwrap();
        }
        runner.step();
    }
    assert!(bad_end.is_closed());
    let Some(LinkState::Gone(why)) = runner.link_state(bad) else { panic!("it goes on") };
    assert!(why.contains("memory") || why.contains("ring"), "{why}");
    let received = |frames: u64| Counters {
        received_frames: frames,
        received_bytes: frames * 60,
        ..Counters::default()
    };
    let mut of_bad = received(10);
    // The index of the ring is now zero, which is behind.
    of_bad.drop(Reason::FAULTY, 1);
    assert_eq!(runner.counters(bad), Some(of_bad));
    assert_eq!(runner.counters(good), Some(received(50)));
    let sent = Counters { sent_frames: 60, sent_bytes: 3600, ..Counters::default() };
    assert_eq!(runner.counters(sink), Some(sent));
    assert_eq!(good_end.take_used(TRANSMIT).len(), 50);
}

/// A peer whose descriptor for notifications accepts nothing more, and blocks, does not stop the switch.
#[test]
fn a_blocked_notification_blocks_no_one() {
    let (mut port, mut front_end) = connected(USUAL);
    assert!(notifications(&front_end.calls[TRANSMIT], true) > 0);
    let call = &front_end.calls[TRANSMIT];
    rustix::io::write(call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let flags = rustix::fs::fcntl_getfl(call).unwrap();
    rustix::fs::fcntl_setfl(call, flags - OFlags::NONBLOCK).unwrap();
    for _ in 0..100 {
        front_end.transmit(&[1; 60]);
        assert_eq!(receive(&mut port).0.len(), 1);
    }
    // Peers that do so again and again leave a bounded number of threads, whatever port is at the path.
    let path = socket_path("blocked");
    let listener = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let mut ends = Vec::new();
    let refused = (0..1000).find(|_| {
        let mut port = VhostUser::server(listener.try_clone().unwrap()).unwrap();
        let front_end = FrontEnd::new(UnixStream::connect(&path).unwrap(), USUAL);
        let call = &front_end.calls[RECEIVE];
        rustix::io::write(call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        rustix::fs::fcntl_setfl(call, rustix::fs::fcntl_getfl(call).unwrap() - OFlags::NONBLOCK).unwrap();
        let is_served = front_end.handshake().iter().all(|message| {
            front_end.send(message);
            serve(&mut port)
        });
        // The descriptor stays full.
        ends.push(front_end.calls);
        !is_served
    });
    assert!(refused.is_some_and(|count| count >= 2), "{refused:?}");
    std::fs::remove_file(path).unwrap();
}

/// A front end of the older standard, without features: a shorter header, and queues that need not be enabled.
#[test]
fn an_old_driver_has_a_short_header() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut port = VhostUser::client(near.into()).unwrap();
    let mut front_end = FrontEnd::new(far, 0);
    for message in front_end.handshake().iter().filter(|(request, ..)| !matches!(request, 15 | 16 | 18)) {
        front_end.send(message);
        assert!(serve(&mut port));
    }
    assert_eq!(
        (front_end.answer().map(|(request, _)| request), port.link_state()),
        (Some(1), Some(LinkState::Up))
    );
    front_end.transmit(&[4; 60]);
    assert_eq!(
        receive(&mut port).0,
        [[&[0xee; 2], &[4; 60][..]].concat()],
        "two bytes of what the test takes for the header"
    );
    front_end.add_buffer(70);
    front_end.add_buffer(69);
    let (batch, numbers) = batch(&[vec![6; 60], vec![7; 60]]);
    // Frames are not spread over buffers that are too short.
    assert_eq!(port.send(&batch, &numbers).unwrap().frames, 1);
    assert_eq!(front_end.take_used(RECEIVE), [(0, 70)]);
    assert_eq!(front_end.get(buffer(RECEIVE, 0), 70), [&[0; 10], &[6; 60][..]].concat());
}

/// The path of a socket of this test process.
fn socket_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("clickbox-vhost-user-{}-{name}", std::process::id()))
}

/// The number of descriptors and mappings that this process has of a file.
fn users(file: &File) -> usize {
    let inode = file.metadata().unwrap().ino();
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let has = |path: PathBuf| std::fs::metadata(path).is_ok_and(|found| found.ino() == inode);
    let descriptors = all.filter(|entry| has(entry.path())).count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let number = inode.to_string();
    descriptors + maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&number)).count()
}

/// A port whose front end is not there is down, and costs no frame; then it gets a connection.
#[test]
fn a_port_waits_for_its_first_peer() {
    let mut runner = SwitchRunner::new(StaticTable::new()).unwrap();
    let port = runner.add_port(Box::new(VhostUser::unconnected().unwrap()), PortSettings::default()).unwrap();
    assert_eq!(port, PortId(0));
    runner.step();
    assert_eq!(runner.link_state(port), Some(LinkState::Gone(NO_PEER.into())));
    assert_eq!(runner.counters(port), Some(Counters::default()));
    // What the driver before it said is shown until it has had a connection.
    let mut other = VhostUser::unconnected().unwrap();
    let why = format!("{NO_PEER}: the index of a ring is invalid");
    other.recall(why.clone());
    runner.set_driver(port, Box::new(other));
    assert_eq!(runner.link_state(port), Some(LinkState::Gone(why.clone())));
    let (near, far) = UnixStream::pair().unwrap();
    let mut other = VhostUser::client(near.into()).unwrap();
    other.recall(why);
    runner.set_driver(port, Box::new(other));
    assert_eq!(runner.link_state(port), Some(LinkState::Connected));
    drop(far);
    runner.wait(std::time::Duration::ZERO);
    let why = format!("{NO_PEER}: the peer closed the connection");
    assert_eq!(runner.link_state(port), Some(LinkState::Gone(why)));
    assert!(runner.down(port).is_none());
    assert_eq!(runner.counters(port), Some(Counters::default()));
}
