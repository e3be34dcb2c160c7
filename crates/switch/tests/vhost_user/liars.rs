//! Front ends that lie, at a switch with other ports: at most they lose their own port, which says why, and all is counted.

use super::{NO_PEER, connected, serve};
use crate::front_end::{
    FrontEnd, GUEST, HEADER, MEMORY, NEXT, RECEIVE, SIZE, TRANSMIT, USER, USUAL, buffer, places,
};
use packet::MacAddr;
use rustix::event::EventfdFlags;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;
use switch::driver::{LinkState, Null};
use switch::{Counters, Driver, PortSettings, Reason, StaticTable, SwitchRunner};

/// Frames that the other port sends after each lie.
const ROUNDS: u64 = 100;
/// Messages of a flood: more than a socket has room for.
const FLOOD: usize = 4000;

/// What the port of a liar shows at the end.
enum Outcome {
    Up,
    /// The ring of this queue waits for a place.
    Blocked(usize),
    Gone(&'static str),
}
use Outcome::{Blocked, Gone, Up};

/// A lie, the frames that pass the port after it, and those that are lost there.
type Lie = (&'static str, fn(&mut FrontEnd), u64, Option<(Reason, u64)>, Outcome);

/// A frame for the port that takes all.
fn frame() -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 1]);
    frame
}

/// Shares memory of these regions: guest address, length, address in the front end, offset in the file.
fn share(end: &FrontEnd, regions: &[[u64; 4]], descriptors: usize) {
    let words = [&[regions.len() as u64], regions.as_flattened()].concat();
    end.send_flags(5, 1, &words, &vec![end.memory.as_fd(); descriptors]);
}

/// Says that the ring from the front end is at these addresses.
fn place(end: &FrontEnd, [table, available, used]: [u64; 3]) {
    end.send_flags(9, 1, &[TRANSMIT as u64, table, used, available, 0], &[]);
}

/// Makes all of the ring available at once, as chains that begin at descriptor 0.
fn fill(end: &FrontEnd) {
    (0..SIZE).for_each(|at| end.put(places(TRANSMIT)[1] + 4 + u64::from(at) * 2, &[0, 0]));
    end.publish(TRANSMIT, end.available[TRANSMIT].wrapping_add(SIZE));
}

const LIES: &[Lie] = &[
    (
        "a ring outside the memory",
        |end| place(end, places(TRANSMIT).map(|part| USER + MEMORY + part)),
        0,
        None,
        Blocked(TRANSMIT),
    ),
    ("a ring at the last addresses", |end| place(end, [u64::MAX - 15; 3]), 0, None, Blocked(TRANSMIT)),
    (
        "a ring that is not aligned",
        |end| place(end, places(TRANSMIT).map(|part| USER + part + 1)),
        0,
        None,
        Blocked(TRANSMIT),
    ),
    (
        "regions that overlap",
        |end| share(end, &[[GUEST, 8192, USER, 0], [GUEST + 4096, 8192, USER + 8192, 8192]], 2),
        0,
        None,
        Gone("the peer's table of memory regions is invalid"),
    ),
    (
        "an empty region",
        |end| share(end, &[[GUEST, 0, USER, 0]], 1),
        0,
        None,
        Gone("the peer's table of memory regions is invalid"),
    ),
    (
        "a region beyond its file",
        |end| share(end, &[[GUEST, MEMORY, USER, 4096]], 1),
        0,
        None,
        Gone("the peer's table of memory regions is invalid"),
    ),
    (
        "a huge region",
        |end| share(end, &[[GUEST, 1 << 62, USER, 0]], 1),
        0,
        None,
        Gone(
            "the peer shares 4398046511104 MiB of memory, and the port takes 16384: add it with another --memory",
        ),
    ),
    (
        "regions that are not aligned",
        |end| share(end, &[[GUEST + 1, MEMORY - 8191, USER + 5, 3]], 1),
        0,
        None,
        Blocked(RECEIVE),
    ),
    (
        "a region without a file",
        |end| share(end, &[[GUEST, MEMORY, USER, 0]], 0),
        0,
        None,
        Gone("the peer's message 5 is malformed"),
    ),
    (
        "a region with two files",
        |end| share(end, &[[GUEST, MEMORY, USER, 0]], 2),
        0,
        None,
        Gone("the peer's message 5 is malformed"),
    ),
    (
        "more files than a table may have",
        |end| share(end, &[[GUEST, MEMORY, USER, 0]], 16),
        0,
        None,
        Gone("the peer's message 0 is malformed"),
    ),
    (
        "memory that can only be read",
        |end| {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&end.memory));
            let only_read = File::open(path).unwrap();
            end.send_flags(5, 1, &[1, GUEST, MEMORY, USER, 0], &[only_read.as_fd()]);
        },
        0,
        None,
        Gone("the peer's memory can't be written to: share it for writing, too"),
    ),
    (
        "a pipe for memory",
        |end| {
            let (pipe, _) = std::io::pipe().unwrap();
            end.send_flags(5, 1, &[1, GUEST, MEMORY, USER, 0], &[pipe.as_fd()]);
        },
        0,
        None,
        Gone(
            "the peer's memory is neither a memory file nor in tmpfs or hugetlbfs: share it as memory-backend-memfd, or from a \
             folder in tmpfs",
        ),
    ),
    (
        "an index that jumps",
        |end| end.publish(TRANSMIT, SIZE + 2),
        0,
        Some((Reason::FAULTY, 1)),
        Gone("the index of a ring is invalid"),
    ),
    (
        "another index of what was used",
        |end| {
            end.put(places(TRANSMIT)[2] + 2, &[0x77, 0x77]);
            end.transmit(&frame());
        },
        1,
        None,
        Up,
    ),
    (
        "a loop",
        |end| {
            end.describe(TRANSMIT, 0, GUEST, 0, NEXT, 0);
            end.make_available(TRANSMIT, 0);
        },
        0,
        Some((Reason::FAULTY, 1)),
        Gone("a descriptor of a ring is invalid"),
    ),
    (
        "a chain that the ring is too short for",
        |end| {
            (0..SIZE).for_each(|at| end.describe(TRANSMIT, at, GUEST, 0, NEXT, (at + 1) % SIZE));
            end.make_available(TRANSMIT, 1);
        },
        0,
        Some((Reason::FAULTY, 1)),
        Gone("a descriptor of a ring is invalid"),
    ),
    (
        "chains of empty descriptors, as long as the ring",
        |end| {
            let flags = |at| if at + 1 < SIZE { NEXT } else { 0 };
            (0..SIZE).for_each(|at| end.describe(TRANSMIT, at, GUEST, 0, flags(at), at + 1));
            fill(end);
        },
        0,
        Some((Reason::FAULTY, SIZE as u64)),
        Up,
    ),
    (
        "one frame, a whole ring of times",
        |end| {
            end.put(buffer(TRANSMIT, 0), &[&[0; HEADER][..], &frame()].concat());
            end.describe(TRANSMIT, 0, GUEST + buffer(TRANSMIT, 0), HEADER as u32 + 60, 0, 0);
            fill(end);
        },
        SIZE as u64,
        None,
        Up,
    ),
    (
        "a buffer of 4 GB",
        |end| {
            end.describe(TRANSMIT, 0, GUEST, u32::MAX, 0, 0);
            end.make_available(TRANSMIT, 0);
        },
        0,
        Some((Reason::TOO_LONG, 1)),
        Up,
    ),
    (
        "half a message, and silence",
        |end| {
            end.send_bytes(&[5, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, 1], &[end.memory.as_fd()]);
            end.transmit(&frame());
        },
        1,
        None,
        Up,
    ),
    (
        "a flood of messages that change nothing",
        |end| {
            (0..FLOOD).for_each(|_| end.send(&(3, vec![], vec![])));
            end.transmit(&frame());
        },
        1,
        None,
        Up,
    ),
    (
        "features that were not offered",
        |end| end.send(&(2, vec![USUAL | 1 << 34], vec![])),
        0,
        None,
        Gone("the peer accepted features that were not offered: 0x400000000"),
    ),
    (
        "a file for notifications",
        |end| {
            let file = File::open("/proc/self/exe").unwrap();
            end.send_flags(12, 1, &[TRANSMIT as u64], &[file.as_fd()]);
        },
        0,
        None,
        Gone("a descriptor for notifications is no eventfd, pipe or socket"),
    ),
    (
        "notifications that nobody takes",
        |end| {
            let full = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
            end.send_flags(13, 1, &[TRANSMIT as u64], &[full.as_fd()]);
            end.transmit(&frame());
        },
        1,
        None,
        Up,
    ),
];

