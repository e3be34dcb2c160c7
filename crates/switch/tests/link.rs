//! Links: two switches in different processes, which here are two threads.

use packet::MacAddr;
use random::Random;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switch::driver::{LinkError, LinkPort, Pipe};
use switch::{
    Batch, Counters, Driver, LearningBridge, LearningSettings, PortId, PortSettings, Reason, SwitchRunner,
};

/// Frames that a link holds in one direction.
const CAPACITY: usize = 1024;

fn link() -> (LinkPort, LinkPort) {
    let (near, descriptors) = LinkPort::create().unwrap();
    (near, LinkPort::join(descriptors).unwrap())
}

fn batch(frames: &[Vec<u8>]) -> (Batch, Vec<u32>) {
    let mut batch = Batch::new(frames.len());
    for frame in frames {
        assert!(batch.push(frame));
    }
    (batch, (0..frames.len() as u32).collect())
}

/// Random frames in random batches, in both directions, compared with two queues.
#[test]
fn frames_cross_a_link_in_order_and_unchanged() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (left, right) = link();
        let mut ends = [left, right];
        let mut queues = [VecDeque::new(), VecDeque::new()];
        for _ in 0..300 {
            let (side, count) = (random.below(2) as usize, random.below(300) as usize);
            if random.below(2) == 0 {
                let frame = |random: &mut Random| vec![random.below(256) as u8; random.below(2049) as usize];
                let frames: Vec<_> = (0..count).map(|_| frame(&mut random)).collect();
                let (batch, numbers) = batch(&frames);
                let sent = ends[side].send(&batch, &numbers).unwrap();
                let room = CAPACITY - queues[side].len();
                assert_eq!((sent.frames as usize, sent.down), (count.min(room), false), "seed {seed}");
                let taken = frames.into_iter().take(room);
                let bytes: usize = taken
                    .map(|frame| {
                        let length = frame.len();
                        queues[side].push_back(frame);
                        length
                    })
                    .sum();
                assert_eq!(sent.bytes, bytes as u64);
            } else {
                let mut got = Batch::new(count.max(1));
                let received = ends[1 - side].receive(&mut got).unwrap();
                assert_eq!((received.faulty, received.long), (0, 0));
                let waiting = queues[side].len().min(count.max(1));
                let expected: Vec<_> = queues[side].drain(..waiting).collect();
                assert!(got.frames().eq(expected.iter().map(Vec::as_slice)), "seed {seed}");
            }
        }
    }
}

/// The two sides count on their own. What a side sent, the other has taken, finds waiting, or is lost when the link ends.
#[test]
fn what_is_lost_with_a_link_is_counted_once() {
    let (batch, numbers) = batch(&vec![vec![1; 60]; 100]);
    let books = |port: &mut LinkPort| port.link_books().unwrap();
    let used = || {
        let (mut near, mut far) = link();
        let mut got = Batch::new(30);
        near.send(&batch, &numbers).unwrap();
        far.receive(&mut got).unwrap();
        far.send(&batch, &numbers[..40]).unwrap();
        let (here, there) = (books(&mut near), books(&mut far));
        assert_eq!(here.link, there.link);
        assert_eq!((here.sent, here.received, here.waiting), (100, 0, 40));
        assert_eq!((there.sent, there.received, there.waiting), (40, 30, 70));
        (near, far)
    };
    // The other side ends without a word.
    let (mut near, far) = used();
    drop(far);
    assert_eq!((near.abandon(), near.abandon()), (40 + 70, 70));
    // Both sides end in good order, one after the other.
    let (mut near, mut far) = used();
    assert_eq!(far.abandon(), 70);
    drop(far);
    assert_eq!(near.abandon(), 40);
    // Links are distinct.
    let (mut near, mut other) = (used().0, used().0);
    assert_ne!(books(&mut near).link, books(&mut other).link);

    // A switch whose port gets another link has lost these frames at that port.
    let (near, far) = used();
    let mut runner =
        SwitchRunner::new(LearningBridge::new(LearningSettings { seed: 1, ..LearningSettings::default() }))
            .unwrap();
    let port = runner.add_port(Box::new(near), PortSettings::default()).unwrap();
    drop(far);
    runner.set_driver(port, Box::new(link().0)).unwrap();
    assert_eq!(runner.counters(port).unwrap().dropped(Reason::DOWN), 110);
    assert_eq!(runner.port_books(port).unwrap().came, 110);
}

