//! Chains of descriptors that are in tables of their own.

use super::{batch, connected, is_gone, receive, shake_hands};
use crate::front_end::{
    FrontEnd, GUEST, HEADER, INDIRECT, MEMORY, NEXT, RECEIVE, SIZE, TABLES, TRANSMIT, USUAL, WRITE, buffer,
    table,
};
use packet::MacAddr;
use std::os::unix::net::UnixStream;
use switch::driver::{Null, VhostUser};
use switch::{Counters, Driver, PortSettings, Reason, StaticTable, SwitchRunner};

/// Describes pieces of bytes in the table of descriptor 0, one after the other by `order`. Each is in a page of its own.
fn put_table(end: &FrontEnd, pieces: &[&[u8]], order: &[u16]) {
    for (number, piece) in pieces.iter().enumerate() {
        let at = order[number];
        end.put(buffer(TRANSMIT, at), piece);
        let (flags, next) = order.get(number + 1).map_or((0, 0), |next| (NEXT, *next));
        let (address, length) = (GUEST + buffer(TRANSMIT, at), piece.len() as u32);
        end.describe_in(table(TRANSMIT, 0), at, address, length, flags, next);
    }
}

/// The descriptors of a table follow each other by their numbers, the first one first; some may be in the ring's table before.
#[test]
fn a_chain_may_be_in_a_table_or_end_in_one() {
    let (mut port, mut front_end) = connected(USUAL | TABLES);
    let frame: Vec<u8> = (0..200).collect();
    let bytes = [&[0; HEADER], &frame[..]].concat();
    let pieces = [&bytes[..7], &bytes[7..12], &bytes[12..13], &bytes[13..]];
    for order in [[0, 1, 2, 3], [0, 23, 2, 1]] {
        put_table(&front_end, &pieces, &order);
        front_end.make_table_available(TRANSMIT, 0, 24);
        assert_eq!(receive(&mut port), (vec![frame.clone()], [0; 2]));
        assert_eq!(front_end.take_used(TRANSMIT), [(0, 0)]);
    }
    // Two pieces in the ring's table, and the others in one that they lead to, which says wrongly that it is to be written.
    put_table(&front_end, &pieces[2..], &[0, 1]);
    let (address, length) = (GUEST + table(TRANSMIT, 0), 32);
    front_end.describe(TRANSMIT, 9, address, length, INDIRECT | WRITE, 0);
    for (number, piece, next) in [(5, pieces[0], 7), (7, pieces[1], 9)] {
        front_end.put(buffer(TRANSMIT, number), piece);
        let address = GUEST + buffer(TRANSMIT, number);
        front_end.describe(TRANSMIT, number, address, piece.len() as u32, NEXT, next);
    }
    front_end.make_available(TRANSMIT, 5);
    assert_eq!(receive(&mut port), (vec![frame.clone()], [0; 2]));
    assert_eq!(front_end.take_used(TRANSMIT), [(5, 0)]);

    // Buffers for a frame to the front end.
    for (number, length) in (0u16..).zip([5u32, 7, 60, 140, 0, 4000]) {
        let address = GUEST + buffer(RECEIVE, number);
        let flags = WRITE | if number < 5 { NEXT } else { 0 };
        front_end.describe_in(table(RECEIVE, 3), number, address, length, flags, number + 1);
    }
    front_end.make_table_available(RECEIVE, 3, 6);
    let (batch, numbers) = batch(std::slice::from_ref(&frame));
    assert_eq!(port.send(&batch, &numbers).unwrap().frames, 1);
    assert_eq!(front_end.take_used(RECEIVE), [(3, 212)]);
    let found: Vec<u8> = [5, 7, 60, 140]
        .iter()
        .zip(0u16..)
        .flat_map(|(length, number)| front_end.get(buffer(RECEIVE, number), *length))
        .collect();
    assert_eq!(found, [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], &frame[..]].concat());
}

/// Frames in tables are counted as others are.
#[test]
fn frames_in_tables_are_counted() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut port = VhostUser::client(near.into()).unwrap();
    let mut front_end = FrontEnd::new(far, USUAL | TABLES);
    shake_hands(&mut port, &front_end);
    let mut runner = SwitchRunner::new(StaticTable::new()).unwrap();
    let guest = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
    let other = runner.add_port(Box::new(Null), PortSettings::default()).unwrap();
    runner.switch().forward_mut().insert(MacAddr([2, 0, 0, 0, 0, 2]), other).unwrap();
    let mut frame = vec![0; 2048];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9]);
    let mut next = 0;
    for (header, length) in [(HEADER, 60), (HEADER, 2048), (HEADER - 1, 0)] {
        next = front_end.transmit_chain(next, &[0; HEADER][..header], &frame[..length], 40);
    }
    frame.push(0);
    front_end.transmit_chain(next, &[0; HEADER], &frame, 40);
    runner.step();
    let mut expected = Counters { received_frames: 2, received_bytes: 2108, ..Counters::default() };
    expected.drop(Reason::TOO_LONG, 1);
    expected.drop(Reason::FAULTY, 1);
    assert_eq!(runner.counters(guest), Some(expected));
    let sent = Counters { sent_frames: 2, sent_bytes: 2108, ..Counters::default() };
    assert_eq!(runner.counters(other), Some(sent));
    assert_eq!(front_end.take_used(TRANSMIT).len(), 4);
}