#[test]
fn a_lie_costs_its_own_port_at_most() {
    for (name, lie, passed, lost, state) in LIES {
        let mut runner = SwitchRunner::new(StaticTable::new()).unwrap();
        let ((bad, mut liar), (good, mut honest)) = (connected(USUAL), connected(USUAL));
        let mut add = |port| runner.add_port(port, PortSettings::default()).unwrap();
        let (bad, good, sink) = (add(Box::new(bad)), add(Box::new(good)), add(Box::new(Null)));
        runner.switch().forward_mut().insert(MacAddr([2, 0, 0, 0, 0, 3]), sink).unwrap();
        liar.transmit(&frame());
        runner.step();
        lie(&mut liar);
        for _ in 0..ROUNDS {
            honest.transmit(&frame());
            runner.step();
            runner.wait(Duration::ZERO);
            runner.step();
            assert_eq!(honest.take_used(TRANSMIT).len(), 1, "{name}");
        }
        let received = |frames: u64| Counters {
            received_frames: frames,
            received_bytes: frames * 60,
            ..Counters::default()
        };
        let mut of_liar = received(1 + passed);
        lost.iter().for_each(|(reason, count)| of_liar.drop(*reason, *count));
        assert_eq!(runner.counters(bad), Some(of_liar), "{name}");
        assert_eq!(runner.counters(good), Some(received(ROUNDS)), "{name}");
        let frames = 1 + passed + ROUNDS;
        let sent = Counters { sent_frames: frames, sent_bytes: frames * 60, ..Counters::default() };
        assert_eq!(runner.counters(sink), Some(sent), "{name}");
        let expected = match state {
            Up => LinkState::Up,
            Blocked(queue) => LinkState::Blocked(format!(
                "queue {queue} of the front end is outside the memory that it shares, or not aligned"
            )),
            Gone(why) => LinkState::Gone(format!("{NO_PEER}: {why}")),
        };
        assert_eq!(runner.link_state(bad), Some(expected), "{name}");
        assert_eq!(liar.is_closed(), matches!(state, Gone(_)), "{name}");
        assert_eq!(runner.link_state(good), Some(LinkState::Up), "{name}");
    }
}

/// A front end that asks, and does not read the answers, is not waited for.
#[test]
fn a_peer_that_does_not_read_is_disconnected() {
    let (mut port, liar) = connected(USUAL);
    let ended = (0..FLOOD).position(|_| {
        liar.send(&(1, vec![], vec![]));
        !serve(&mut port)
    });
    assert!(ended.is_some_and(|answers| answers > 16), "{ended:?}");
    let why = format!("{NO_PEER}: the peer does not read the answers");
    assert_eq!(port.link_state(), Some(LinkState::Gone(why)));
}