/// A side that sleeps is woken by the first frame, and once only.
#[test]
fn a_sleeping_side_is_woken() {
    let (mut near, mut far) = link();
    let (batch, numbers) = batch(&[vec![1; 60]]);
    let is_rung = |port: &LinkPort| {
        let bell = port.descriptor().unwrap().try_clone_to_owned().unwrap();
        let bell = UnixStream::from(bell);
        bell.set_nonblocking(true).unwrap();
        std::io::Read::read(&mut &bell, &mut [0; 9]).ok()
    };
    near.send(&batch, &numbers).unwrap();
    assert_eq!(is_rung(&far), None, "a side that is awake is not rung");
    assert!(!far.prepare_sleep().unwrap(), "a frame waits");
    let mut got = Batch::new(4);
    far.receive(&mut got).unwrap();
    assert_eq!(got.len(), 1);
    assert!(far.prepare_sleep().unwrap());
    for _ in 0..3 {
        near.send(&batch, &numbers).unwrap();
    }
    assert_eq!(is_rung(&far), Some(1));
    far.end_sleep();
    near.send(&batch, &numbers).unwrap();
    assert_eq!(is_rung(&far), None);
}

#[test]
fn only_the_descriptors_of_a_link_are_taken() {
    let memory = || {
        let (_, [memory, bell]) = LinkPort::create().unwrap();
        (memory, bell)
    };
    let socket = || OwnedFd::from(UnixStream::pair().unwrap().0);
    let file = || OwnedFd::from(File::open("/proc/self/exe").unwrap());
    let refused = |pair: [OwnedFd; 2]| LinkPort::join(pair).expect_err("it is refused");
    assert!(matches!(refused([socket(), socket()]), LinkError::NotMemory));
    assert!(matches!(refused([file(), socket()]), LinkError::NotMemory));
    assert!(matches!(refused([memory().0, file()]), LinkError::System(_)));
    let (memory, bell) = memory();
    assert!(matches!(refused([bell, memory]), LinkError::System(_)));
}

/// The frames that were sent before the other side vanished arrive; those sent after are lost, and the port stays up.
#[test]
fn a_peer_that_vanishes_leaves_the_port_up() {
    let (mut near, mut far) = link();
    let (batch, numbers) = batch(&[vec![1; 60], vec![2; 61]]);
    near.send(&batch, &numbers).unwrap();
    drop(near);
    let mut got = Batch::new(8);
    assert!(!far.prepare_sleep().unwrap(), "frames wait");
    far.receive(&mut got).unwrap();
    assert_eq!(got.len(), 2);
    let sent = far.send(&batch, &numbers).unwrap();
    assert_eq!((sent.frames, sent.down), (0, true));
    assert!(far.descriptor().is_none(), "a closed doorbell would be readable without end");
    assert!(far.prepare_sleep().unwrap());
}