/// Whatever a table is or contains, at most the connection ends.
#[test]
fn invalid_tables_end_the_connection() {
    type Harm = fn(&mut FrontEnd);
    fn refer(end: &mut FrontEnd, queue: usize, address: u64, length: u32, flags: u16) {
        end.describe(queue, 1, address, length, flags, 2);
        end.make_available(queue, 1);
    }
    /// A table of two descriptors: the first one leads to the second one.
    fn two(end: &mut FrontEnd, queue: usize, first: u16, second: (u64, u16, u16)) {
        let (table, (address, flags, next)) = (table(queue, 1), second);
        end.describe_in(table, 0, GUEST, 4, first, 1);
        end.describe_in(table, 1, address, 64, flags, next);
        end.make_table_available(queue, 1, 2);
    }
    let cases: [(&str, Harm); 14] = [
        ("no descriptor", |end| refer(end, TRANSMIT, GUEST, 0, INDIRECT)),
        ("a part of a descriptor", |end| refer(end, TRANSMIT, GUEST, 40, INDIRECT)),
        ("more descriptors than the ring has", |end| {
            refer(end, TRANSMIT, GUEST, 16 * (u32::from(SIZE) + 1), INDIRECT);
        }),
        ("as long as can be", |end| refer(end, TRANSMIT, GUEST, u32::MAX - 15, INDIRECT)),
        ("outside the memory", |end| refer(end, TRANSMIT, GUEST + MEMORY, 16, INDIRECT)),
        ("half outside the memory", |end| refer(end, TRANSMIT, GUEST + MEMORY - 8, 16, INDIRECT)),
        ("at the last address", |end| refer(end, TRANSMIT, u64::MAX - 7, 32, INDIRECT)),
        ("a table with one after it", |end| {
            refer(end, TRANSMIT, GUEST + table(TRANSMIT, 0), 16, INDIRECT | NEXT)
        }),
        ("a table at the start of a table", |end| {
            end.describe_in(table(TRANSMIT, 1), 0, GUEST + table(TRANSMIT, 1), 16, INDIRECT, 0);
            end.make_table_available(TRANSMIT, 1, 1);
        }),
        ("a table in a table", |end| {
            two(end, TRANSMIT, NEXT, (GUEST + table(TRANSMIT, 1), INDIRECT, 0));
        }),
        ("a loop", |end| two(end, TRANSMIT, NEXT, (GUEST, NEXT, 0))),
        ("a chain that leaves the table", |end| two(end, TRANSMIT, NEXT, (GUEST, NEXT, 2))),
        ("a buffer outside the memory", |end| two(end, TRANSMIT, NEXT, (GUEST + MEMORY - 1, 0, 0))),
        ("a buffer to write to", |end| two(end, TRANSMIT, NEXT, (GUEST, WRITE, 0))),
    ];
    for (name, harm) in cases {
        let (mut port, mut front_end) = connected(USUAL | TABLES);
        front_end.transmit(&[5; 60]);
        assert_eq!(receive(&mut port).0, [[5; 60]]);
        harm(&mut front_end);
        assert_eq!(receive(&mut port), (vec![], [0, 1]), "{name}");
        assert!(is_gone(&port) && front_end.is_closed(), "{name}");
    }
    let cases: [(&str, Harm); 5] = [
        ("no descriptor", |end| refer(end, RECEIVE, GUEST, 0, INDIRECT | WRITE)),
        ("a table in a table", |end| {
            two(end, RECEIVE, NEXT | WRITE, (GUEST + table(RECEIVE, 1), INDIRECT | WRITE, 0));
        }),
        ("a loop", |end| {
            end.describe_in(table(RECEIVE, 1), 0, GUEST, 0, NEXT | WRITE, 0);
            end.make_table_available(RECEIVE, 1, 1);
        }),
        ("a buffer to read", |end| two(end, RECEIVE, NEXT | WRITE, (GUEST, 0, 0))),
        ("a buffer outside the memory", |end| {
            two(end, RECEIVE, NEXT | WRITE, (GUEST + MEMORY, WRITE | NEXT, 0));
        }),
    ];
    for (name, harm) in cases {
        let (mut port, mut front_end) = connected(USUAL | TABLES);
        harm(&mut front_end);
        let (batch, numbers) = batch(&[vec![3; 60]]);
        let sent = port.send(&batch, &numbers).unwrap();
        assert_eq!((sent.frames, sent.down, front_end.is_closed()), (0, true, true), "{name}");
        assert!(is_gone(&port), "{name}");
    }
}