/// The other side sleeps in each of its turns, never reads its doorbell, rings this side's without end, and makes the sockets
/// blocking.
#[test]
fn doorbells_never_block() {
    let (mut near, [memory, bell]) = LinkPort::create().unwrap();
    let (memory, bell) = (File::from(memory), UnixStream::from(bell));
    bell.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut &bell, &[0; 4096]).is_ok() {}
    let (batch, numbers) = batch(&[vec![1; 60]]);
    for sent in 1..=100_000u32 {
        // The ring of the first side is the first in the memory; its reader's index and flag are in the second and third
        // line.
        memory.write_all_at(&1u32.to_ne_bytes(), 128).unwrap();
        assert_eq!(near.send(&batch, &numbers).unwrap().frames, 1);
        memory.write_all_at(&sent.to_ne_bytes(), 64).unwrap();
        if sent % 100 == 0 {
            assert!(near.prepare_sleep().unwrap());
            near.end_sleep();
        }
    }
    // The side that joins gets its socket from the other one, which may keep it.
    let (_near, [memory, bell]) = LinkPort::create().unwrap();
    let kept = UnixStream::from(bell.try_clone().unwrap());
    let file = File::from(memory.try_clone().unwrap());
    let mut far = LinkPort::join([memory, bell]).unwrap();
    kept.set_nonblocking(false).unwrap();
    let ring = file.metadata().unwrap().len() / 2;
    for sent in 1..=10_000u32 {
        assert!(far.prepare_sleep().unwrap(), "no byte waits in the socket");
        file.write_all_at(&1u32.to_ne_bytes(), ring + 128).unwrap();
        assert_eq!(far.send(&batch, &numbers).unwrap().frames, 1);
        file.write_all_at(&sent.to_ne_bytes(), ring + 64).unwrap();
    }
}

const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

type Bridge = SwitchRunner<LearningBridge>;

/// A bridge with a pipe, whose other end is returned, and a link.
fn bridge(link: LinkPort) -> (Bridge, Pipe) {
    let mut bridge = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
    let (inside, outside) = Pipe::pair().unwrap();
    bridge.add_port(Box::new(inside), PortSettings::default()).unwrap();
    bridge.add_port(Box::new(link), PortSettings::default()).unwrap();
    (bridge, outside)
}

/// Two switches that sleep between frames, each in its thread.
#[test]
fn two_sleeping_switches_are_linked() {
    const ROUNDS: u16 = 500;
    let (left, right) = link();
    let ((near, near_side), (far, far_side)) = (bridge(left), bridge(right));
    let mut sides = [near_side, far_side];
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mut runner in [near, far] {
            let end = &end;
            scope.spawn(move || runner.run(Duration::from_millis(50), |_| end.load(Ordering::Relaxed)));
        }
        let begin = Instant::now();
        for round in 0..ROUNDS {
            for (from, source, destination) in [(0, OURS, THEIRS), (1, THEIRS, OURS)] {
                let frame = [&destination.0[..], &source.0, &round.to_be_bytes(), &[0; 46]].concat();
                let (batch, numbers) = batch(std::slice::from_ref(&frame));
                sides[from].send(&batch, &numbers).unwrap();
                let mut got = Batch::new(4);
                while got.is_empty() {
                    sides[1 - from].receive(&mut got).unwrap();
                    assert!(begin.elapsed() < Duration::from_secs(20), "round {round}");
                    std::thread::yield_now();
                }
                assert!(got.frames().eq([frame.as_slice()]), "round {round}");
            }
            if round % 50 == 0 {
                // Both switches fall asleep.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        end.store(true, Ordering::Relaxed);
    });
}

/// Each frame that a link does not carry is counted, with its reason: no room, no peer, and descriptors that no correct
/// peer writes.
#[test]
fn what_a_link_loses_is_counted() {
    let (left, [memory, bell]) = LinkPort::create().unwrap();
    let (mut near, mut side) = bridge(left);
    let frame = [&THEIRS.0[..], &OURS.0, &[8, 0], &[0; 46]].concat();
    let (batch, numbers) = batch(&vec![frame; 200]);
    for _ in 0..6 {
        assert_eq!(side.send(&batch, &numbers).unwrap().frames, 200);
        while near.step() > 0 {}
    }
    let expected = |received: u64, sent: u64, drops: &[(Reason, u64)]| {
        let mut counters = Counters {
            received_frames: received,
            received_bytes: 60 * received,
            sent_frames: sent,
            sent_bytes: 60 * sent,
            ..Counters::default()
        };
        drops.iter().for_each(|(reason, frames)| counters.drop(*reason, *frames));
        counters
    };
    assert_eq!(near.counters(PortId(1)).unwrap(), expected(0, 1024, &[(Reason::FULL, 176)]));
    // The peer announces 7 frames: two in other buffers, two that exceed theirs, one that is too short, two correct ones.
    let file = File::from(memory.try_clone().unwrap());
    let ring = file.metadata().unwrap().len() / 2;
    let word = |buffer: u64, offset: u64, length: u64| buffer | offset << 16 | length << 32;
    let words = [
        word(0, 0, 60),
        word(0, 0, 60),
        word(2, 0, 2049),
        word(3, 64, 60),
        word(4, 0, 3),
        word(65, 0, 9),
        word(6, 0, 60),
    ];
    for (slot, word) in (0u64..).zip(words) {
        file.write_all_at(&word.to_ne_bytes(), ring + 256 + slot * 8).unwrap();
        file.write_all_at(&[&OURS.0[..], &THEIRS.0].concat(), ring + 12_288 + slot * 2048).unwrap();
    }
    file.write_all_at(&7u32.to_ne_bytes(), ring).unwrap();
    while near.step() > 0 {}
    let mut counters = expected(3, 1024, &[(Reason::FULL, 176), (Reason::FAULTY, 4), (Reason::TOO_SHORT, 1)]);
    counters.received_bytes = 60 + 3 + 60;
    assert_eq!(near.counters(PortId(1)).unwrap(), counters);
    // It vanishes. The port stays up.
    drop((file, memory, bell));
    near.wait(Duration::ZERO);
    side.send(&batch, &numbers).unwrap();
    while near.step() > 0 {}
    counters.drop(Reason::DOWN, 200);
    assert_eq!(near.counters(PortId(1)).unwrap(), counters);
    assert!(near.down(PortId(1)).is_none());
}

/// The other side writes to all of the memory while frames pass: the port goes on, or is down with a reason, and the other
/// ports of the switch lose nothing.
#[test]
fn a_peer_that_scribbles_harms_only_its_port() {
    for seed in 0..8 {
        let (left, [memory, _bell]) = LinkPort::create().unwrap();
        let (mut near, mut side) = bridge(left);
        let (inside, mut other) = Pipe::pair().unwrap();
        near.add_port(Box::new(inside), PortSettings::default()).unwrap();
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = File::from(memory);
                let length = file.metadata().unwrap().len();
                let mut random = Random::new(seed);
                while !end.load(Ordering::Relaxed) {
                    let bytes: Vec<u8> = (0..64).map(|_| random.below(256) as u8).collect();
                    // Every other time to the words and descriptors of a ring, else anywhere.
                    let at = match random.below(4) {
                        0 => u64::from(random.below(8192)),
                        1 => length / 2 + u64::from(random.below(8192)),
                        _ => u64::from(random.below(u32::try_from(length - 64).unwrap())),
                    };
                    file.write_all_at(&bytes[..1 << random.below(7)], at).unwrap();
                }
            });
            let group = [&[0xff; 6][..], &OURS.0, &[8, 0], &[0; 46]].concat();
            let (batch, numbers) = batch(&vec![group; 32]);
            let (mut got, mut back) = (Batch::new(2048), Batch::new(2048));
            for _ in 0..200 {
                assert_eq!(side.send(&batch, &numbers).unwrap().frames, 32);
                near.step();
                near.wait(Duration::ZERO);
                got.clear();
                back.clear();
                other.receive(&mut got).unwrap();
                let arrived = got.frames().filter(|frame| *frame == batch.frame(0).unwrap()).count();
                assert_eq!(arrived, 32, "seed {seed}");
                side.receive(&mut back).unwrap();
            }
            end.store(true, Ordering::Relaxed);
        });
        let counters = near.counters(PortId(1)).unwrap();
        let lost = [Reason::FULL, Reason::DOWN].map(|reason| counters.dropped(reason)).iter().sum::<u64>();
        assert_eq!(counters.sent_frames + lost, 6400, "seed {seed}: {counters:?}");
    }
}
